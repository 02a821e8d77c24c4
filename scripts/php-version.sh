#!/bin/sh
# Finds the PHP that the project is built for: the newest of Debian's that is installed with its development files, else
# the newest that can be installed. `php-version.sh` prints the version (8.2), `php-version.sh config` the php-config to
# use, and `php-version.sh configs` every php-config whose PHP has its embed library.
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
        if [ -n "$("$(dirname "$0")/known-packages.sh" "libphp$version-embed")" ]; then
            echo "$version"
            return 0
        fi
    done
    return 1
}

if [ "${1:-}" = configs ]; then
    for version in $versions ""; do
        prefix=$("php-config$version" --prefix 2>/dev/null) || continue
        # Debian's php-config is a link to one of the others.
        case $(readlink -f "$(command -v "php-config$version")") in *php-config[0-9]*) [ -n "$version" ] || continue ;; esac
        if [ -e "$prefix/lib/libphp$version.so" ] || [ -e "$prefix/lib/libphp.so" ]; then
            echo "php-config$version"
        fi
    done
    exit
fi

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
