#!/bin/bash
# Builds howdah-php with a PHP of any origin, and runs the scenarios on it: `test-php.sh PHP_CONFIG [FILTER…]`. The PHP
# must not be thread-safe and needs its embed library (--enable-embed=shared). Scenarios compare with a PHP-FPM of the
# same version if there is one. Builds in place: the next `make quick` builds howdah-php for this machine's PHP again.
set -euo pipefail
cd "$(dirname "$0")/.."

PHP_CONFIG=${1:?which php-config}
export PHP_CONFIG
shift
version=$("$PHP_CONFIG" --version)
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
short=${version%.*}
extensions=$target/extensions-$short

echo "PHP $version ($PHP_CONFIG)"
# Both: for one alone, cargo would build their crates again, with fewer features.
cargo build --profile quick --locked -p howdah -p howdah-php
PHP_VERSION=$short scripts/unpack-extensions.sh "$extensions"
prefix=$("$PHP_CONFIG" --prefix)
fpm=${PHP_FPM:-$(ls "$prefix/sbin/php-fpm$short" "$prefix/sbin/php-fpm" 2>/dev/null | head -n 1 || true)}
if [ -n "$fpm" ]; then
    export PHP_FPM=$fpm
elif [[ " $* " != *" ::reference "* ]]; then
    scripts/skips.sh --record "scenarios on the reference" php-fpm "there is no PHP-FPM $short in $prefix"
    set -- "$@" --skip ::reference
fi
HOWDAH_EXTENSIONS=$extensions HOWDAH_BIN=$target/quick/howdah HOWDAH_ALLOW_ROOT=true \
    exec scripts/scenarios.sh --test scenarios -- "$@"
