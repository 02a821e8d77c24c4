# Tests of the packaged unit while requests arrive: reloads, restarts, crashes, newer packages, sockets, removal. Part of
# test-packages-systemd.sh.
# shellcheck shell=bash

asked=0
# The server that `kept` sends requests to.
address=http://127.0.0.1:8080

# Waits until this number of requests of `kept` have been answered, or lost.
answered() {
    local tries=0
    until [ "$(cat /tmp/codes.* | wc -l)" -ge "$1" ]; do
        [ $((tries += 1)) -lt 600 ] || fail "requests are not answered in time"
        sleep 0.1
    done
}

# kept COMMAND…: runs it while requests arrive, one of which takes longer than the command; none may be lost.
kept() {
    local slow number lost
    local -a loads=()
    rm -f /tmp/stop /tmp/codes.*
    get -o /dev/null -w '%{http_code}\n' "$address/slow.php" >/tmp/slow &
    slow=$!
    for number in 1 2 3; do
        (while [ ! -e /tmp/stop ]; do
            get -o /dev/null -w '%{http_code}\n' "$address/" || true
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

# taken_over COMMAND…: requires that it replaces the service's process.
taken_over() {
    local before mode profile
    before=$(main_pid)
    kept "$@"
    systemctl is-active --quiet howdah || fail "$*: the service is not active"
    [ "$(main_pid)" != "$before" ] || fail "$*: process $before was not replaced"
}

# Prints messages of ExecStartPre and the server since the last start of the service that are warnings or worse.
unquiet() {
    local all
    all=$(journalctl --no-pager -o cat "_SYSTEMD_INVOCATION_ID=$(systemctl show --property InvocationID --value howdah)")
    grep -q '^checked /etc/howdah/howdah.toml: no errors$' <<<"$all" || fail "the journal lacks the result of check: $all"
    ! grep -q '^# PHP of pool' <<<"$all" || fail "check fills the journal: $all"
    grep -E '^howdah: | (WARN|ERROR) ' <<<"$all" || true
}

# Lets systemd start the service more often than five times in ten seconds.
often_started() { systemctl reset-failed howdah; }

service_tests() {
    local before
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
    step "every mode, and the sandbox"
    cp /etc/howdah/howdah.toml /tmp/howdah.toml
    echo '<?php while (frankenphp_handle_request(function () { echo "by the loop"; })) {}' >/usr/share/howdah/welcome/loop.php
    for mode in worker snapshot async; do
        sed "1i mode = \"$mode\"\nscript = \"/usr/share/howdah/welcome/loop.php\"" /tmp/howdah.toml >/etc/howdah/howdah.toml
        often_started
        systemctl restart howdah || fail "mode = $mode: $(systemctl status howdah)"
        [ "$(get http://127.0.0.1:8080/)" = "by the loop" ] || fail "mode = $mode: $(get http://127.0.0.1:8080/)"
        grep -q "pool default ($mode mode" <(howdah status) || fail "mode = $mode: $(howdah status)"
    done
    echo '<?php echo @file_get_contents("/etc/howdah/howdah.toml") === false ? "refused" : "read";' >/usr/share/howdah/welcome/reads.php
    for profile in app learn; do
        sed "1i sandbox = \"$profile\"" /tmp/howdah.toml >/etc/howdah/howdah.toml
        often_started
        systemctl restart howdah || fail "sandbox = $profile: $(systemctl status howdah)"
        get http://127.0.0.1:8080/reads.php >/tmp/page
        case $profile-$(cat /tmp/page) in
        app-refused | learn-read) ;;
        *) fail "sandbox = $profile: $(cat /tmp/page)" ;;
        esac
    done
    howdah status --sandbox | grep -q howdah.toml || fail "not learned: $(howdah status --sandbox)"
    cp /tmp/howdah.toml /etc/howdah/howdah.toml
    rm /usr/share/howdah/welcome/{loop,reads}.php
    often_started
    systemctl restart howdah
    step "reload, upgrade"
    before=$(main_pid)
    kept systemctl reload howdah
    [ "$(main_pid)" = "$before" ] || fail "a reload replaced the process"
    taken_over howdah upgrade --config /etc/howdah/howdah.toml
    step "restarts: no request is lost, no warning"
    for _ in 1 2 3 4 5; do
        taken_over systemctl restart howdah
        [ -z "$(unquiet)" ] || fail "a restart logs warnings: $(unquiet)"
    done
    howdah check --config /etc/howdah/howdah.toml >/dev/null 2>/tmp/check || fail "check: $(cat /tmp/check)"
    [ ! -s /tmp/check ] || fail "check of a running unit: $(cat /tmp/check)"
    step "a crash, and a server that hangs"
    before=$(main_pid)
    kill -KILL "$before"
    [ "$(get -o /dev/null -w '%{http_code}' http://127.0.0.1:8080/)" = 200 ] || fail "no response after a crash"
    [ "$(main_pid)" != "$before" ] || fail "process $before was not replaced"
    mkdir -p /etc/systemd/system/howdah.service.d
    printf '[Service]\nWatchdogSec=2\nTimeoutAbortSec=2\n' >/etc/systemd/system/howdah.service.d/watchdog.conf
    systemctl daemon-reload
    systemctl restart howdah
    before=$(main_pid)
    sleep 5
    [ "$(main_pid)" = "$before" ] || fail "the watchdog ended a server that responds"
    kill -STOP "$before"
    [ "$(get -o /dev/null -w '%{http_code}' http://127.0.0.1:8080/)" = 200 ] || fail "a server that hangs was not restarted"
    [ "$(main_pid)" != "$before" ] || fail "process $before was not replaced"
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
    [ "$(main_pid howdah@shop)" != "$before" ] || fail "howdah@shop was not replaced"
    systemctl stop howdah@shop
    step "another PHP"
    taken_over installed "$newer_php"
    said '^howdah.service: process [0-9]* serves'
    step "settings that the new program refuses"
    before=$(main_pid)
    sed -i '1i nonsense = 1' /etc/howdah/howdah.toml
    kept installed "$newer"
    said '^howdah.service keeps running the previous program.*nonsense'
    [ "$(main_pid)" = "$before" ] || fail "invalid settings replaced process $before"
    sed -i 1d /etc/howdah/howdah.toml
    step "restarts for a changed unit and after a failed upgrade"
    echo '# an older one' >>/usr/lib/systemd/system/howdah.service
    installed "$newer"
    said '^howdah.service is restarted: its unit has changed'
    sed -i 's#^admin = .*#admin = "unix:/run/howdah/other.sock"#' /etc/howdah/howdah.toml
    before=$(main_pid)
    installed "$newer"
    said '^howdah.service is restarted: .*no howdah server responds on'
    [ "$(main_pid)" != "$before" ] || fail "process $before was not replaced"
    step "a socket unit"
    systemctl stop howdah
    ! get http://127.0.0.1:8080/ >/dev/null 2>&1 || fail "the stopped service still responds"
    sed -e '/^Listen/d' -e 's/^FileDescriptorName=.*/&\nListenStream=127.0.0.1:8080/' packaging/howdah.socket >/etc/systemd/system/howdah.socket
    systemctl daemon-reload
    systemctl start howdah.socket
    grep -q 'Howdah is installed' <(get http://127.0.0.1:8080/) || fail "the socket did not start the service"
    taken_over howdah upgrade --config /etc/howdah/howdah.toml
    taken_over systemctl restart howdah
    [ -z "$(unquiet)" ] || fail "a restart with a socket unit logs warnings: $(unquiet)"
    systemctl stop howdah
    # As in a shell, which belongs to no unit.
    env -u INVOCATION_ID howdah check --config /etc/howdah/howdah.toml >/dev/null 2>/tmp/check || fail "check: $(cat /tmp/check)"
    ! grep -q 'another process' /tmp/check || fail "check reports the unit's socket as another process's: $(cat /tmp/check)"
    systemctl stop howdah.socket howdah
    rm /etc/systemd/system/howdah.socket
    systemctl daemon-reload
    systemctl start howdah
    step "remove, purge"
    rm -f /usr/share/howdah/welcome/{slow,writes}.php /etc/howdah/shop.toml
    apt-get remove -y -qq howdah "howdah-php$version" >/tmp/apt.log 2>&1 || fail "remove: $(cat /tmp/apt.log)"
    [ -z "$(pgrep howdah || true)" ] || fail "processes outlive the package: $(pgrep -a howdah)"
    dpkg --purge howdah "howdah-php$version" >/tmp/apt.log 2>&1 || fail "purge: $(cat /tmp/apt.log)"
    step "$asked requests came while services were reloaded, upgraded, replaced and restarted, and none was lost"
}
