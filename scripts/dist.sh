#!/bin/bash
# `make dist`: builds howdah and howdah-php as packages ship them. howdah is guided by a profile (PGO): built with
# counters, put under the lab's loads, and built again for the code that these have run. Code that they do not run is
# optimized for size, so they have to cover what many requests need.
#
# PGO=no builds once, without a profile. howdah-php is not guided: its processes end without writing their counters.
set -euo pipefail
cd "$(dirname "$0")/.."

cargo=${CARGO:-cargo}
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
lab=$target/quick/howdah-lab
counted=$target/counted
profiles=$counted/profiles
say() { printf 'dist: %s\n' "$*"; }
build() { "$cargo" build --profile dist --locked "$@"; }

# howdah's relocations in the compact form that ld.so understands since glibc 2.36: 1 MB less.
compact="${RUSTFLAGS:-} -Clink-arg=-Wl,-z,pack-relative-relocs"

# load DURATION SYSTEMS CASES [ARGUMENT…]: the lab's own processes have no counters.
load() {
    LLVM_PROFILE_FILE=$profiles/%m-%p.profraw HOWDAH=$counted/dist/howdah PATH=$counted/dist:$PATH \
        "$lab" run --rounds 1 --warmup 0 --no-latency --no-floor \
        --out "$counted/results" --duration "$1" --systems "$2" --cases "$3" "${@:4}" 2>&1 | tee "$counted/load" |
        grep req/s || { cat "$counted/load" >&2; exit 1; }
}

if [ "${PGO:-yes}" = no ]; then
    RUSTFLAGS=$compact build -p howdah
    build -p howdah-php
    exit
fi
profdata=$(scripts/llvm-tool.sh llvm-profdata)

say "step 1 of 3: build with counters; step 3 takes as long (PGO=no: a single build)"
CARGO_TARGET_DIR=$counted RUSTFLAGS="${RUSTFLAGS:-} -Cprofile-generate=$profiles" build -p howdah
CARGO_TARGET_DIR=$counted build -p howdah-php
"$cargo" build --profile quick --locked --workspace --bin howdah-lab

say "step 2 of 3: count under load"
# Build scripts have counters too.
rm -rf "$profiles"
load 1 howdah-classic,howdah-worker,howdah-snapshot,howdah-async hello,hello-c100
load 1 howdah-classic html,html-identity,pdf,static,closing,proxy
load 1 howdah-classic tls-hello,tls-resumed,tls-static,tls-hello-http2,tls-static-http2,tls-hello-http3,tls-static-http3
load 2 site hello,html,static --system-file lab/training.toml
LLVM_PROFILE_FILE=$profiles/%m-%p.profraw lab/live.py --howdah "$counted/dist/howdah" --idle 500 --fan-out 500 --messages 5000 \
    >"$counted/load" || { cat "$counted/load" >&2; exit 1; }
"$profdata" merge -o "$counted/profile" "$profiles"/*.profraw

say "step 3 of 3: build for that load"
RUSTFLAGS="$compact -Cprofile-use=$counted/profile" build -p howdah
build -p howdah-php
