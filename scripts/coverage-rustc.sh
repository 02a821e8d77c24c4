#!/bin/sh
# Cargo's compiler wrapper for the crates of this repository in `make coverage`: adds counters to their lines. Excludes
# build scripts: they run when nothing reads their counters.
case " $* " in
    *" --crate-name build_script_"*) exec "$@" ;;
esac
exec "$@" -C instrument-coverage
