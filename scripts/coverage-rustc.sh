#!/bin/sh
# Cargo's wrapper for the crates of this repository in `make coverage`: counts which of their lines run. Not those of build
# scripts, which run while nothing reads their counters.
case " $* " in
    *" --crate-name build_script_"*) exec "$@" ;;
esac
exec "$@" -C instrument-coverage
