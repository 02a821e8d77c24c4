#!/bin/bash
# Unpacks Prometheus from Debian's package, without installing it, as `DIRECTORY/prometheus`: `unpack-prometheus.sh
# DIRECTORY`. If it were installed, it would run as a service. Needs no root.
set -euo pipefail

target=${1:?which directory}
[ ! -x "$target/prometheus" ] || exit 0
mkdir -p "$target"
work=$(mktemp -d "$target/unpack.XXXXXX")
trap 'rm -rf "$work"' EXIT
if (cd "$work" && apt-get download -qq prometheus) && dpkg-deb -x "$work"/*.deb "$work/root"; then
    mv "$work/root/usr/bin/prometheus" "$target/prometheus"
else
    echo "prometheus: no package here; its test is not run" >&2
fi
