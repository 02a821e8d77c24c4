#!/bin/bash
# Gets the sources of PHP, for their tests, and a php-cgi to compare with, from Debian's packages: `php-src.sh
# DIRECTORY`. Creates `DIRECTORY/tree` and `DIRECTORY/php-cgi`. Needs no root and changes no settings of apt. PHP_CONFIG
# selects the PHP.
set -euo pipefail

target=${1:?a directory is needed}
[ ! -x "$target/php-cgi" ] || [ ! -f "$target/tree/run-tests.php" ] || exit 0
here=$(cd "$(dirname "$0")" && pwd)
version=$("${PHP_CONFIG:-$("$here/php-version.sh" config)}" --version | cut -d. -f1,2)
codename=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
mkdir -p "$target/lists/partial"
target=$(cd "$target" && pwd)
work=$(mktemp -d "$target/unpack.XXXXXX")
trap 'rm -rf "$work"' EXIT
mirror=http://deb.debian.org
signed="[signed-by=/usr/share/keyrings/debian-archive-keyring.gpg]"
printf 'deb-src %s %s main\n' \
    "$signed $mirror/debian" "$codename" \
    "$signed $mirror/debian-security" "$codename-security" > "$target/sources.list"
sources=(-qq -o Dir::Etc::sourcelist="$target/sources.list" -o Dir::Etc::sourceparts=- -o Dir::State::lists="$target/lists"
    -o APT::Sandbox::User=)
apt-get "${sources[@]}" update
# A mirror may lack the archive of an update. Tests of one branch fit all of its releases.
for source in "php$version" "php$version/$codename"; do
    if (cd "$work" && apt-get "${sources[@]}" source --download-only --tar-only "$source"); then
        break
    fi
done
archive=("$work"/*.orig.tar.xz)
[ -f "${archive[0]}" ] || { echo "php-src: the mirror has no source package of PHP $version" >&2; exit 1; }
rm -rf "$target/tree"
mkdir "$work/tree"
tar -xJf "${archive[0]}" --strip-components=1 -C "$work/tree"
mv "$work/tree" "$target/tree"
(cd "$work" && apt-get download -qq "php$version-cgi")
dpkg-deb -x "$work"/*.deb "$work/root"
mv "$work/root/usr/bin/php-cgi$version" "$target/php-cgi"
