//! Comments, messages and documents avoid phrases that a reader has to translate back. Each area has a limit that may only
//! become smaller: lower it when you have rewritten some of them.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

/// Maximum number of findings by area. An area that is not listed has none.
const LIMITS: &[(&str, usize)] = &[
    (".", 1),
    ("crates/budget", 1),
    ("crates/cli", 1),
    ("crates/config", 1),
    ("crates/observe", 1),
    ("crates/pool", 2),
    ("crates/site", 2),
    ("crates/tls", 2),
    ("crates/transport", 1),
    ("docs/guide", 1),
    ("lab", 2),
    ("php", 1),
    ("tests", 24),
];

/// Comments that begin with one of these, and are not questions, have no main clause.
const HEADLESS: &[&str] = &["What", "Whether", "How", "Who", "Whom", "Whose", "Whoever"];

/// Headings that begin with one of these name nothing that a reader would look up.
const RIDDLES: &[&str] = &["What is", "What it", "Whether", "How long", "How many", "Who", "Whom", "Whose", "Whoever"];

/// Phrases, and better ones.
const PHRASES: &[(&str, &str)] = &[
    ("is told", "is reported, notified, configured"),
    ("are told", "are reported, notified, configured"),
    ("was told", "was reported, notified, configured"),
    ("were told", "were reported, notified, configured"),
    ("be told", "be reported, notified, configured"),
    ("been told", "been reported, notified, configured"),
    ("is said", "is reported"),
    ("are said", "are reported"),
    ("of its own", "its own, a separate"),
    ("of their own", "their own, separate"),
    ("by itself", "automatically, alone"),
    ("by themselves", "automatically, alone"),
    ("nobody", "no client, no worker, nothing"),
    ("everybody", "all clients, all users"),
    ("whoever", "the caller, the client, the user that"),
    ("whom", "the caller, the client, the user that"),
    ("in the place of", "instead of"),
    ("in vain", "without success"),
    ("for want of", "for lack of"),
    ("what becomes of", "the result of"),
    ("as ever", "as usual, unchanged"),
    ("beside", "with, next to, in addition to, compared with"),
    ("see above", "delete it"),
];

/// Files whose text is not ours, generated from elsewhere, or data. This file quotes the phrases.
const LEFT_OUT: &[&str] = &["lab/results/", "fuzz/corpus/", "tests/php-src/", "tests/tests/words.rs", "Cargo.lock"];

const ENDINGS: &[&str] = &[".rs", ".c", ".h", ".md", ".php", ".sh", ".toml", ".html", ".js", "Makefile"];

fn files() -> Vec<String> {
    let listed =
        Command::new("git").args(["ls-files", "-co", "--exclude-standard"]).current_dir(ROOT).output().unwrap();
    let listed = String::from_utf8(listed.stdout).unwrap();
    let is_ours = |path: &&str| {
        ENDINGS.iter().any(|ending| path.ends_with(ending)) && !LEFT_OUT.iter().any(|place| path.starts_with(place))
    };
    listed.lines().filter(is_ours).map(str::to_owned).collect()
}

/// The crate or folder that a file belongs to; `.` for files at the root and small folders.
fn area(path: &str) -> String {
    let parts: Vec<&str> = path.split('/').collect();
    match parts[..] {
        [first @ ("crates" | "docs"), second, _, ..] => format!("{first}/{second}"),
        [first @ ("tests" | "lab" | "php"), _, ..] => first.to_owned(),
        _ => ".".to_owned(),
    }
}

/// Text of a line that is only a comment.
fn comment(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let text = ["///", "//!", "//", "/**", "/*", "* ", "# "].iter().find_map(|mark| line.strip_prefix(mark))?;
    Some(text.trim_start())
}

fn is_headless(path: &str, line: &str) -> bool {
    let (text, words) = if path.ends_with(".md") {
        (line.starts_with('#').then(|| line.trim_start_matches('#').trim_start()), RIDDLES)
    } else {
        (comment(line), HEADLESS)
    };
    text.is_some_and(|text| {
        let begins_so = words.iter().any(|word| text.strip_prefix(word).is_some_and(|rest| rest.starts_with(' ')));
        begins_so && !text.trim_end().ends_with('?')
    })
}

/// Phrases in `line`, which is in lower case, between letters of other words.
fn phrases(line: &str) -> impl Iterator<Item = &(&'static str, &'static str)> {
    let is_word = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    // The user `nobody`.
    let is_quote = |c: Option<char>| c.is_some_and(|c| "\"'`\\:".contains(c));
    PHRASES.iter().filter(move |(phrase, _)| {
        line.match_indices(phrase).any(|(at, found)| {
            let (before, after) = (line[..at].chars().next_back(), line[at + found.len()..].chars().next());
            !is_word(before) && !is_word(after) && !(is_quote(before) && is_quote(after))
        })
    })
}

/// Prose of a line in lower case: of code only comments and texts in quotes.
fn prose(path: &str, line: &str, goes_on: bool) -> String {
    let is_code = [".rs", ".c", ".h", ".php"].iter().any(|ending| path.ends_with(ending));
    let is_comment = |line: &str| ["//", "/*", "*", "#"].iter().any(|mark| line.trim_start().starts_with(mark));
    if !is_code || is_comment(line) {
        return line.to_ascii_lowercase();
    }
    let (code, comment) = line.split_once("// ").unwrap_or((line, ""));
    if goes_on && !code.contains('"') {
        return code.to_ascii_lowercase();
    }
    let quoted: Vec<&str> = code.split('"').skip(1).step_by(2).collect();
    format!("\"{}\" {comment}", quoted.join("\" \"")).to_ascii_lowercase()
}

fn findings(path: &str, text: &str) -> Vec<String> {
    let (mut found, mut goes_on) = (Vec::new(), false);
    for (at, line) in text.lines().enumerate() {
        let place = format!("{path}:{}", at + 1);
        if is_headless(path, line) {
            found.push(format!("{place}: begin with the noun or a verb: {}", line.trim()));
        }
        // A text that goes on from the line before has no quote at its beginning.
        let small = prose(path, line, std::mem::replace(&mut goes_on, line.ends_with('\\')));
        found.extend(phrases(&small).map(|(phrase, better)| format!("{place}: {phrase}: {better}: {}", line.trim())));
    }
    found
}

/// Maximum number of words of all guides, code blocks included (`wc -w docs/guide/*.md`).
const WORDS_OF_GUIDES: usize = 25_000;

#[test]
fn the_guides_stay_short() {
    let words = |path: &String| fs::read_to_string(Path::new(ROOT).join(path)).unwrap().split_whitespace().count();
    let all: usize = files().iter().filter(|path| path.starts_with("docs/guide/")).map(words).sum();
    assert!(
        (10_000..=WORDS_OF_GUIDES).contains(&all),
        "the guides have {all} words; at most {WORDS_OF_GUIDES}: cut what another page says"
    );
}

/// `HOWDAH_WORDS=crates/pool` prints the findings of that area, `HOWDAH_WORDS=.` all of them by area.
#[test]
fn phrases_that_have_to_be_translated_back_only_become_fewer() {
    let mut areas: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let files = files();
    assert!(files.len() > 1000, "{} files", files.len());
    for path in files {
        let Ok(text) = fs::read_to_string(Path::new(ROOT).join(&path)) else { continue };
        areas.entry(area(&path)).or_default().extend(findings(&path, &text));
    }
    let wanted = std::env::var("HOWDAH_WORDS").unwrap_or_default();
    let mut too_many = Vec::new();
    for (area, found) in areas.iter().filter(|(_, found)| !found.is_empty()) {
        let limit = LIMITS.iter().find(|(name, _)| name == area).map_or(0, |(_, limit)| *limit);
        println!("    (\"{area}\", {}),", found.len());
        if *area == wanted || found.len() > limit {
            println!("{}", found.join("\n"));
        }
        if found.len() > limit {
            too_many.push(format!("{area}: {} where {limit} are allowed", found.len()));
        }
    }
    assert!(too_many.is_empty(), "{too_many:#?}\nThe findings are listed above: rewrite yours.");
}

#[test]
fn the_scan_finds_bad_phrases_and_accepts_good_ones() {
    let count = |path: &str, text: &str| findings(path, text).len();
    for bad in [
        "/// What a worker holds.",
        "// Whether it runs.",
        "log(\"the client is told\")",
        "// a file of its own",
        "//! In vain.",
    ] {
        assert_eq!(count("a.rs", bad), 1, "{bad}");
    }
    for good in
        ["/// What if it is empty?", "let what = 1; // Whatever", "user = \"nobody\"", "// besides", "is_told()"]
    {
        assert_eq!(count("a.rs", good), 0, "{good}");
    }
    assert_eq!(count("a.md", "## What is otherwise\n\nWhat it is\n## What needs a restart\n## How to start"), 1);
}
