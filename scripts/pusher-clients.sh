#!/bin/bash
# Installs pusher-js and laravel-echo, the clients that browsers use, and ws, Node's WebSocket client, into
# target/pusher-clients (or the given directory), once per version; tests run them in Node and in a browser. Exits with 2
# without npm or network: those tests are then reported as skipped.
set -euo pipefail

packages='pusher-js@8.6.0 laravel-echo@2.5.0 ws@8.23.0'

here=$(cd "$(dirname "$0")/.." && pwd)
out=${1:-$here/target/pusher-clients}
say() { printf 'pusher-clients: %s\n' "$*" >&2; }

if [ "$(cat "$out/version" 2>/dev/null)" = "$packages" ]; then
    exit 0
fi
if ! command -v npm >/dev/null; then
    say "there is no npm: install nodejs and npm"
    exit 2
fi
mkdir -p "$out"
# shellcheck disable=SC2086 # several words
if ! npm install --prefix "$out" --no-save --no-audit --no-fund --ignore-scripts --legacy-peer-deps $packages >"$out/log" 2>&1; then
    cat "$out/log" >&2
    say "cannot install them: is there a network?"
    exit 2
fi
printf '%s\n' "$packages" >"$out/version"
