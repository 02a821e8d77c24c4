#!/bin/bash
# Installs missing Debian packages for a goal: `setup.sh build|dist|test|scenarios|lint|bench|apps|coverage|
# generate [COMMAND…]`. Prints what it installs, uses sudo only if needed, starts no service, and does nothing if nothing
# is missing. Otherwise the command, which builds what needs none of the packages, runs while apt works.
set -euo pipefail

goal=${1:?which goal: build, dist, test, scenarios, lint, bench, apps, coverage or generate}
shift
here=$(dirname "$0")
minimum_rust=1.88

say() { printf 'setup: %s\n' "$*" >&2; }
fail() { say "$*"; exit 1; }

as_root() {
    if [ "$(id -u)" = 0 ]; then
        "$@"
    elif command -v sudo >/dev/null 2>&1; then
        sudo "$@"
    else
        fail "this needs root, and there is no sudo: run it as root: $*"
    fi
}

# Starts the command once, after sudo has asked for its password. Without a compiler there is nothing it could build.
meanwhile=
command=("$@")
start_command() {
    [ -z "$meanwhile" ] && [ ${#command[@]} -gt 0 ] && command -v cc >/dev/null 2>&1 || return 0
    as_root true
    say "running meanwhile: ${command[*]}"
    # A process group, which ends with this script: Ctrl-C does not reach it.
    set -m
    "${command[@]}" </dev/null &
    set +m
    meanwhile=$!
    trap 'kill -- -$meanwhile 2>/dev/null || true' EXIT
}

check_rust() {
    command -v cargo >/dev/null 2>&1 || fail "cargo is missing: install Rust $minimum_rust or later from https://rustup.rs"
    local version
    version=$(rustc --version | cut -d' ' -f2)
    if [ "$(printf '%s\n%s\n' "$minimum_rust" "${version%%-*}" | sort -V | head -n1)" != "$minimum_rust" ]; then
        fail "Rust $minimum_rust or later is needed, this is $version: run 'rustup update', or install it from https://rustup.rs"
    fi
}

check_rust_tools() {
    cargo fmt --version >/dev/null 2>&1 || fail "rustfmt is missing: run 'rustup component add rustfmt'"
    cargo clippy --version >/dev/null 2>&1 || fail "clippy is missing: run 'rustup component add clippy'"
}

# Debian's package with the LLVM tools of rustc's version, unless rustup's are installed or Debian lacks it.
llvm_tools() {
    local llvm
    [ ! -x "$(rustc --print target-libdir)/../bin/llvm-profdata" ] || return 0
    llvm=$(rustc -vV | sed -nE 's/^LLVM version: ([0-9]+).*/\1/p')
    "$here/known-packages.sh" "llvm-$llvm"
}

# The packages of a goal, for the PHP version in $php.
packages() {
    local base="gcc libc6-dev make php$php-dev libphp$php-embed php$php-common php$php-cli $opcache"
    local tested="apache2 libapache2-mod-php$php php$php-fpm php$php-curl php$php-mbstring php$php-xml php$php-soap nginx-light wrk curl procps util-linux php-symfony-runtime php-symfony-http-kernel php-symfony-framework-bundle php-symfony-dotenv php-symfony-web-profiler-bundle php-laravel-framework php-nyholm-psr7 php-guzzlehttp-psr7 php-slim-psr7"
    # The servers that snapshot mode keeps connections to, and that async mode waits for.
    tested="$tested php$php-mysql php$php-pgsql php$php-redis php$php-sqlite3 php$php-intl mariadb-server postgresql redis-server nats-server sqlite3 openssl testssl.sh python3-venv python3-websockets python3-h2 python3-prometheus-client"
    # Creates the roots with other versions of PHP.
    tested="$tested debootstrap"
    # Packages for the scenarios of PHP alone.
    local scenarios="php$php-curl php$php-mbstring php$php-xml php$php-soap php$php-mysql php$php-pgsql php$php-sqlite3 php$php-intl curl openssl procps util-linux"
    # Builds Pebble, the ACME test server; any Go works (scripts/pebble.sh).
    local acme="golang-go"
    # htpasswd; ab, for the lab; peers of the lab and web servers of the tests
    tested="$tested apache2-utils haproxy lighttpd"
    # A daemon that receives logs.
    tested="$tested rsyslog"
    # Count the cost of a request.
    tested="$tested strace valgrind"
    local symfony="php-symfony-framework-bundle php-symfony-twig-bundle php-symfony-serializer php-symfony-property-access php-symfony-validator php-symfony-dotenv"
    case $goal in
        build) echo "$base" ;;
        # For the lab's loads; without the tools of LLVM, scripts/dist.sh says what to do.
        dist) echo "$base wrk nginx-light python3 $(llvm_tools)" ;;
        test) echo "$base $tested $acme" ;;
        scenarios) echo "$base $scenarios" ;;
        lint) echo "$base clang-format" ;;
        generate) echo "$base php-parser" ;;
        bench) echo "$base $tested $symfony $acme php-symfony-yaml php-doctrine-dbal php-doctrine-orm" ;;
        coverage) echo "$base $tested $acme $(llvm_tools)" ;;
        apps) echo "$base $tested php$php-gd $symfony" ;;
        *) fail "unknown goal: $goal" ;;
    esac
}

is_installed() {
    # A package counts as installed if it is installed itself or another one provides it (nginx provides what
    # nginx-light does).
    case $1 in
        nginx-light) [ -x /usr/sbin/nginx ] ;;
        golang-go) command -v go >/dev/null 2>&1 || [ -x /usr/local/go/bin/go ] || [ -x /usr/bin/go ] ;;
        *) [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ] ;;
    esac
}

missing() {
    local package
    for package in $(packages); do
        is_installed "$package" || echo "$package"
    done
}

# Debian starts the services of packages when they are installed, but the tests need only the programs. A policy file
# forbids that during the installation, unless the machine already has one.
install() {
    local policy=/usr/sbin/policy-rc.d own_policy=no
    if [ ! -e $policy ]; then
        own_policy=yes
        as_root sh -c "printf '#!/bin/sh\nexit 101\n' > $policy && chmod 755 $policy"
    fi
    local status=0
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq -o DPkg::Lock::Timeout=300 --no-install-recommends "$@" || status=$?
    if [ $own_policy = yes ]; then
        as_root rm -f $policy
    fi
    return $status
}

[ -r /etc/debian_version ] && command -v apt-get >/dev/null 2>&1 || fail "this sets up Debian 12 and 13; elsewhere, install the packages in $0 yourself"
case $goal in build | dist | lint | coverage | generate) check_rust ;; esac
if [ "$goal" = lint ]; then check_rust_tools; fi

updated=no
if ! php=$("$here/php-version.sh" 2>/dev/null); then
    start_command
    say "updating apt's package lists"
    as_root apt-get update -qq
    updated=yes
    php=$("$here/php-version.sh")
fi
# From PHP 8.5 on, OPcache is a part of PHP itself.
opcache=php$php-opcache
case $php in 8.5 | 9.*) opcache= ;; esac

read -r -a wanted <<<"$(missing | tr '\n' ' ')"
if [ ${#wanted[@]} -gt 0 ]; then
    start_command
    if [ "$updated" = no ] && ! apt-cache show "${wanted[@]}" >/dev/null 2>&1; then
        say "updating apt's package lists"
        as_root apt-get update -qq
    fi
    say "installing for '$goal': ${wanted[*]}"
    if ! install "${wanted[@]}"; then
        say "installation failed; trying once more with fresh package lists"
        as_root apt-get update -qq
        install "${wanted[@]}"
    fi
fi

# The tests' second HTTP/3 client; Debian 12 has no package of it. Without it, those tests are reported as skipped.
aioquic=1.2.0
if [[ $goal =~ ^(test|coverage)$ ]] && ! "$here/../target/aioquic/bin/python" -c 'import aioquic' 2>/dev/null; then
    say "installing aioquic $aioquic from PyPI into target/aioquic"
    if ! { python3 -m venv "$here/../target/aioquic" && "$here/../target/aioquic/bin/pip" install -q "aioquic==$aioquic"; }; then
        rm -rf "$here/../target/aioquic"
        say "cannot install aioquic: its tests of HTTP/3 will be skipped"
    fi
fi

# The generator of one published comparison that the lab repeats; Debian has no package of it. Without it, the lab uses
# wrk and notes that on the page.
vegeta=v12.12.0
go=$(command -v go || ls /usr/local/go/bin/go /usr/bin/go 2>/dev/null | head -n1 || true)
tools=${CARGO_TARGET_DIR:-$here/../target}/tools
if [ "$goal" = bench ] && [ -n "$go" ] && [ ! -x "$tools/vegeta" ] && ! command -v vegeta >/dev/null 2>&1; then
    say "building vegeta $vegeta from the Go module proxy into $tools"
    mkdir -p "$tools"
    GOBIN=$(cd "$tools" && pwd) "$go" install "github.com/tsenart/vegeta/v12@$vegeta" || say "cannot build vegeta: the lab will use wrk instead"
fi

# If the command has failed, its next run shows the reason.
if [ -n "$meanwhile" ]; then
    say "installed; waiting for: ${command[*]}"
    wait $meanwhile || true
    trap - EXIT
fi
