#!/bin/bash
# Runs the scenarios of control groups under User-Mode Linux, for machines whose own kernel has its controllers in
# cgroup v1 or does not allow groups to be created: `control-groups.sh [FILTER]`. Needs root and the program linux.uml;
# UML is its path if it is not on PATH (Debian: package user-mode-linux; unpacking it is enough).
#
# The guest uses this machine's files, with a separate /tmp. It has one processor, on which each system call costs some
# 40 µs: tests that take seconds elsewhere take a minute.
set -euo pipefail
cd "$(dirname "$0")/.."

if [ "${1-}" = --inside ]; then
    mount -t proc proc /proc
    mount -t sysfs sys /sys
    mount -t tmpfs -o mode=1777 tmp /tmp
    mount -t tmpfs run /run
    mount -t cgroup2 cgroup2 /sys/fs/cgroup
    ip link set lo up
    ulimit -n 65536
    echo "Linux $(uname -r), controllers: $(cat /sys/fs/cgroup/cgroup.controllers)"
    # shellcheck source=/dev/null
    . "$SETTINGS"
    status=0
    (cd tests && "${PROGRAM:?}" "${FILTER:?}" --test-threads=1) || status=$?
    echo "$status" >"$SETTINGS.status"
    # This is process 1: it must not end, so the kernel powers off.
    echo o >/proc/sysrq-trigger
    sleep 60
fi

uml=${UML:-linux.uml}
command -v "$uml" >/dev/null || { echo "no program $uml: apt-get install user-mode-linux" >&2; exit 1; }
: "${HOWDAH_BIN:=$PWD/target/quick/howdah}"
[ -x "$HOWDAH_BIN" ] || { echo "no program $HOWDAH_BIN: make quick" >&2; exit 1; }

message=$(CARGO_TERM_QUIET=false cargo test --profile quick --locked --workspace --test scenarios --no-run 2>&1) || { echo "$message" >&2; exit 1; }
program=$(sed -n 's/.*Executable .*(\(.*\))$/\1/p' <<<"$message")
[ -n "$program" ] || { echo "cargo names no executable: $message" >&2; exit 1; }

# Not below /tmp, which the guest does not share. UML also keeps the guest's memory in a file, best on a tmpfs.
directory=$(mktemp -d "$PWD/target/control-groups.XXXXXX")
trap 'rm -rf "$directory"' EXIT
printf 'export %s=%q\n' PATH "$PATH" HOME "$HOME" LANG C.UTF-8 HOWDAH_ALLOW_ROOT true HOWDAH_BIN "$HOWDAH_BIN" \
    PROGRAM "$(realpath "$program")" FILTER "${1:-server::control_groups}" >"$directory/settings"
TMPDIR=/dev/shm timeout 900 "$uml" root=/dev/root rootfstype=hostfs rootflags=/ rw mem=3G quiet \
    con=null con0=null,fd:1 ssl=null SETTINGS="$directory/settings" \
    init="$PWD/scripts/control-groups.sh" -- --inside </dev/null
exit "$(cat "$directory/settings.status")"
