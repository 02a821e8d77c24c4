#!/bin/bash
# Parses and compiles every PHP file of the repository, without running one.
set -uo pipefail

cd "$(dirname "$0")/.." || exit 1
php=php$(scripts/php-version.sh)
command -v "$php" >/dev/null 2>&1 || php=php
# From 8.3 on, one process accepts several files.
each=1
"$php" -n -r 'exit(PHP_VERSION_ID < 80300 ? 1 : 0);' && each=500
# PHP's exit status would end xargs; its messages go to the standard error output.
git ls-files -z --cached --others --exclude-standard '*.php' |
    xargs -0 -n "$each" -P "$(nproc)" sh -c '"$0" -n -d error_reporting=-1 -d display_errors=stderr -l "$@" >/dev/null || exit 1' "$php"
