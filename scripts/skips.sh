#!/bin/bash
# Runs a command and tells at its end which tests were skipped, and for want of what: `skips.sh COMMAND…`. The tests write
# that down (`tests/skip`), scripts by `skips.sh --record TEST LACK WHY`, which fails where nothing may be skipped.
set -uo pipefail

if [ "${1-}" = --record ]; then
    line="$2: no $3: $4"
    echo "skipped: $line" >&2
    [ -z "${HOWDAH_SKIPS-}" ] || echo "$line" >>"$HOWDAH_SKIPS"
    [ "${HOWDAH_NO_SKIPS-}" != 1 ] || [[ " ${HOWDAH_MAY_LACK-} " = *" $3 "* ]]
    exit
fi

# Within another one, which tells them all.
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
