//! Every block of settings in the guides can be pasted: no key is unknown, twice there, or of another type. Files, users and
//! programs that a guide names need not be on this machine.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod directory;

use directory::Site;
use std::path::Path;

/// What is wrong with a block wherever it is pasted.
const WRONG: &[&str] =
    &["unknown key", "duplicate key", "expected ", "belongs to", "for all sites together", "invalid"];

/// The blocks of TOML in a page, each with its first line's number.
fn blocks(page: &str) -> Vec<(usize, String)> {
    let mut found: Vec<(usize, String)> = Vec::new();
    let mut open: Option<usize> = None;
    for (number, line) in page.lines().enumerate() {
        let text = line.trim_start();
        match open {
            None if text == "```toml" => {
                open = Some(line.len() - text.len());
                found.push((number + 2, String::new()));
            }
            Some(_) if text == "```" => open = None,
            Some(indent) => {
                let (_, block) = found.last_mut().unwrap();
                block.push_str(line.get(indent..).unwrap_or_default());
                block.push('\n');
            }
            None => {}
        }
    }
    found
}

/// Whether it is the file of a site: it has hosts of its own.
fn is_site(block: &str) -> bool {
    block.lines().any(|line| line.starts_with("hosts ")) && !block.contains("[[site]]")
}

#[test]
fn every_block_of_settings_in_the_guides_can_be_pasted() {
    let guides = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide");
    let mut seen = 0;
    let mut wrong = Vec::new();
    for entry in std::fs::read_dir(guides).unwrap() {
        let path = entry.unwrap().path();
        let page = std::fs::read_to_string(&path).unwrap();
        for (line, block) in blocks(&page) {
            let site = Site::new(if is_site(&block) { "" } else { &block });
            if is_site(&block) {
                site.write("conf.d/site.toml", &block);
            }
            let errors = site.load().err().map(|errors| errors.to_string()).unwrap_or_default();
            let bad = errors.lines().filter(|error| WRONG.iter().any(|what| error.contains(what)));
            wrong.extend(bad.map(|error| format!("{}:{line}: {error}", path.file_name().unwrap().display())));
            seen += 1;
        }
    }
    assert!(seen > 40, "{seen} blocks");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
