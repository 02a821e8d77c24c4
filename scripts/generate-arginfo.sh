#!/usr/bin/env bash
# Generates the tables of functions and methods that the shim registers (howdah_arginfo.h) from the stubs for IDEs, with
# PHP's own generator. That is part of php-dev and needs PHP-Parser in the same directory, which Debian has as
# `php-parser`.
set -euo pipefail
cd "$(dirname "$0")/.."

stub=php/stubs/howdah.stub.php
header=crates/php-host/shim/howdah_arginfo.h
php_config=${PHP_CONFIG:-$(scripts/php-version.sh config)}
generator=$("$php_config" --extension-dir)/build/gen_stub.php
parser=${PHP_PARSER:-/usr/share/php}

for needed in "$generator" "$parser/PhpParser/Parser.php"; do
    [ -r "$needed" ] || { echo "$0: $needed is missing: install php-dev and php-parser" >&2; exit 1; }
done
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
cp "$generator" "$place/gen_stub.php"
# The path where the generator expects it; otherwise it would download it.
version=$(sed -n 's/^ *\$version = "\([0-9.]*\)";$/\1/p' "$generator")
mkdir "$place/PHP-Parser-$version"
ln -s "$parser" "$place/PHP-Parser-$version/lib"
cp "$stub" "$place/howdah.stub.php"
"$("$php_config" --php-binary)" "$place/gen_stub.php" --force-regeneration "$place/howdah.stub.php"
{ echo '/* clang-format off */'; cat "$place/howdah_arginfo.h"; } >"$header"
