#!/bin/sh
# Says which PHP the project is built for: the newest of Debian's that is installed with its development files, else the
# newest that can be installed. `php-version.sh` prints the version (8.2), `php-version.sh config` the php-config to use.
set -eu

versions="8.5 8.4 8.3 8.2"

installed() {
    for version in $versions; do
        if command -v "php-config$version" >/dev/null 2>&1 && dpkg -s "libphp$version-embed" >/dev/null 2>&1; then
            echo "$version"
            return 0
        fi
    done
    return 1
}

available() {
    for version in $versions; do
        if apt-cache policy "libphp$version-embed" 2>/dev/null | grep -q 'Candidate: [0-9]'; then
            echo "$version"
            return 0
        fi
    done
    return 1
}

version=${PHP_VERSION:-$(installed || available || true)}
if [ -z "$version" ]; then
    echo "no PHP with an embed library (libphp8.x-embed) is installed or known to apt; try 'apt-get update'" >&2
    exit 1
fi
if [ "${1:-}" = config ]; then
    echo "php-config$version"
else
    echo "$version"
fi
