#!/bin/bash
# Makes the Debian packages of the built programs (BUILT, target/release), and installs, starts, upgrades, removes and
# purges them in a fresh root of this machine's Debian: without systemd, as in a container, then with it
# (test-packages-systemd.sh).
set -euo pipefail
cd "$(dirname "$0")/.."

fail() { printf 'test-packages: %s\n' "$*" >&2; exit 1; }
step() { printf 'test-packages: %s\n' "$*"; }
one() { set -- $1; [ $# = 1 ] && [ -e "$1" ] || fail "expected one file, found: $*"; echo "$1"; }

if [ "${1-}" != --inside ]; then
    suite=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
    export OUT=target/packages
    rm -rf "$OUT"
    version=$("${BUILT:-target/release}/howdah" --version | cut -d' ' -f2)
    VERSION=$version-1 packaging/debian/build.sh
    OUT=$OUT/newer VERSION=$version-2 packaging/debian/build.sh
    # The root has a separate target/.
    packages=$(mktemp -d "$PWD/.packages.XXXXXX")
    trap 'rm -rf "$packages"' EXIT
    cp -r "$OUT"/. "$packages/"
    status=0
    FRESH=1 scripts/in-debian.sh "$suite" scripts/test-packages.sh --inside "$packages" || status=$?
    if [ $status = 3 ]; then
        scripts/skips.sh --record packages debootstrap "root, debootstrap and a Debian mirror are needed"
        exit
    fi
    if [ -e "$packages/no-systemd" ]; then
        scripts/skips.sh --record packages-systemd namespaces "systemd needs its own namespaces and control groups"
    fi
    exit $status
fi

packages=$2
export DEBIAN_FRONTEND=noninteractive LC_ALL=C
get() { curl --silent --show-error --max-time 10 "$@"; }

# Runs the service as its unit does, because systemd is not running.
start() {
    local unit=/usr/lib/systemd/system/howdah.service pre command
    mkdir -p /run/howdah
    pre=$(sed -n 's/^ExecStartPre=//p' $unit) command=$(sed -n 's/^ExecStart=//p' $unit)
    $pre >/tmp/check 2>&1 || { cat /tmp/check; fail "the check before the start failed"; }
    $command >/tmp/server.log 2>&1 &
    server=$!
    local tries=0
    until [ "$(get -o /dev/null -w '%{http_code}' http://127.0.0.1:8080/ 2>/dev/null)" = 200 ]; do
        kill -0 $server 2>/dev/null && [ $((tries += 1)) -lt 600 ] || { cat /tmp/server.log; fail "the server does not serve"; }
        sleep 0.2
    done
}

# eventually WHY COMMAND…: repeats the command until it succeeds.
eventually() {
    local why=$1 tries=0
    shift
    until "$@"; do
        [ $((tries += 1)) -lt 150 ] || fail "$why"
        sleep 0.2
    done
}

stop() {
    kill "$server"
    wait "$server" || fail "the server ended with status $?"
}

owner() { stat -c %U:%G:%a "$1"; }
expect() { [ "$2" = "$3" ] || fail "$1: expected $3, found $2"; }

installed() {
    apt-get install -y -qq --no-install-recommends "$@" >/tmp/apt.log 2>&1 || { tail -n 20 /tmp/apt.log; fail "cannot install $*"; }
}

apt-get update -qq >/tmp/apt.log
installed curl procps
server_package=$(one "$packages/howdah_*.deb") php_package=$(one "$packages/howdah-php*.deb")
php=$(dpkg-deb -f "$php_package" Package)
version=${php#howdah-php}

step "install"
installed "$server_package" "$php_package"
expect "the user" "$(getent passwd howdah | cut -d: -f6,7)" /var/lib/howdah:/usr/sbin/nologin
expect "the logs" "$(owner /var/log/howdah)" howdah:adm:2750
expect "the state" "$(owner /var/lib/howdah)" howdah:howdah:700
expect "the settings" "$(owner /etc/howdah/howdah.toml)" root:root:644
for page in man1/howdah.1 man1/howdah-serve.1 man5/howdah.toml.5; do
    grep -q '^\.TH' <(gzip -dc "/usr/share/man/$page.gz") || fail "no manual page $page"
done
bash -c '. /usr/share/bash-completion/completions/howdah && complete -p howdah' >/dev/null || fail "no completions for bash"
howdah check --config /etc/howdah/howdah.toml >/tmp/check 2>&1 || { cat /tmp/check; fail "howdah check"; }
grep -q "^# PHP of pool default: howdah-php .* (PHP $version\..*), /usr/libexec/howdah/howdah-php$version$" /tmp/check ||
    { cat /tmp/check; fail "check does not name PHP $version"; }

step "start"
start
get http://127.0.0.1:8080/?name=packages | grep -q 'Howdah is installed and runs PHP' || fail "the welcome page does not run PHP"
expect "the server's user" "$(ps -o user= -p "$(pgrep -u howdah -x howdah)")" howdah
expect "PHP's user" "$(ps -C "howdah-php$version" -o user= | sort -u)" www-data
howdah status --config /etc/howdah/howdah.toml | grep -q "pool default (classic mode, PHP $version\." || fail "status"
eventually "no access log" grep -q 'GET /?name=packages' /var/log/howdah/access.log

step "upgrade while it runs"
echo '# the administrator was here' >>/etc/howdah/howdah.toml
installed "$(one "$packages/newer/howdah_*.deb")" "$(one "$packages/newer/howdah-php*.deb")"
dpkg-query -W -f '${Version}\n' howdah | grep -q -- '-2$' || fail "not upgraded"
tail -n1 /etc/howdah/howdah.toml | grep -q 'was here' || fail "the settings were replaced"
get http://127.0.0.1:8080/?name=upgrade | grep -q 'Howdah is installed and runs PHP' || fail "the running server stopped serving"
stop
start
stop
[ -z "$(pgrep -f howdah-php || true)" ] || fail "PHP outlived its server"

step "remove"
apt-get remove -y -qq howdah "$php" >/tmp/apt.log 2>&1 || { cat /tmp/apt.log; fail "cannot remove"; }
[ ! -e /usr/bin/howdah ] && [ ! -e /usr/libexec/howdah ] || fail "removal left programs"
tail -n1 /etc/howdah/howdah.toml | grep -q 'was here' || fail "removal took the settings"
[ -s /var/log/howdah/access.log ] || fail "removal took the logs"

step "purge"
dpkg --purge howdah "$php" >/tmp/apt.log 2>&1 || { cat /tmp/apt.log; fail "cannot purge"; }
left=$(find / -xdev -name '*howdah*' -not -path "$PWD*" -not -path '/tmp/*' -not -path '/proc/*' -not -path '*/90howdah' -not -path '/var/log/apt/*')
[ -z "$left" ] || fail "left after purge: $left"

step "again, with systemd"
installed systemd
installed "$server_package" "$php_package"
expect "the state" "$(owner /var/lib/howdah)" howdah:howdah:700
[ -L /etc/systemd/system/multi-user.target.wants/howdah.service ] || fail "the service is not enabled"
systemd-analyze verify --man=no /usr/lib/systemd/system/howdah.service howdah@shop.service 2>&1 | tee /tmp/verify
[ ! -s /tmp/verify ] || fail "systemd-analyze verify"
systemd-analyze security --offline=true --no-pager /usr/lib/systemd/system/howdah.service | tail -n 1
dpkg --purge howdah "$php" >/tmp/apt.log 2>&1 || { cat /tmp/apt.log; fail "cannot purge"; }
[ ! -e /etc/systemd/system/multi-user.target.wants/howdah.service ] || fail "purge left the service enabled"
scripts/test-packages-systemd.sh --download "$packages" || fail "cannot download packages"
status=0
scripts/test-packages-systemd.sh "$packages" || status=$?
case $status in
0) ;;
3) touch "$packages/no-systemd" ;;
*) fail "with systemd" ;;
esac
step "all good"
