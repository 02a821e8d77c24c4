#!/bin/bash
# Unpacks the applications that tests compare under Howdah and under Apache, from Debian's packages with all
# dependencies that the machine lacks, into a directory: `unpack-packaged.sh DIRECTORY`. Installs nothing and needs no
# root. They stay as Debian ships them; `with-packaged.sh` puts them in their places for one command.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
target=${1:?which directory}
applications="mediawiki phpmyadmin roundcube roundcube-sqlite3 cacti icingaweb2 adminer phpldapadmin postfixadmin
    simplesamlphp phpsysinfo shaarli dokuwiki"

[ ! -e "$target/complete" ] || exit 0
rm -rf "$target"
mkdir -p "$target/packages" "$target/root"
target=$(cd "$target" && pwd)

# The tests report packages that this Debian lacks as skipped.
# shellcheck disable=SC2086
known=$("$here/known-packages.sh" $applications)
# shellcheck disable=SC2086
packages=$(apt-get install -s -qq --no-install-recommends $known | awk '$1 == "Inst" {print $2}')
# Installed packages are part of the machine on which the others are overlaid.
# shellcheck disable=SC2086
echo "applications: unpacking into $target:" $packages >&2
# shellcheck disable=SC2086
(cd "$target/packages" && apt-get download -qq $packages)
for package in "$target"/packages/*.deb; do
    dpkg-deb -x "$package" "$target/root"
done
rm -rf "$target/packages"

# Enables PHP's extensions, as their packages do when they are installed.
for settings in "$target"/root/usr/share/php*/*/*.ini "$target"/root/etc/php/*/mods-available/*.ini; do
    [ -e "$settings" ] || continue
    name=$(basename "$settings")
    version=$("$here/php-version.sh")
    mkdir -p "$target/root/etc/php/$version/mods-available"
    cp -n "$settings" "$target/root/etc/php/$version/mods-available/" || true
    for sapi in apache2 embed fpm cli; do
        mkdir -p "$target/root/etc/php/$version/$sapi/conf.d"
        ln -sf "/etc/php/$version/mods-available/$name" "$target/root/etc/php/$version/$sapi/conf.d/20-$name"
    done
done
touch "$target/complete"
