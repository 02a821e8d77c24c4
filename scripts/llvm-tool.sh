#!/bin/bash
# Prints the path of a tool that has the version of rustc's LLVM, rustup's (component llvm-tools) or Debian's:
# `llvm-tool.sh llvm-profdata|llvm-cov`.
set -euo pipefail

of_rustup=$(rustc --print target-libdir)/../bin/$1
[ ! -x "$of_rustup" ] || { echo "$of_rustup"; exit; }
version=$(rustc -vV | sed -nE 's/^LLVM version: ([0-9]+).*/\1/p')
command -v "$1-$version" || {
    echo "no $1 for LLVM $version: run 'rustup component add llvm-tools', or install Debian's package llvm-$version" >&2
    exit 1
}
