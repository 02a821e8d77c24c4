#!/bin/bash
# Runs all linters, with warnings as errors, and fails at the end if one of them failed.
set -uo pipefail

cd "$(dirname "$0")/.." || exit 1
failed=()
export PHP_CONFIG=${PHP_CONFIG:-$(scripts/php-version.sh config)}

check() {
    local name=$1
    shift
    printf 'lint: %s\n' "$name"
    "$@" || failed+=("$name")
}

check rustfmt cargo fmt --all --check
# This also compiles the C of the shim, with warnings as errors.
check clippy env HOWDAH_STRICT=1 cargo clippy --profile quick --locked --workspace --all-targets -- -D warnings
# Linked, because only the linker notices a missing file of a mode.
check without-modes cargo build --profile quick --locked --quiet -p howdah-php --no-default-features --target-dir target/without-modes
check dependencies cargo test --profile quick --locked --quiet --workspace --test dependencies
check structure cargo test --profile quick --locked --quiet --workspace --test structure
check words cargo test --profile quick --locked --quiet --workspace --test words
check clang-format clang-format --dry-run -Werror $(find crates/php-host/shim crates/php-host/tests -name '*.[ch]')
check php scripts/lint-php.sh
check documentation env RUSTDOCFLAGS="-D warnings" cargo doc --profile quick --locked --workspace --no-deps --document-private-items --quiet

if [ ${#failed[@]} -gt 0 ]; then
    printf 'lint: failed: %s\n' "${failed[*]}"
    exit 1
fi
echo 'lint: all good'
