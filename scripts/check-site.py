#!/usr/bin/env python3
"""Checks the links of a built site: `check-site.py DIRECTORY`. Each link to a page or file of the site must lead to one,
and its anchor to an element there. Prints those that do not, and exits with 1."""

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

# Parts of the theme that every page repeats; print.html repeats all pages under other paths.
LEFT_OUT = {"print.html", "toc.html", "404.html"}


class Page(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.anchors, self.links = set(), []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            if name == "id" or (name == "name" and tag == "a"):
                self.anchors.add(value)
            elif name in ("href", "src") and value:
                self.links.append(value)


def main():
    site = Path(sys.argv[1]).resolve()
    pages = {path: Page(path.read_text()) for path in site.rglob("*.html") if path.name not in LEFT_OUT}
    dead, links = [], 0
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            links += 1
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if target.is_dir():
                target /= "index.html"
            anchor = unquote(parts.fragment)
            if not target.is_file():
                dead.append(f"{path.relative_to(site)}: {link}: no such file")
            elif anchor and target in pages and anchor not in pages[target].anchors:
                dead.append(f"{path.relative_to(site)}: {link}: no such anchor")
    print("\n".join(sorted(set(dead)) + [f"docs: {links} links of {len(pages)} pages, {len(set(dead))} of them dead"]))
    if dead or not links:
        sys.exit(1)


main()
