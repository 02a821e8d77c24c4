#!/bin/bash
# Builds and runs the scenarios with the PHP of another Debian: `test-in-debian.sh SUITE PHP [FILTER…]`, in the root that
# `in-debian.sh` makes. What is built stays there for the next time.
set -euo pipefail
cd "$(dirname "$0")/.."

suite=$1 php=$2
shift 2

if [ "${HOWDAH_IN_DEBIAN-}" = "$suite" ]; then
    export PATH=${CARGO_HOME:-$HOME/.cargo}/bin:$PATH PHP_VERSION=$php
    command -v make >/dev/null && command -v git >/dev/null || {
        apt-get update -qq
        DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends make git ca-certificates >/dev/null
    }
    scripts/setup.sh test
    PHP_CONFIG=$(scripts/php-version.sh config)
    export PHP_CONFIG
    cargo build --locked -p howdah -p howdah-php
    scripts/unpack-extensions.sh target/extensions
    HOWDAH_EXTENSIONS=$PWD/target/extensions HOWDAH_BIN=$PWD/target/debug/howdah HOWDAH_ALLOW_ROOT=true \
        exec cargo test --locked -p howdah-tests --test scenarios -- "$@"
fi

status=0
scripts/in-debian.sh "$suite" scripts/test-in-debian.sh "$suite" "$php" "$@" || status=$?
if [ $status = 3 ]; then
    scripts/skips.sh --record "scenarios with PHP $php" debootstrap "root, debootstrap and a Debian mirror are needed"
    exit
fi
exit $status
