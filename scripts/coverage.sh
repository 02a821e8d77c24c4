#!/bin/bash
# `make coverage`: finds the lines of the Rust code (LLVM) and of the C shim (gcov) that run in the unit tests and
# scenarios of `make test`, or in the given scenarios: `coverage.sh [SCENARIO…]`. Builds in target/coverage;
# target/coverage/report has the figures of each file and the lines that did not run.
#
# Counters are lost if a process is killed, or if a sandbox or another user cannot write them.
set -euo pipefail
cd "$(dirname "$0")/.."

cargo=${CARGO:-cargo}
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")/coverage
profiles=$target/profiles report=$target/report
lack() { printf 'coverage: %s\n' "$*" >&2; exit 1; }

profdata=$(scripts/llvm-tool.sh llvm-profdata)
cov=$(scripts/llvm-tool.sh llvm-cov)
command -v gcov >/dev/null || lack "no gcov: install gcc"

rm -rf "$profiles" "$report"
mkdir -p "$profiles" "$report"
chmod 1777 "$profiles"
find "$target" -name '*.gcda' -delete
export CARGO_TARGET_DIR=$target HOWDAH_COVERAGE=$profiles RUSTC_WORKSPACE_WRAPPER=$PWD/scripts/coverage-rustc.sh
# %m: one file per program, to which its processes add.
export LLVM_PROFILE_FILE=$profiles/%m.profraw GCOV_ERROR_FILE=/dev/null

"$cargo" build --profile quick --locked -p howdah -p howdah-php
# These create the counter files; afterwards processes of every user can add to them.
"$target/quick/howdah" --version >/dev/null
"$target/quick/howdah-php" --version >/dev/null 2>&1 || true
mapfile -t notes < <(find "$target/quick/build" -path '*/howdah-php-*/out/*' -name '*.gcno')
find "$target/quick/build" -name '*.gcda' -exec chmod a+rw {} +
chmod a+rw "$profiles"/*

failed=0
export HOWDAH_BIN=$target/quick/howdah
if [ $# = 0 ]; then
    scripts/scenarios.sh --lib --bins || failed=1
fi
scripts/scenarios.sh --test scenarios -- "$@" || failed=1
[ $failed = 0 ] || printf '\ncoverage: some tests failed\n'

# Objects contain the map from counters to lines: the programs, and those of the unit tests.
objects=(-object "$target/quick/howdah" -object "$target/quick/howdah-php")
while read -r program; do
    objects+=(-object "$program")
done < <([ $# != 0 ] || "$cargo" test --quiet --profile quick --locked --workspace --lib --bins --no-run --message-format json |
    sed -n 's/.*"executable":"\([^"]*\)".*/\1/p')
"$profdata" merge -sparse -o "$target/profdata" "$profiles"/*.profraw
"$cov" report -instr-profile "$target/profdata" "${objects[@]}" -summary-only \
    -ignore-filename-regex '_tests\.rs$|/src/tests/' -sources "$PWD"/crates/*/src >"$report/rust.txt"
(cd crates/php-host && gcov -n "${notes[@]}" 2>/dev/null) >"$report/shim.txt"

# Lines that ran, lines, share, name: by crate, and by folder of the shim.
printf '\nlines that ran, of, share\n'
awk '$1 ~ /\.rs$/ { name = $1; sub("/src/.*", "", name); sub(".*/", "", name); all[name] += $8; missed[name] += $9 }
    END { for (name in all) printf "%6d %6d %5.1f %%  %s\n", all[name] - missed[name], all[name],
        100 * (1 - missed[name] / all[name]), name }' "$report/rust.txt" | sort -k5 | tee "$report/summary.txt"
awk -F"[':% ]+" '/^File / { name = $2 ~ /^shim\/.*\.c$/ ? $2 : ""; sub("/[^/]*$", "", name) }
    /^Lines executed/ && name != "" { ran[name] += $3 * $5 / 100; all[name] += $5; name = "" }
    END { for (name in all) printf "%6d %6d %5.1f %%  %s\n", ran[name] + 0.5, all[name], 100 * ran[name] / all[name], name }' \
    "$report/shim.txt" | sort -k5 | tee -a "$report/summary.txt"
awk '{ kind = $5 ~ /^shim/ ? "C" : "Rust"; ran[kind] += $1; all[kind] += $2 }
    END { for (kind in all) printf "%6d %6d %5.1f %%  all of %s\n", ran[kind], all[kind], 100 * ran[kind] / all[kind], kind }' \
    "$report/summary.txt"
exit $failed
