#!/bin/bash
# Boots systemd as process 1 of separate namespaces, in the root of test-packages.sh with systemd installed, and lets it
# run the packages' services while requests arrive: `test-packages-systemd.sh PACKAGES`. Exits with 3 if it cannot boot
# on the machine. Its cgroups are below those of the caller and are removed with it.
set -euo pipefail
cd "$(dirname "$0")/.."
here=$PWD

# The machine's side: a cgroup in each hierarchy that systemd uses, and namespaces.
run() {
    local packages=$1 group=howdah-packages-$$ tree status=0
    local -a trees=()
    for tree in /sys/fs/cgroup /sys/fs/cgroup/unified /sys/fs/cgroup/systemd; do
        [ -e "$tree/cgroup.procs" ] && mkdir "$tree/$group" 2>/dev/null && trees+=("$tree/$group")
    done
    [ ${#trees[@]} -gt 0 ] || return 3
    rm -f "$packages"/systemd.*
    (
        for tree in "${trees[@]}"; do echo "$BASHPID" >"$tree/cgroup.procs"; done
        exec timeout --signal KILL 700 unshare --mount --pid --fork --kill-child --cgroup --ipc --uts --propagation private \
            "$here/scripts/test-packages-systemd.sh" --init "$packages"
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
ExecStart=$here/scripts/test-packages-systemd.sh --test $packages
StandardOutput=file:$packages/systemd.log
StandardError=file:$packages/systemd.log
TimeoutStartSec=680
ExecStopPost=/bin/systemctl --no-block exit
UNIT
    exec env -i container=howdah PATH=/usr/sbin:/usr/bin:/sbin:/bin /lib/systemd/systemd --unit=test-packages.service \
        --log-target=console --show-status=no
}

fail() { printf 'test-packages: with systemd: %s\n' "$*"; journalctl --no-pager -n 30 -t howdah; exit 1; }
step() { printf 'test-packages: with systemd: %s\n' "$*"; }
main_pid() { systemctl show --property MainPID --value "${1:-howdah}"; }
get() { curl --silent --show-error --max-time 30 "$@"; }
installed() {
    apt-get install -y -qq --no-install-recommends --reinstall "$@" >/tmp/apt.log 2>&1 || { tail -n 20 /tmp/apt.log; fail "install $*"; }
}
said() { grep -q "$1" /tmp/apt.log || { cat /tmp/apt.log; fail "not said: $1"; }; }

asked=0

# Waits until this number of requests of `kept` have been answered, or lost.
answered() {
    local tries=0
    until [ "$(cat /tmp/codes.* | wc -l)" -ge "$1" ]; do
        [ $((tries += 1)) -lt 600 ] || fail "hardly a request comes"
        sleep 0.1
    done
}

# kept COMMAND…: runs it while requests arrive, one of which takes longer than the command; none may be lost.
kept() {
    local slow number lost
    local -a loads=()
    rm -f /tmp/stop /tmp/codes.*
    get -o /dev/null -w '%{http_code}\n' http://127.0.0.1:8080/slow.php >/tmp/slow &
    slow=$!
    for number in 1 2 3; do
        (while [ ! -e /tmp/stop ]; do
            get -o /dev/null -w '%{http_code}\n' http://127.0.0.1:8080/ || true
        done) >/tmp/codes.$number 2>&1 &
        loads+=($!)
    done
    answered 10
    "$@"
    answered $(($(cat /tmp/codes.* | wc -l) + 20))
    touch /tmp/stop
    wait $slow "${loads[@]}"
    asked=$((asked + $(cat /tmp/codes.* | wc -l)))
    lost=$(sort /tmp/codes.* /tmp/slow | uniq -c | grep -v ' 200$' || true)
    [ -z "$lost" ] || fail "$*: requests were lost: $lost"
}

# taken_over COMMAND…: requires that another process is the service after it.
taken_over() {
    local before
    before=$(main_pid)
    kept "$@"
    systemctl is-active --quiet howdah || fail "$*: the service is not active"
    [ "$(main_pid)" != "$before" ] || fail "$*: process $before goes on"
}

# Prints messages of ExecStartPre and the server since the last start of the service that are warnings or worse.
unquiet() {
    local all
    all=$(journalctl --no-pager -o cat "_SYSTEMD_INVOCATION_ID=$(systemctl show --property InvocationID --value howdah)")
    grep -q '^# PHP of pool default' <<<"$all" || fail "the journal lacks what check says: $all"
    grep -E '^howdah: | (WARN|ERROR) ' <<<"$all" || true
}

tests() {
    local packages=$1 server php newer newer_php before
    export DEBIAN_FRONTEND=noninteractive LC_ALL=C
    server=$(ls "$packages"/howdah_*.deb) php=$(ls "$packages"/howdah-php*.deb)
    newer=$(ls "$packages"/newer/howdah_*.deb) newer_php=$(ls "$packages"/newer/howdah-php*.deb)
    step "install"
    installed "$server" "$php"
    [ "$(systemctl show --property Type,ActiveState,StatusText howdah | sort | tr '\n' ' ')" = \
        "ActiveState=active StatusText=every pool serves Type=notify " ] || fail "$(systemctl status howdah)"
    cat >/usr/share/howdah/welcome/slow.php <<'PHP'
<?php sleep(4); echo 'slow';
PHP
    cat >/usr/share/howdah/welcome/writes.php <<'PHP'
<?php session_start(); $_SESSION['n'] = ($_SESSION['n'] ?? 0) + 1; session_write_close();
echo $_SESSION['n'], ' ', file_get_contents($_FILES['f']['tmp_name']), ' ', @file_put_contents('/usr/share/x', '') === false ? 'fenced' : 'not fenced';
PHP
    get -c /tmp/jar -F f=@/etc/hostname http://127.0.0.1:8080/writes.php >/tmp/first
    [ "$(get -b /tmp/jar -F 'f=text;filename=f' http://127.0.0.1:8080/writes.php | tail -n 1)" = "2 text fenced" ] ||
        fail "sessions and uploads: $(cat /tmp/first)"
    step "reload, upgrade"
    before=$(main_pid)
    kept systemctl reload howdah
    [ "$(main_pid)" = "$before" ] || fail "a reload is another process"
    taken_over howdah upgrade --config /etc/howdah/howdah.toml
    step "restarts: no request is lost, no warning"
    for _ in 1 2 3 4 5; do
        taken_over systemctl restart howdah
        [ -z "$(unquiet)" ] || fail "a restart is warned of: $(unquiet)"
    done
    howdah check --config /etc/howdah/howdah.toml >/dev/null 2>/tmp/check || fail "check: $(cat /tmp/check)"
    [ ! -s /tmp/check ] || fail "check of a running unit: $(cat /tmp/check)"
    step "a crash, and a server that hangs"
    before=$(main_pid)
    kill -KILL "$before"
    [ "$(get -o /dev/null -w '%{http_code}' http://127.0.0.1:8080/)" = 200 ] || fail "nobody waits for the next process after a crash"
    [ "$(main_pid)" != "$before" ] || fail "process $before goes on"
    mkdir -p /etc/systemd/system/howdah.service.d
    printf '[Service]\nWatchdogSec=2\nTimeoutAbortSec=2\n' >/etc/systemd/system/howdah.service.d/watchdog.conf
    systemctl daemon-reload
    systemctl restart howdah
    before=$(main_pid)
    sleep 5
    [ "$(main_pid)" = "$before" ] || fail "the watchdog has ended a server that lives"
    kill -STOP "$before"
    [ "$(get -o /dev/null -w '%{http_code}' http://127.0.0.1:8080/)" = 200 ] || fail "a server that hangs is not started anew"
    [ "$(main_pid)" != "$before" ] || fail "process $before goes on"
    rm -r /etc/systemd/system/howdah.service.d
    systemctl daemon-reload
    systemctl restart howdah
    step "a newer package takes over, with its template's services"
    sed 's/8080/8090/; s#/run/howdah/#/run/howdah-shop/#' /etc/howdah/howdah.toml >/etc/howdah/shop.toml
    grep -q '^admin' /etc/howdah/shop.toml || sed -i '1i admin = "unix:/run/howdah-shop/admin.sock"' /etc/howdah/shop.toml
    sed -i '/^\[log\]/,/^$/d; /^state/d' /etc/howdah/shop.toml
    systemctl start howdah@shop || fail "howdah@shop: $(systemctl status howdah@shop)"
    before=$(main_pid howdah@shop)
    taken_over installed "$newer" "$newer_php"
    said '^howdah.service: process [0-9]* serves'
    said '^howdah@shop.service: process [0-9]* serves'
    [ "$(main_pid howdah@shop)" != "$before" ] || fail "howdah@shop goes on"
    systemctl stop howdah@shop
    step "another PHP"
    taken_over installed "$newer_php"
    said '^howdah.service: process [0-9]* serves'
    step "settings that do not suit it"
    before=$(main_pid)
    sed -i '1i nonsense = 1' /etc/howdah/howdah.toml
    kept installed "$newer"
    said '^howdah.service goes on with the program from before.*nonsense'
    [ "$(main_pid)" = "$before" ] || fail "settings that are wrong have started something"
    sed -i 1d /etc/howdah/howdah.toml
    step "another unit, and what cannot be upgraded, by a restart"
    echo '# an older one' >>/usr/lib/systemd/system/howdah.service
    installed "$newer"
    said '^howdah.service is restarted: its unit has changed'
    sed -i 's#^admin = .*#admin = "unix:/run/howdah/other.sock"#' /etc/howdah/howdah.toml
    before=$(main_pid)
    installed "$newer"
    said '^howdah.service is restarted: .*no howdah server responds on'
    [ "$(main_pid)" != "$before" ] || fail "process $before goes on"
    step "a socket unit"
    systemctl stop howdah
    ! get http://127.0.0.1:8080/ >/dev/null 2>&1 || fail "it serves after its stop"
    sed -e '/^Listen/d' -e 's/^FileDescriptorName=.*/&\nListenStream=127.0.0.1:8080/' packaging/howdah.socket >/etc/systemd/system/howdah.socket
    systemctl daemon-reload
    systemctl start howdah.socket
    grep -q 'Howdah is installed' <(get http://127.0.0.1:8080/) || fail "no activation by a socket"
    taken_over howdah upgrade --config /etc/howdah/howdah.toml
    taken_over systemctl restart howdah
    [ -z "$(unquiet)" ] || fail "a restart with a unit of sockets is warned of: $(unquiet)"
    systemctl stop howdah
    # As in a shell, which belongs to no unit.
    env -u INVOCATION_ID howdah check --config /etc/howdah/howdah.toml >/dev/null 2>/tmp/check || fail "check: $(cat /tmp/check)"
    ! grep -q 'another process' /tmp/check || fail "check takes the unit's socket for somebody else's: $(cat /tmp/check)"
    systemctl stop howdah.socket howdah
    rm /etc/systemd/system/howdah.socket
    systemctl daemon-reload
    systemctl start howdah
    step "remove, purge"
    rm -f /usr/share/howdah/welcome/{slow,writes}.php /etc/howdah/shop.toml
    apt-get remove -y -qq howdah "$(dpkg-deb -f "$php" Package)" >/tmp/apt.log 2>&1 || fail "remove: $(cat /tmp/apt.log)"
    [ -z "$(pgrep howdah || true)" ] || fail "processes outlive the package: $(pgrep -a howdah)"
    dpkg --purge howdah "$(dpkg-deb -f "$php" Package)" >/tmp/apt.log 2>&1 || fail "purge: $(cat /tmp/apt.log)"
    step "$asked requests came while services were reloaded, upgraded, replaced and restarted, and none was lost"
    touch "$packages/systemd.good"
}

case $1 in
--init) init "$2" ;;
--test) tests "$2" ;;
*) run "$1" ;;
esac
