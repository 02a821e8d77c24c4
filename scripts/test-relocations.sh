#!/bin/bash
# Compiles the hooks of async mode for this processor and, if the cross compiler and qemu are installed, for aarch64,
# and runs the program of crates/php-host/tests/relocations that shows which calls they replace. With full and lazy
# binding, because the tables differ. Also checks that the whole shim compiles for aarch64.
set -euo pipefail

cd "$(dirname "$0")/.."
php_config=${PHP_CONFIG:-$(scripts/php-version.sh config)}
read -ra includes <<<"$("$php_config" --includes | sed 's/-I/-isystem /g')"
# As in build.rs, for the headers that exist.
defines=()
for header in pdo/php_pdo_driver.h mbstring/mbstring.h mysqli/php_mysqli_structs.h; do
    name=${header%%/*}
    found=$(find "${includes[@]#-isystem}" -path "*/ext/$header" -print -quit 2>/dev/null || true)
    defines+=("-DSHIM_WITH_${name^^}=$([ -n "$found" ] && echo 1 || echo 0)")
done
source=crates/php-host/tests/relocations
shim=crates/php-host/shim
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

self_test() {
    local compiler=$1 run=("${@:2}")
    for binding in now lazy; do
        "$compiler" -shared -fPIC -O1 -Wl,-z,relro,-z,$binding -o "$work/libphptest.so" $source/library.c
        "$compiler" -shared -fPIC -O1 -Wl,-z,relro,-z,$binding -o "$work/libother.so" $source/other.c
        "$compiler" -std=gnu11 -D_GNU_SOURCE "${includes[@]}" "${defines[@]}" -I$shim -Wno-attributes -o "$work/test" \
            $source/main.c $shim/async/hooks/hooks.c $shim/async/hooks/waits.c $shim/process/import_hooks.c \
            -L"$work" -lphptest -lother -Wl,-rpath,"$work"
        "${run[@]}" "$work/test"
        echo "relocations: $("$compiler" -dumpmachine), $binding binding: good"
    done
}

self_test gcc
if command -v aarch64-linux-gnu-gcc >/dev/null && command -v qemu-aarch64 >/dev/null; then
    find $shim -name '*.c' -print0 | while read -r -d '' file; do
        aarch64-linux-gnu-gcc -fsyntax-only -std=gnu11 -D_GNU_SOURCE "${includes[@]}" "${defines[@]}" -I$shim "$file"
    done
    self_test aarch64-linux-gnu-gcc qemu-aarch64 -L /usr/aarch64-linux-gnu
else
    scripts/skips.sh --record test-relocations aarch64 'install gcc-aarch64-linux-gnu, libc6-dev-arm64-cross and qemu-user'
fi
