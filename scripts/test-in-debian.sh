#!/bin/bash
# Tests in another Debian or Ubuntu, with its PHP: `test-in-debian.sh SUITE PHP GOAL [FILTER…]`, in the root created by
# `in-debian.sh`. GOAL determines the installed packages (`setup.sh`) and the tests:
# - `test`: everything is built there, and all scenarios run
# - `scenarios`: those that need no databases, nginx and PHP-FPM
# - `apps`: `make test-apps`, with that Debian's applications
#
# Except for the first, only howdah-php is built there; the server and the tests are those that this machine has built.
set -euo pipefail
cd "$(dirname "$0")/.."

suite=${1:?which Debian or Ubuntu} php=${2:?which version of PHP it has} goal=${3:?test, scenarios or apps}
shift 3

# Libraries for the howdah-php of this machine's PHP, as files below a directory: Debian's packages of two versions
# conflict. Of its extensions only OPcache, as others need libraries that the root may lack.
gather_outside() {
    local version=$1 config=php-config$1 place=$2 extensions
    extensions=$("$config" --extension-dir)
    mkdir -p "$place/usr/lib" "$place$extensions" "$place/etc/php/$version/embed/conf.d"
    cp -L "$("$config" --prefix)/lib/libphp$version.so" "$place/usr/lib/"
    cp "$extensions/opcache.so" "$place$extensions/"
    echo zend_extension=opcache.so >"$place/etc/php/$version/embed/conf.d/10-opcache.ini"
    cp "${CARGO_TARGET_DIR:-target}/quick/howdah-php" "$place/usr/lib/howdah-php-outside"
}

if [ "${HOWDAH_IN_DEBIAN-}" = "$suite" ]; then
    export PATH=${CARGO_HOME:-$HOME/.cargo}/bin:$PATH PHP_VERSION=$php CARGO_NET_OFFLINE=true
    scripts/setup.sh "$goal" || {
        # Distinguishes a failure of the mirror from a missing package.
        apt-get update -qq -o APT::Update::Error-Mode=any || exit 3
        exit 1
    }
    if [ "$goal" != test ] && ! target/quick/howdah --version >/dev/null; then
        echo "test-in-debian: what this machine has built does not run in $suite, whose libraries are older" >&2
        exit 3
    fi
    [ "$goal" != apps ] || exec make --no-print-directory test-apps
    if [ -n "${OUTSIDE-}" ]; then
        cp -r "$OUTSIDE/." /
        second=/usr/lib/howdah-php-outside
        # If one of its libraries is missing here as well, the scenario reports that it is skipped.
        if "$second" --capabilities >/dev/null; then export HOWDAH_SECOND_PHP_BIN=$second; fi
    fi
    exec scripts/test-php.sh "$(scripts/php-version.sh config)" "$@"
fi

# The roots have no access to the crates' registry.
cargo fetch --locked --quiet
[ "$goal" = test ] || export BUILT_HERE=1
own=$php
[ "$goal" != scenarios ] || own=$(scripts/php-version.sh)
if [ "$own" != "$php" ]; then
    # The root has a separate target/.
    OUTSIDE=$(mktemp -d "$PWD/.outside.XXXXXX")
    export OUTSIDE
    trap 'rm -rf "$OUTSIDE"' EXIT
    gather_outside "$own" "$OUTSIDE"
fi
status=0
trap 'exit 130' HUP INT TERM
scripts/in-debian.sh "$suite" scripts/test-in-debian.sh "$suite" "$php" "$goal" "$@" || status=$?
if [ $status = 3 ]; then
    what="scenarios with PHP $php"
    [ "$goal" != apps ] || what="applications of $suite"
    scripts/skips.sh --record "$what" debootstrap "root, debootstrap, a mirror and no older libraries are needed"
    exit
fi
exit $status
