#!/bin/bash
# `make test`: builds, runs all tests, and ends with the time of each step. A failed step does not prevent the next
# ones, unless nothing can run without it. Test programs run each test in a separate process (tests/runner).
set -uo pipefail
cd "$(dirname "$0")/.."

target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
cargo=${CARGO:-cargo}
steps=() failed=()
# The server that the tests of the lab start: not that of another build in the same directory.
export HOWDAH=$target/quick/howdah

# step NAME COMMAND…
step() {
    local name=$1 began=$SECONDS status=0
    shift
    printf '\n== %s\n' "$name"
    "$@" || status=$?
    steps+=("$(printf '%6d s  %s' $((SECONDS - began)) "$name")")
    [ $status = 0 ] || failed+=("$name")
    return $status
}
finish() {
    printf '\ntime of each step:\n'
    printf '    %s\n' "${steps[@]}"
    [ ${#failed[@]} = 0 ] || { printf 'failed: %s\n' "${failed[@]}"; exit 1; }
    exit 0
}
need() { step "$@" || finish; }

scenarios() { HOWDAH_BIN=$target/quick/howdah scripts/scenarios.sh --test scenarios "$@"; }
# The scenarios that best cover a version of HTTP; HTTP_SCENARIOS in the Makefile has the others.
telling=(protocol::an_expected_100_continue_precedes_the_body early_hints::hints_arrive_while_the_script_still_runs
    input::raw_bodies_of_every_size input::a_truncated_upload input::bodies_over_the_servers_limit
    input::a_body_that_the_script_ignores input::chunked_bodies output::flushed_output output::head_has_no_body
    output::a_wrong_content_length output::empty_answers output::big_bodies output::headers_and_cookies
    half_closed_clients::a_client_that_leaves_the_queue)
over_http() { HOWDAH_TEST_MODES=classic HOWDAH_TEST_HTTP=$1 scenarios -- "${telling[@]/#/server::}" --skip ::reference; }
composer_packages() {
    local php test status=0
    php=$("${PHP_CONFIG:-$(scripts/php-version.sh config)}" --php-binary)
    for test in php/*/tests/*.php; do "$php" "$test" || status=1; done
    return $status
}
# strace and callgrind need processes that they may trace.
counts() {
    if ! strace -f -o /dev/null true 2>/dev/null || [ "$(id -u)" != 0 ]; then
        scripts/skips.sh --record counts tracing 'only root traces processes of PHP, and not in every container'
        return 0
    fi
    "$cargo" build --quiet --profile quick --locked --workspace --bin howdah-lab || return
    "$target/quick/howdah-lab" counts --build quick
}
tools() {
    scripts/pebble.sh "$target/pebble" || [ $? = 2 ] || return
    scripts/pusher-clients.sh "$target/pusher-clients" || [ $? = 2 ] || return
    scripts/unpack-extensions.sh "$target/extensions" || return
    scripts/unpack-package.sh "$target/prometheus" prometheus usr/bin/prometheus || return
    scripts/unpack-package.sh "$target/web-servers" caddy usr/bin/caddy || return
    scripts/unpack-package.sh "$target/web-servers" libfcgi-bin usr/bin/cgi-fcgi || return
    scripts/unpack-package.sh "$target/web-servers" libfcgi0ldbl,libfcgi0t64 'usr/lib/*/libfcgi.so.0'
}

rm -f "$target/test-run/flaky.txt"
need 'install packages' scripts/setup.sh test
# Runs while the compiler does, as it mostly waits for the network. The process group ends with this script.
tools_log=$(mktemp)
set -m
tools </dev/null >"$tools_log" 2>&1 &
set +m
tools=$!
trap 'kill -- -$tools 2>/dev/null; rm -f "$tools_log"' EXIT
tools_end() {
    wait $tools
    local status=$?
    cat "$tools_log"
    return $status
}
need 'build the server (quick)' "$cargo" build --profile quick --locked -p howdah -p howdah-php
need 'build the tests' "$cargo" test --profile quick --locked --workspace --lib --bins --tests --no-run
need 'build the scenarios' "$cargo" test --profile quick --locked --workspace --test scenarios --no-run
step 'wait for the tools of the tests' tools_end
export HOWDAH_EXTENSIONS=$target/extensions
step 'unit tests' scripts/scenarios.sh --lib --bins --tests
step 'Composer packages' composer_packages
step 'import tables' scripts/test-relocations.sh
step 'scenarios' scenarios
step 'scenarios over HTTP/2' over_http 2
step 'scenarios over HTTP/3' over_http 3
step 'counts' counts
finish
