#!/bin/bash
# Unpacks extensions of PHP from Debian's packages into a directory, without installing them: `unpack-extensions.sh
# DIRECTORY`. If they were installed, every PHP of the machine would load them, and Xdebug makes each slower. Needs no
# root.
set -euo pipefail

target=${1:?which directory}
php=$("$(dirname "$0")/php-version.sh")
mkdir -p "$target"
for name in xdebug apcu uuid gmp ldap; do
    if [ -e "$target/$name.so" ]; then
        continue
    fi
    work=$(mktemp -d "$target/unpack.XXXXXX")
    if (cd "$work" && apt-get download -qq "php$php-$name") && dpkg-deb -x "$work"/*.deb "$work/root"; then
        find "$work/root/usr/lib/php" -name "$name.so" -exec cp {} "$target/" \;
    else
        echo "extensions: no package php$php-$name here; its tests are not run" >&2
    fi
    rm -rf "$work"
done
