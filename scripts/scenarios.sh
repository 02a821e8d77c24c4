#!/bin/bash
# Runs black-box tests, each in its own process with a time limit (tests/runner): `scenarios.sh CARGO_TEST_ARGUMENTS… [--
# LIBTEST_ARGUMENTS…]`. HOWDAH_BIN names the server to test. Always for the whole workspace: for one package alone cargo
# would choose other features and compile third-party crates once more.
set -euo pipefail
cd "$(dirname "$0")/.."

cargo=${CARGO:-cargo}
"$cargo" build --quiet --locked --workspace --bin howdah-test-runner
runner=$(realpath "${CARGO_TARGET_DIR:-target}")/debug/howdah-test-runner
exec scripts/skips.sh "$cargo" --config "target.'cfg(unix)'.runner = '$runner'" test --locked --workspace --no-fail-fast "$@"
