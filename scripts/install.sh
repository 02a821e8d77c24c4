#!/bin/bash
# Installs the results of `make dist` and the files that go with them: `install.sh install|uninstall [PART…]`. Parts:
# `server` (the program, manual pages, completions, units, settings) and `php` (the host of one version of PHP); both if
# none is given. `packaging/debian/build.sh` makes packages of the same parts.
#
# PREFIX (/usr/local), DESTDIR (none), SYSCONFDIR (/etc), BUILT (target/dist). Existing settings are never replaced, and
# `uninstall` leaves them, logs and state.
set -euo pipefail
cd "$(dirname "$0")/.."

what=${1:?install or uninstall}
shift
parts=${*:-server php}
prefix=${PREFIX:-/usr/local}
destdir=${DESTDIR-}
etc=${SYSCONFDIR:-/etc}
built=${BUILT:-target/dist}
sources=$(sed -n 's/^repository = "\(.*\)"/\1/p' Cargo.toml)/blob/main

fail() { printf 'install: %s\n' "$*" >&2; exit 1; }

# place MODE SOURCE TARGET: installs or removes one file. Paths of the programs in units and the like are adapted.
place() {
    local target=$destdir$3
    if [ "$what" = uninstall ]; then
        rm -f "$target"
    else
        install -D -m "$1" "$2" "$target"
    fi
}

# link TARGET NAME: creates or removes a symbolic link.
link() {
    local name=$destdir$2
    if [ "$what" = uninstall ]; then
        rm -f "$name"
    else
        mkdir -p "$(dirname "$name")"
        ln -sfn "$1" "$name"
    fi
}

# Installs or removes a text that contains Debian's paths of the programs, adapting them.
place_text() {
    local text
    if [ "$what" = install ]; then
        text=$(mktemp)
        sed -e "s#/usr/bin/#$prefix/bin/#g" -e "s#/usr/share/#$prefix/share/#g" "$2" >"$text"
        place "$1" "$text" "$3"
        rm -f "$text"
    else
        place "$1" "$2" "$3"
    fi
}

# Installs or removes a page of the documentation. Targets of links have another path once installed, or exist only in
# the sources.
place_page() {
    local text
    if [ "$what" = install ]; then
        text=$(mktemp)
        sed -E -e 's#(\]\(|\]: )\.\./\.\./packaging/drop-ins#\1../drop-ins#g' \
            -e 's#(\]\(|\]: )\.\./\.\./packaging/(sites|monitoring)#\1../examples/\2#g' \
            -e 's#(\]\(|\]: )(\.\./reference/)?howdah\.toml#\1../examples/howdah.toml#g' \
            -e 's#(\]\(|\]: )(\.\./reference/)?(howdah[a-z-]*\.schema\.json)#\1../../../howdah/\3#g' \
            -e "s#(\]\(|\]: )\.\./\.\./([^.])#\1$sources/\2#g" "$1" >"$text"
        place 0644 "$text" "$2"
        rm -f "$text"
    else
        place 0644 "$1" "$2"
    fi
}

# Installs settings, unless they exist.
place_settings() {
    if [ "$what" = uninstall ]; then
        [ ! -e "$destdir$2" ] || echo "install: $2 is kept"
    elif [ -e "$destdir$2" ]; then
        echo "install: $2 exists already and is kept"
    else
        place_text 0644 "$1" "$2"
    fi
}

# Files that the program generates. An uninstall removes the existing ones by name.
place_written() {
    local made
    if [ "$what" = install ]; then
        made=$(mktemp -d)
        "$built/howdah" man "$made"
        for page in "$made"/*; do
            gzip -9n "$page"
            place 0644 "$page.gz" "$prefix/share/man/man${page##*.}/$(basename "$page").gz"
        done
        "$built/howdah" completions bash >"$made/bash"
        "$built/howdah" completions zsh >"$made/zsh"
        "$built/howdah" completions fish >"$made/fish"
        place 0644 "$made/bash" "$prefix/share/bash-completion/completions/howdah"
        place 0644 "$made/zsh" "$prefix/share/zsh/vendor-completions/_howdah"
        place 0644 "$made/fish" "$prefix/share/fish/vendor_completions.d/howdah.fish"
        rm -rf "$made"
    else
        rm -f "$destdir$prefix"/share/man/man1/howdah.1.gz "$destdir$prefix"/share/man/man1/howdah-*.1.gz \
            "$destdir$prefix"/share/man/man5/howdah.toml.5.gz \
            "$destdir$prefix/share/bash-completion/completions/howdah" \
            "$destdir$prefix/share/zsh/vendor-completions/_howdah" \
            "$destdir$prefix/share/fish/vendor_completions.d/howdah.fish"
    fi
}

server() {
    local file
    place 0755 "$built/howdah" "$prefix/bin/howdah"
    link ../bin/howdah "$prefix/sbin/howdah-fpm"
    place_written
    for file in howdah.service howdah@.service; do
        place_text 0644 "packaging/$file" "$prefix/lib/systemd/system/$file"
    done
    place 0644 packaging/howdah.sysusers "$prefix/lib/sysusers.d/howdah.conf"
    place 0644 packaging/howdah.tmpfiles "$prefix/lib/tmpfiles.d/howdah.conf"
    for file in packaging/welcome/*; do
        place 0644 "$file" "$prefix/share/howdah/welcome/$(basename "$file")"
    done
    # Log lines refer to guides, which refer to the other pages.
    for file in docs/guide/*.md docs/reference/*.md docs/internals/*.md; do
        place_page "$file" "$prefix/share/doc/howdah/${file#docs/}"
    done
    for file in packaging/drop-ins/*.conf; do
        place 0644 "$file" "$prefix/share/doc/howdah/drop-ins/$(basename "$file")"
    done
    place 0644 docs/reference/howdah.toml "$prefix/share/doc/howdah/examples/howdah.toml"
    for file in packaging/sites/* packaging/monitoring/*; do
        place_text 0644 "$file" "$prefix/share/doc/howdah/examples/${file#packaging/}"
    done
    for file in howdah.schema.json howdah-site.schema.json; do
        place 0644 "docs/reference/$file" "$prefix/share/howdah/$file"
    done
    place_settings packaging/howdah.toml "$etc/howdah/howdah.toml"
    place_settings packaging/howdah.logrotate "$etc/logrotate.d/howdah"
    if [ "$what" = install ]; then
        install -d -m 0755 "$destdir$etc/howdah/conf.d"
    else
        rmdir --ignore-fail-on-non-empty "$destdir$etc/howdah/conf.d" "$destdir$prefix/share/howdah/welcome" \
            "$destdir$prefix/share/howdah" "$destdir$prefix/share/doc/howdah/examples/sites" \
            "$destdir$prefix/share/doc/howdah/examples/monitoring" "$destdir$prefix/share/doc/howdah/reference" \
            "$destdir$prefix/share/doc/howdah/internals" \
            "$destdir$prefix/share/doc/howdah/examples" "$destdir$prefix/share/doc/howdah/drop-ins" \
            "$destdir$prefix/share/doc/howdah/guide" "$destdir$prefix/share/doc/howdah" 2>/dev/null || true
    fi
}

# One program per version of PHP, side by side.
php() {
    if [ "$what" = uninstall ]; then
        rm -f "$destdir$prefix"/libexec/howdah/howdah-php*
        rmdir --ignore-fail-on-non-empty "$destdir$prefix/libexec/howdah" 2>/dev/null || true
        return
    fi
    local version
    version=$("$built/howdah-php" --version | sed -n 's/^howdah-php .* (PHP \([0-9]*\.[0-9]*\)\..*)$/\1/p')
    [ -n "$version" ] || fail "$built/howdah-php does not report its PHP version"
    place 0755 "$built/howdah-php" "$prefix/libexec/howdah/howdah-php$version"
}

if [ "$what" = install ]; then
    for program in howdah howdah-php; do
        [ -x "$built/$program" ] || fail "there is no $built/$program: run 'make dist' first (not as root)"
    done
fi
for part in $parts; do
    case $part in
        server) server ;;
        php) php ;;
        *) fail "unknown part: $part" ;;
    esac
done
