#!/bin/bash
# Runs black-box tests, each in a separate process with a time limit (tests/runner): `scenarios.sh CARGO_TEST_ARGUMENTS…
# [-- LIBTEST_ARGUMENTS…]`. HOWDAH_BIN is the server to test. Always builds the whole workspace: for a single package,
# cargo would choose other features and compile third-party crates again; with the profile of `make quick`, whose crates
# the tests share.
set -euo pipefail
cd "$(dirname "$0")/.."

cargo=${CARGO:-cargo}
"$cargo" build --quiet --profile quick --locked --workspace --bin howdah-test-runner
runner=$(realpath "${CARGO_TARGET_DIR:-target}")/quick/howdah-test-runner
exec scripts/skips.sh "$cargo" --config "target.'cfg(unix)'.runner = '$runner'" test --profile quick --locked --workspace --no-fail-fast "$@"
