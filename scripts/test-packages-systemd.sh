#!/bin/bash
# Boots systemd as process 1 of separate namespaces, in the root of test-packages.sh with systemd installed, and lets it
# run the packages' services: `test-packages-systemd.sh PACKAGES [PART…]`, by default all parts: service, fpm, wordpress.
# Exits with 3 if it cannot boot on the machine. Its cgroups are below those of the caller and are removed with it.
# There is no network: apt installs what `--download` has fetched before.
set -euo pipefail
cd "$(dirname "$0")/.."
here=$PWD

# The machine's side: a cgroup in each hierarchy that systemd uses, and namespaces.
run() {
    local packages=$1 group=howdah-packages-$$ tree status=0
    shift
    local -a trees=()
    for tree in /sys/fs/cgroup /sys/fs/cgroup/unified /sys/fs/cgroup/systemd; do
        [ -e "$tree/cgroup.procs" ] && mkdir "$tree/$group" 2>/dev/null && trees+=("$tree/$group")
    done
    [ ${#trees[@]} -gt 0 ] || return 3
    rm -f "$packages"/systemd.*
    (
        for tree in "${trees[@]}"; do echo "$BASHPID" >"$tree/cgroup.procs"; done
        exec timeout --signal KILL 1200 unshare --mount --pid --net --fork --kill-child --cgroup --ipc --uts \
            --propagation private "$here/scripts/test-packages-systemd.sh" --init "$packages" "$@"
    ) >"$packages/systemd.boot" 2>&1 || status=$?
    for tree in "${trees[@]}"; do find "$tree" -depth -type d -exec rmdir {} +; done
    if [ ! -e "$packages/systemd.log" ]; then
        tail -n 5 "$packages/systemd.boot" >&2
        return 3
    fi
    grep '^test-packages: ' "$packages/systemd.log" || true
    [ -e "$packages/systemd.good" ] || { tail -n 40 "$packages/systemd.log" >&2; echo "ended with status $status" >&2; return 1; }
}

# Becomes systemd, with the cgroups of its namespace, an empty /run, and one unit to run.
init() {
    local packages=$1 version unit
    shift
    version=$(stat -f -c %T /sys/fs/cgroup)
    umount -R /proc 2>/dev/null || true
    mount -t proc proc /proc
    mount -t tmpfs -o mode=755 run /run
    if [ "$version" = cgroup2fs ]; then
        mount -t cgroup2 cgroup2 /sys/fs/cgroup
    else
        mount -t tmpfs -o mode=755 cgroups /sys/fs/cgroup
        mkdir /sys/fs/cgroup/systemd /sys/fs/cgroup/unified
        mount -t cgroup -o none,name=systemd cgroup /sys/fs/cgroup/systemd
        mount -t cgroup2 cgroup2 /sys/fs/cgroup/unified
    fi
    rm -f /usr/sbin/policy-rc.d
    for unit in systemd-udevd systemd-networkd systemd-timesyncd systemd-logind; do
        ln -sf /dev/null "/etc/systemd/system/$unit.service"
    done
    cat >/etc/systemd/system/test-packages.service <<UNIT
[Unit]
After=basic.target
Requires=basic.target
[Service]
Type=oneshot
ExecStart=$here/scripts/test-packages-systemd.sh --test $packages $*
StandardOutput=file:$packages/systemd.log
StandardError=file:$packages/systemd.log
TimeoutStartSec=1180
ExecStopPost=/bin/systemctl --no-block exit
UNIT
    exec env -i container=howdah PATH=/usr/sbin:/usr/bin:/sbin:/bin /lib/systemd/systemd --unit=test-packages.service \
        --log-target=console --show-status=no
}

fail() { printf 'test-packages: with systemd: %s\n' "$*"; journalctl --no-pager -o cat -n 40 -t howdah -t howdah-fpm | grep -v '^[a-z_]* = \|^\[' || true; exit 1; }
step() { printf 'test-packages: with systemd: %s\n' "$*"; }
main_pid() { systemctl show --property MainPID --value "${1:-howdah}"; }
get() { curl --silent --show-error --max-time 30 "$@"; }
installed() {
    apt-get install -y -qq --no-install-recommends --reinstall "$@" >/tmp/apt.log 2>&1 || { tail -n 20 /tmp/apt.log; fail "install $*"; }
}
said() { grep -q "$1" /tmp/apt.log || { cat /tmp/apt.log; fail "the output lacks: $1"; }; }

# block PAGE LANGUAGE TEXT: the block of a guide that contains this text.
block() {
    awk -v language="$2" -v text="$3" '
        { bare = $0; sub(/^ +/, "", bare) }
        inside && bare ~ /^```/ { inside = 0; if (index(found, text)) { printf "%s", found; exit } }
        inside { found = found bare "\n" }
        !inside && bare ~ "^```" language "( |$)" { inside = 1; found = "" }
    ' "docs/guide/$1.md" | grep . || fail "$1.md has no block of $2 with $3"
}

# edit UNIT FILE: `systemctl edit` with the file's content. It needs a terminal.
edit() {
    SYSTEMD_EDITOR="cp $2" script -qec "systemctl edit $1" /dev/null >/tmp/edit 2>&1 || fail "systemctl edit: $(cat /tmp/edit)"
}

# eventually WHY COMMAND…
eventually() {
    local why=$1 tries=0
    shift
    until "$@"; do
        [ $((tries += 1)) -lt 150 ] || fail "$why"
        sleep 0.2
    done
}

# Packages that the parts install, into apt's archive: inside there is no network.
download() {
    local packages=$1 version
    version=$(basename "$packages"/howdah-php*.deb) version=${version#howdah-php} version=${version%%_*}
    apt-get install -y -qq --download-only --no-install-recommends nginx "php$version-fpm" >/dev/null
    apt-get install -y -qq --download-only "$packages"/howdah_*.deb "$packages"/howdah-php*.deb wordpress mariadb-server >/dev/null
}

tests() {
    local packages=$1 server php version newer newer_php part
    shift
    export DEBIAN_FRONTEND=noninteractive LC_ALL=C
    server=$(ls "$packages"/howdah_*.deb) php=$(ls "$packages"/howdah-php*.deb)
    newer=$(ls "$packages"/newer/howdah_*.deb) newer_php=$(ls "$packages"/newer/howdah-php*.deb)
    version=$(dpkg-deb -f "$php" Package) version=${version#howdah-php}
    . scripts/test-packages-service.sh
    . scripts/test-packages-fpm.sh
    . scripts/test-packages-wordpress.sh
    for part; do "${part}_tests"; done
    touch "$packages/systemd.good"
}

case $1 in
--init) init "${@:2}" ;;
--test) tests "${@:2}" ;;
--download) download "$2" ;;
*)
    [ $# -gt 1 ] || set -- "$1" service fpm wordpress
    run "$@"
    ;;
esac
