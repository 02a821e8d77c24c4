#!/bin/sh
# Says which of some packages apt can install here, one a line: `known-packages.sh PACKAGE…`. What one Debian packages,
# another may not.
set -eu

apt-cache policy "$@" 2>/dev/null |
    awk '/^[^ ].*:$/ {name = substr($1, 1, length($1) - 1)} /Candidate: [0-9]/ {print name}'
