#!/bin/bash
# Unpacks DokuWiki, WordPress and MediaWiki from Debian's packages into a directory, without installing them:
# `unpack-apps.sh DIRECTORY`. Needs no root. The applications stay as Debian ships them, except that symbolic links and
# paths in DokuWiki's code are redirected to the same paths below DIRECTORY.
set -euo pipefail

target=${1:?which directory}
packages="dokuwiki mediawiki mediawiki-classes wordpress wordpress-theme-twentytwentythree php-geshi php-phpseclib
    php-random-compat libphp-simplepie php-getid3
    libjs-jquery libjs-jquery-cookie libjs-jquery-ui libjs-underscore libjs-cropper"
# From Debian 13 on, DokuWiki loads parts of these.
packages="$packages $("$(dirname "$0")/known-packages.sh" php-phpseclib3 php-constant-time php-kissifrot-php-ixr | tr '\n' ' ')"

if [ "$(cat "$target/complete" 2>/dev/null)" = "$packages" ]; then
    exit 0
fi
rm -rf "$target"
mkdir -p "$target/packages" "$target/root"
target=$(cd "$target" && pwd)
echo "apps: unpacking into $target:" $packages >&2
# shellcheck disable=SC2086
(cd "$target/packages" && apt-get download -qq $packages)
for package in "$target"/packages/*.deb; do
    dpkg-deb -x "$package" "$target/root"
done
find "$target/root" -type l -lname '/*' -print0 | while IFS= read -r -d '' link; do
    to=$(readlink "$link")
    [ -e "$target/root$to" ] && ln -sfn "$target/root$to" "$link"
done
grep -rlE "'/usr/share/(php|php-geshi|javascript)/" "$target/root/usr/share/dokuwiki" --include='*.php' |
    xargs sed -i -E "s#'/usr/share/(php|php-geshi|javascript)/#'$target/root/usr/share/\1/#g"
echo "$packages" >"$target/complete"
