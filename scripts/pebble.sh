#!/bin/bash
# Builds Pebble, the ACME test server, with its DNS server into target/pebble (or the given directory), once per
# version, for the tests of automatic certificates. Sources come from the Go module proxy and are verified with its
# checksum database; nothing is written outside target/. Exits with 2 without Go or network: those tests are then
# reported as skipped.
set -euo pipefail

pebble=v2.10.1
# The oldest one that Pebble's go.mod accepts. Debian 12 has Go 1.19, which cannot download a newer toolchain
# automatically (1.21 can), but it can download one in its published form: as a module.
toolchain=go1.24.2

here=$(cd "$(dirname "$0")/.." && pwd)
out=${1:-$here/target/pebble}
say() { printf 'pebble: %s\n' "$*" >&2; }

if [ "$(cat "$out/version" 2>/dev/null)" = $pebble ] && [ -x "$out/pebble" ] && [ -x "$out/pebble-challtestsrv" ]; then
    exit 0
fi
# Debian does not put the `go` of a second version into PATH, and elsewhere it is often in /usr/local.
go=$(command -v go || ls /usr/local/go/bin/go /usr/lib/go-1.*/bin/go 2>/dev/null | tail -n1 || true)
if [ -z "$go" ]; then
    say "there is no Go: install golang-go"
    exit 2
fi

work=$(mktemp -d "${TMPDIR:-/tmp}/howdah-pebble.XXXXXX")
# Go makes downloaded files read-only.
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT
export GOPATH=$work/go GOCACHE=$work/cache GOBIN=$work/bin GOENV=off GOFLAGS= GOTOOLCHAIN=local CGO_ENABLED=0

minor=$("$go" env GOVERSION | sed -n 's/^go1\.\([0-9]*\).*/\1/p')
if [ "${minor:-0}" -lt 24 ]; then
    case $(uname -m) in
        x86_64) machine=amd64 ;;
        aarch64) machine=arm64 ;;
        *) say "no Go toolchain is known for $(uname -m)"; exit 2 ;;
    esac
    say "fetching $toolchain, since $("$go" env GOVERSION) is too old"
    if ! found=$("$go" mod download -json "golang.org/toolchain@v0.0.1-$toolchain.linux-$machine"); then
        say "cannot fetch $toolchain: is there a network?"
        exit 2
    fi
    GOROOT=$(printf '%s\n' "$found" | sed -n 's/^\t"Dir": "\(.*\)",*$/\1/p')
    export GOROOT
    # Files in a module are not executable.
    chmod -R u+w "$GOROOT"
    chmod +x "$GOROOT"/bin/* "$GOROOT"/pkg/tool/*/*
    go=$GOROOT/bin/go
fi

say "building Pebble $pebble"
if ! "$go" mod download "github.com/letsencrypt/pebble/v2@$pebble" 2>"$work/log"; then
    cat "$work/log" >&2
    say "cannot fetch Pebble: is there a network?"
    exit 2
fi
"$go" install "github.com/letsencrypt/pebble/v2/cmd/pebble@$pebble" \
    "github.com/letsencrypt/pebble/v2/cmd/pebble-challtestsrv@$pebble"
mkdir -p "$out"
mv "$work/bin/pebble" "$work/bin/pebble-challtestsrv" "$out/"
echo $pebble >"$out/version"
