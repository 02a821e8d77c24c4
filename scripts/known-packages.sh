#!/bin/sh
# Prints those of the given packages that apt can install here, one per line: `known-packages.sh PACKAGE…`. Debian
# releases have different packages.
set -eu

apt-cache policy "$@" 2>/dev/null |
    awk '/^[^ ].*:$/ {name = substr($1, 1, length($1) - 1)} /Candidate: [0-9]/ {print name}'
