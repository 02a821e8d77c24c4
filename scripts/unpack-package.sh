#!/bin/bash
# Unpacks files of one of Debian's packages, without installing it, into a directory: `unpack-package.sh DIRECTORY
# PACKAGE[,PACKAGE…] FILE…`. Of several packages, the first available one counts: a library's name may end in its release.
# If they were installed, some would run as services. Needs no root.
set -euo pipefail

target=${1:?which directory} packages=${2:?which package}
shift 2
missing=
for file in "$@"; do [ -e "$target/${file##*/}" ] || missing=1; done
[ -n "$missing" ] || exit 0
mkdir -p "$target"
work=$(mktemp -d "$target/unpack.XXXXXX")
trap 'rm -rf "$work"' EXIT
for package in ${packages//,/ }; do
    if (cd "$work" && apt-get download -qq "$package" 2>/dev/null) && dpkg-deb -x "$work"/*.deb "$work/root"; then
        # Patterns: libraries are in a directory of the architecture.
        for file in "$@"; do cp -L "$work/root"/$file "$target/${file##*/}"; done
        exit 0
    fi
done
echo "$packages: no package here; its tests are not run" >&2
