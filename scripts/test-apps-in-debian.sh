#!/bin/bash
# Runs `make test-apps` in another Debian: `test-apps-in-debian.sh SUITE PHP`, in the root that `in-debian.sh` makes, with
# that Debian's PHP and applications. The server and the tests are those that this machine has built; howdah-php is built
# there. What the suite does not package is told as skipped.
set -euo pipefail
cd "$(dirname "$0")/.."

suite=${1:?which Debian} php=${2:?which version of PHP it has}

if [ "${HOWDAH_IN_DEBIAN-}" = "$suite" ]; then
    export PATH=${CARGO_HOME:-$HOME/.cargo}/bin:$PATH PHP_VERSION=$php CARGO_NET_OFFLINE=true
    scripts/setup.sh apps || {
        # Is it the mirror, or what is asked of it?
        apt-get update -qq -o APT::Update::Error-Mode=any || exit 3
        exit 1
    }
    if ! target/release/howdah version >/dev/null; then
        echo "test-apps-in-debian: what this machine has built does not run in $suite, whose libraries are older" >&2
        exit 3
    fi
    exec make --no-print-directory test-apps
fi

# The roots have no way to the crates' registry.
cargo fetch --locked --quiet
status=0
BUILT_HERE=1 scripts/in-debian.sh "$suite" scripts/test-apps-in-debian.sh "$suite" "$php" || status=$?
if [ $status = 3 ]; then
    scripts/skips.sh --record "applications of $suite" debootstrap "root, debootstrap, a mirror and no older libraries are needed"
    exit
fi
exit $status
