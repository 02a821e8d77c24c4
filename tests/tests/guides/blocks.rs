//! Blocks of code in the pages.

use super::TOP;
use regex_lite::Regex;
use std::fs;
use std::path::Path;

/// Languages of blocks, each with the module that tests them. `text` is output, a picture or a fragment.
const LANGUAGES: &[(&str, &str)] = &[
    ("caddyfile", include_str!("parsers.rs")),
    ("console", include_str!("commands.rs")),
    ("ini", include_str!("parsers.rs")),
    ("js", include_str!("pages.rs")),
    ("json", include_str!("parsers.rs")),
    ("nginx", include_str!("settings.rs")),
    ("php", include_str!("settings.rs")),
    ("sh", include_str!("commands.rs")),
    ("toml", include_str!("settings.rs")),
    ("yaml", include_str!("parsers.rs")),
];

/// Number of blocks that are not tested. Lower it when you have made one of them run.
const NOT_TRIED: usize = 25;

/// The reason of those that the test of the packages runs.
const ELSEWHERE: &str = "make test-packages";

#[derive(Debug)]
pub(super) struct Block {
    pub(super) page: String,
    pub(super) line: usize,
    pub(super) language: String,
    /// The reason why it is not tested.
    pub(super) no_run: Option<String>,
    pub(super) text: String,
}

impl Block {
    pub(super) fn place(&self) -> String {
        format!("{}:{}", self.page, self.line)
    }
}

/// Guides and README, by their path from the root.
pub(super) fn pages() -> Vec<String> {
    let guides = fs::read_dir(Path::new(TOP).join("docs/guide")).unwrap();
    let mut pages: Vec<String> =
        guides.map(|entry| format!("docs/guide/{}", entry.unwrap().file_name().display())).collect();
    pages.retain(|page| page.ends_with(".md"));
    pages.push("README.md".to_owned());
    pages.sort();
    assert!(pages.len() > 10, "{pages:?}");
    pages
}

fn blocks_of(page: &str, text: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut indent = None;
    for (at, line) in text.lines().enumerate() {
        let bare = line.trim_start();
        match (indent, bare.strip_prefix("```")) {
            (None, Some(info)) => {
                indent = Some(line.len() - bare.len());
                let (language, marker) = info.split_once(' ').unwrap_or((info, ""));
                let no_run = (!marker.is_empty()).then(|| marker.strip_prefix("no-run: ").unwrap_or("").to_owned());
                let (page, language) = (page.to_owned(), language.to_owned());
                blocks.push(Block { page, line: at + 1, language, no_run, text: String::new() });
            }
            (Some(_), Some(_)) => indent = None,
            (Some(indent), None) => {
                let text = &mut blocks.last_mut().unwrap().text;
                *text += line.get(indent..).unwrap_or(bare);
                text.push('\n');
            }
            (None, None) => {}
        }
    }
    blocks
}

pub(super) fn blocks() -> Vec<Block> {
    let read = |page: &String| blocks_of(page, &fs::read_to_string(Path::new(TOP).join(page)).unwrap());
    pages().iter().flat_map(read).collect()
}

/// Blocks of these languages that are tested.
pub(super) fn tried(languages: &[&str]) -> Vec<Block> {
    let blocks: Vec<Block> = blocks()
        .into_iter()
        .filter(|block| block.no_run.is_none() && languages.contains(&block.language.as_str()))
        .collect();
    assert!(!blocks.is_empty(), "{languages:?}");
    blocks
}

#[test]
fn every_block_names_its_language_and_few_are_not_tried() {
    let blocks = blocks();
    for (language, tests) in LANGUAGES {
        let is_asked_for = Regex::new(&format!(r#"tried\(&\[[^]]*"{language}""#)).unwrap().is_match(tests);
        assert!(is_asked_for, "the module named for {language} does not test it");
    }
    for block in &blocks {
        let is_known = block.language == "text" || LANGUAGES.iter().any(|(language, _)| *language == block.language);
        assert!(is_known, "{}: nothing tests blocks of {:?}", block.place(), block.language);
        assert_ne!(block.no_run.as_deref(), Some(""), "{}: write no-run: and the reason", block.place());
    }
    let reason = |block: &Block| block.no_run.clone().filter(|reason| reason != ELSEWHERE);
    let not_tried: Vec<String> =
        blocks.iter().filter_map(|block| Some(format!("{}: {}", block.place(), reason(block)?))).collect();
    assert_eq!(not_tried.len(), NOT_TRIED, "{not_tried:#?}");
}

#[test]
fn a_page_is_cut_into_its_blocks() {
    let page = "a\n```toml\nx = 1\n```\n1. b\n\n   ```sh no-run: needs a cluster\n   one\n     two\n   ```\n";
    let blocks = blocks_of("a.md", page);
    assert_eq!((blocks[0].place().as_str(), blocks[0].text.as_str()), ("a.md:2", "x = 1\n"));
    assert_eq!(blocks[0].no_run, None);
    assert_eq!((blocks[1].language.as_str(), blocks[1].text.as_str()), ("sh", "one\n  two\n"));
    assert_eq!(blocks[1].no_run.as_deref(), Some("needs a cluster"));
}
