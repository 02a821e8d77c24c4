//! Links between documents lead to files and headings that exist.

use super::{ROOT, files, read};
use regex_lite::Regex;
use std::collections::BTreeSet;
use std::path::Path;

/// Lines outside of blocks of code.
fn prose(text: &str) -> impl Iterator<Item = &str> {
    let mut fenced = false;
    text.lines().filter(move |line| {
        let fence = line.trim_start().starts_with("```");
        fenced ^= fence;
        !fenced && !fence
    })
}

/// Anchors of a document's headings, as GitHub and mdBook make them.
fn anchors(text: &str) -> BTreeSet<String> {
    let linked = Regex::new(r"\[([^\]]*)\]\([^)]*\)").unwrap();
    let mut anchors = BTreeSet::new();
    for heading in prose(text).filter(|line| line.starts_with('#')) {
        let heading = linked.replace_all(heading.trim_start_matches('#').trim(), "$1").to_lowercase();
        let kept = heading.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
        let anchor: String = kept.map(|c| if c == ' ' { '-' } else { c }).collect();
        let again = (1..).map(|number| format!("{anchor}-{number}"));
        let free = std::iter::once(anchor.clone()).chain(again).find(|anchor| !anchors.contains(anchor));
        anchors.extend(free);
    }
    anchors
}

/// Targets of the links in a document's prose.
fn targets(text: &str) -> Vec<String> {
    let link = Regex::new(r"\]\(([^)\s]+)[^)]*\)|(?m)^\[[^\]]+\]: (\S+)$").unwrap();
    let code = Regex::new("`[^`]*`").unwrap();
    // A link may be broken over two lines.
    let text = prose(text).collect::<Vec<_>>().join("\n");
    let text = code.replace_all(&text, "");
    let found = link.captures_iter(&text).filter_map(|found| found.get(1).or(found.get(2)));
    found.map(|target| target.as_str().to_owned()).filter(|target| !target.contains(':')).collect()
}

#[test]
fn links_between_documents_lead_somewhere() {
    let (mut to_files, mut to_headings) = (0, 0);
    for path in files().iter().filter(|path| path.ends_with(".md")) {
        let text = read(path);
        for target in targets(&text) {
            let (file, anchor) = target.split_once('#').unwrap_or((&target, ""));
            let file = if file.is_empty() { path.clone() } else { format!("{}/{file}", parent(path)) };
            assert!(Path::new(ROOT).join(&file).exists(), "{path} leads to {target}, which is not there");
            to_files += 1;
            if !anchor.is_empty() && file.ends_with(".md") {
                assert!(
                    anchors(&read(&file)).contains(anchor),
                    "{path} leads to {target}, a heading that is not there"
                );
                to_headings += 1;
            }
        }
    }
    assert!(to_files > 200 && to_headings > 50, "{to_files} links, {to_headings} to headings");
}

/// The table of contents of the site (`make docs`), too.
#[test]
fn every_guide_is_in_the_table_of_contents() {
    let listed = targets(&read("docs/guide/README.md"));
    for path in files().iter().filter_map(|path| path.strip_prefix("docs/guide/")) {
        assert!(path == "README.md" || listed.iter().any(|target| target == path), "docs/guide/README.md lacks {path}");
    }
}

fn parent(path: &str) -> &str {
    path.rsplit_once('/').map_or(".", |(directory, _)| directory)
}

#[test]
fn anchors_are_those_of_git_hub() {
    let found = anchors("# A page\n## 403, 413: `x` & more\n```\n# no\n```\n## Same\n## Same\n## [a](b.md) c_d\n");
    let expected = ["a-page", "403-413-x--more", "same", "same-1", "a-c_d"];
    assert_eq!(found, expected.map(str::to_owned).into());
    assert_eq!(targets("[a](b.md#c) `[x](y)` [d](https://e) [f]\n\n[f]: g.md\n"), ["b.md#c", "g.md"]);
}
