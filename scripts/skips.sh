#!/bin/bash
# Runs a command and lists at its end the tests that were skipped, and what the machine lacks for them: `skips.sh
# COMMAND…`. Tests record a skip by `tests/skip`, scripts by `skips.sh --record TEST LACK WHY`.
set -uo pipefail

if [ "${1-}" = --record ]; then
    line="$2: no $3: $4"
    echo "skipped: $line" >&2
    [ -z "${HOWDAH_SKIPS-}" ] || echo "$line" >>"$HOWDAH_SKIPS"
    exit
fi

# Inside another instance, which lists all of them.
[ -z "${HOWDAH_SKIPS-}" ] || exec "$@"

HOWDAH_SKIPS=$(mktemp) || exit 1
export HOWDAH_SKIPS
trap 'rm -f "$HOWDAH_SKIPS"' EXIT

"$@"
status=$?
if [ -s "$HOWDAH_SKIPS" ]; then
    printf '\nskipped: %s\n' "$(sort -u "$HOWDAH_SKIPS" | wc -l)"
    sort -u "$HOWDAH_SKIPS" | sed 's/^/    /'
fi
exit $status
