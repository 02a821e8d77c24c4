#!/bin/bash
# Builds the documentation as a site with search: `docs.sh DIRECTORY`. The table of contents is docs/guide/README.md.
# Pages keep their relative positions, so their links work; links to files outside of the site go to the repository on
# the web. Fails if a link within the site is dead.
set -euo pipefail
cd "$(dirname "$0")/.."

out=${1:?the directory of the site}
version=0.4.52
web=https://github.com/howdah-php/howdah/blob/main
tools=$(realpath -m "${CARGO_TARGET_DIR:-target}/mdbook")
src=$out/src

if ! "$tools/bin/mdbook" --version 2>/dev/null | grep -qxF "mdbook v$version"; then
    echo "docs: installing mdbook $version into $tools, which takes some minutes"
    "${CARGO:-cargo}" install --quiet --locked --no-default-features --features search --version "$version" --root "$tools" mdbook
fi

rm -rf "$out"
mkdir -p "$src"
cp docs/book.toml "$out/book.toml"
mapfile -t pages < <(git ls-files '*.md' | grep -E '^([A-Z]+\.md|docs/.*|lab/[A-Z]+\.md|lab/results/.*)$')
for page in "${pages[@]}"; do
    mkdir -p "$src/$(dirname "$page")"
    cp "$page" "$src/$page"
done

# Includes charts and data that pages link to.
mapfile -t linked < <(git ls-files 'lab/results/*.svg' 'lab/results/*.html' 'docs/reference/*.json' 'docs/reference/*.toml' 'docs/*.svg' 'docs/*.png')
for file in "${linked[@]}"; do
    mkdir -p "$src/$(dirname "$file")"
    cp "$file" "$src/$file"
done

# Links to other files and to directories of the repository.
SRC=$(realpath "$src") WEB=$web perl -0pi -e '
    my ($dir) = $ARGV =~ m{^\Q$ENV{SRC}\E/(?:(.*)/)?};
    $dir //= "";
    s{\]\((?!\w+:|#)([^)\s\#]+)((?:\#[^)\s]*)?)\)}{
        my @parts;
        for (split m{/}, ($dir eq "" ? "" : "$dir/") . $1) { $_ eq ".." ? pop @parts : ($_ ne "." && $_ ne "") ? push(@parts, $_) : () }
        my $path = join "/", @parts;
        my ($link, $anchor) = ($1, $2);
        # mdBook makes index.html of README.md.
        -f "$ENV{SRC}/$path" ? "](" . ($link =~ s{README\.md$}{index.md}r) . "$anchor)" : "]($ENV{WEB}/$path$anchor)"
    }ge;
' $(find "$(realpath "$src")" -name '*.md')

# title PAGE: its first heading.
title() { sed -n 's/^# //p;/^# /q' "$1"; }

# SUMMARY.md: a part for each section of the contents page, a line for each of its links; then the other pages, since
# mdBook leaves out those that are not listed.
{
    printf '# Summary\n\n[Howdah](README.md)\n[Contents](docs/guide/README.md)\n'
    perl -0ne '
        s/\n  +/ /g;
        for (split /\n/) {
            print "\n# $1\n\n" if /^## (.*)/;
            while (/\[([^\]]+)\]\(([^)#]+\.md)\)/g) {
                my ($title, $path) = (ucfirst $1, "docs/guide/$2");
                1 while $path =~ s{[^/]+/\.\./}{};
                print "- [$title]($path)\n" unless $seen{$path}++;
            }
        }
    ' docs/guide/README.md
    printf '\n# Measurements\n\n'
    for page in $(git ls-files 'lab/*.md' | grep -E '^lab/([A-Z]+|results/.*)\.md$'); do
        title=$(title "$page")
        # The title of the lab's reports is the name of their suite.
        case $page in */report.md) title="Report: $(basename "$(dirname "$page")"), ${title##*: }" ;; esac
        printf -- '- [%s](%s)\n' "$title" "$page"
    done
} >"$src/SUMMARY.md"
{
    printf '\n# Internals\n\n'
    for page in "${pages[@]}"; do
        case $page in CONTRIBUTING.md | CHANGELOG.md) continue ;; esac
        grep -qF "]($page)" "$src/SUMMARY.md" || printf -- '- [%s](%s)\n' "$(title "$page")" "$page"
    done
    printf '\n---\n\n[Contributing](CONTRIBUTING.md)\n[Changes](CHANGELOG.md)\n'
} >"$src/more"
cat "$src/more" >>"$src/SUMMARY.md"
rm "$src/more"

"$tools/bin/mdbook" build "$out" --dest-dir "$(realpath "$out")/site"
scripts/check-site.py "$out/site"
echo "docs: $out/site/index.html"
