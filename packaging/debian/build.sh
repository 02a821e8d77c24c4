#!/bin/bash
# Makes Debian packages of the results of `make dist`: `build.sh [server] [php]`, both by default. They are written to
# OUT (target/debian), those with debug symbols to OUT/debug.
#
# Uses dpkg-deb and not cargo-deb: the package name and its dependencies follow from the PHP that howdah-php was built
# with and not from Cargo.toml, and its contents are what `make install` installs.
set -euo pipefail
here=$(cd "$(dirname "$0")/../.." && pwd)
cd "$here"

for tool in dpkg-deb dpkg-shlibdeps strip objcopy readelf; do
    command -v $tool >/dev/null || { echo "build.sh: there is no $tool: apt-get install dpkg-dev binutils" >&2; exit 1; }
done
out=${OUT:-target/debian}
built=${BUILT:-target/dist}
arch=$(dpkg --print-architecture)
debian=packaging/debian
# A separate version for each Debian, since the libraries differ: 0.1.0-1~deb12.
release=$(. /etc/os-release && echo "${VERSION_ID:-0}")
version=${VERSION:-$("$built/howdah" --version | cut -d' ' -f2)-1~deb$release}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$out"

# depends PROGRAM…: the packages of the libraries that programs need. libphp is excluded: its package is added by name.
depends() {
    mkdir -p "$work/shlibdeps/debian"
    printf 'Source: howdah\n\nPackage: howdah\nArchitecture: any\n' >"$work/shlibdeps/debian/control"
    local list=()
    for program in "$@"; do list+=("-e$program"); done
    (cd "$work/shlibdeps" && dpkg-shlibdeps -O --ignore-missing-info "${list[@]}" 2>/dev/null) | sed -n 's/^shlibs:Depends=//p'
}

# package NAME TREE: builds a package of a tree, with control files and checksums. Scripts are those of $debian/PART.*.
package() {
    local name=$1 tree=$2 part=$3 script
    install -D -m 0644 "$debian/copyright" "$tree/usr/share/doc/$name/copyright"
    gzip -9nc CHANGELOG.md >"$tree/usr/share/doc/$name/changelog.gz"
    chmod 0644 "$tree/usr/share/doc/$name/changelog.gz"
    for script in preinst postinst prerm postrm; do
        [ -e "$debian/$part.$script" ] || continue
        sed "s/@PHP@/${php-}/g" "$debian/$part.$script" >"$tree/DEBIAN/$script"
        chmod 0755 "$tree/DEBIAN/$script"
    done
    [ ! -e "$debian/$part.triggers" ] || install -m 0644 "$debian/$part.triggers" "$tree/DEBIAN/triggers"
    # All files below /etc are conffiles: the administrator may change them.
    (cd "$tree" && [ ! -d etc ] || find etc -type f -printf '/%p\n' | sort >DEBIAN/conffiles)
    [ -s "$tree/DEBIAN/conffiles" ] || rm -f "$tree/DEBIAN/conffiles"
    (cd "$tree" && find usr -type f -print0 | sort -z | xargs -0 md5sum >DEBIAN/md5sums)
    {
        printf 'Package: %s\nVersion: %s\nArchitecture: %s\n' "$name" "$version" "$arch"
        printf 'Maintainer: %s\n' "${MAINTAINER:-Howdah <packages@howdah.invalid>}"
        printf 'Installed-Size: %s\n' "$(du -sk --exclude=DEBIAN "$tree" | cut -f1)"
        cat
    } >"$tree/DEBIAN/control"
    chmod -R go-w,u+rwX,go+rX "$tree"
    # dpkg of Debian 11 and older does not support zstd.
    dpkg-deb --root-owner-group -Zxz --build "$tree" "$out/${name}_${version}_$arch.deb" >/dev/null
    echo "$out/${name}_${version}_$arch.deb"
}

# stripped PROGRAM PACKAGE: moves its debug symbols to the package PACKAGE-dbgsym, where debuggers find them by the
# build id.
stripped() {
    local program=$1 tree=$work/$2-dbgsym id
    id=$(readelf -n "$program" | sed -n 's/.*Build ID: \([0-9a-f]*\)$/\1/p')
    [ -n "$id" ] || { echo "build.sh: $program has no build id" >&2; exit 1; }
    local symbols=$tree/usr/lib/debug/.build-id/${id:0:2}/${id:2}.debug
    mkdir -p "$tree/DEBIAN" "$(dirname "$symbols")"
    objcopy --only-keep-debug --compress-debug-sections "$program" "$symbols"
    chmod 0644 "$symbols"
    strip --strip-debug --strip-unneeded "$program"
    objcopy --add-gnu-debuglink="$symbols" "$program"
    chmod 0755 "$program"
    mkdir -p "$out/debug"
    out=$out/debug package "$2-dbgsym" "$tree" dbgsym <<CONTROL
Depends: $2 (= $version)
Section: debug
Priority: optional
Homepage: https://github.com/howdah-php/howdah
Description: debug symbols for $2
CONTROL
}

server() {
    local tree=$work/server
    mkdir -p "$tree/DEBIAN"
    PREFIX=/usr DESTDIR=$tree BUILT=$built scripts/install.sh install server >/dev/null
    stripped "$tree/usr/bin/howdah" howdah
    package howdah "$tree" server <<CONTROL
Depends: $(depends "$tree/usr/bin/howdah"), passwd
Recommends: howdah-php, logrotate
Suggests: ca-certificates
Provides: httpd
Section: httpd
Priority: optional
Homepage: https://github.com/howdah-php/howdah
Description: PHP application server
 One program that replaces a web server with PHP-FPM: HTTP/1, 2 and 3 with
 automatic certificates, static files, and PHP in worker processes
 that it supervises. PHP itself comes with the packages howdah-phpX.Y, of which
 several can be installed at the same time.
CONTROL
}

php() {
    local tree=$work/php php
    mkdir -p "$tree/DEBIAN"
    PREFIX=/usr DESTDIR=$tree BUILT=$built scripts/install.sh install php >/dev/null
    local program=("$tree"/usr/libexec/howdah/howdah-php*)
    php=${program[0]##*howdah-php}
    stripped "${program[0]}" "howdah-php$php"
    # Patch releases of PHP add functions that the host may use; none has removed one.
    local against
    against=$("$built/howdah-php" --capabilities=json | sed -n 's/.*"built_against":"\([0-9.]*\)".*/\1/p')
    package "howdah-php$php" "$tree" php <<CONTROL
Depends: $(depends "${program[0]}"), libphp$php-embed (>= ${against:?})
Recommends: php$php-opcache
Enhances: howdah
Provides: howdah-php, php (= 2:$php)
Section: httpd
Priority: optional
Homepage: https://github.com/howdah-php/howdah
Description: PHP application server: PHP $php
 The host of PHP $php for the server howdah: a pool runs it by \`php = "$php"\`.
 It is bound to the libphp of this version, so several versions can be installed
 at the same time.
CONTROL
}

for part in "${@:-server}"; do
    case $part in server | php) ;; *) echo "build.sh: unknown part: $part" >&2; exit 2 ;; esac
done
[ $# -gt 0 ] || set -- server php
for part in "$@"; do
    "$part"
done
