//! `docs/reference/messages.md` has every warning and error of the log, and only messages that exist.

use super::{files, read};
use regex_lite::Regex;
use std::collections::BTreeSet;

const PAGE: &str = "docs/reference/messages.md";

/// Sources without their tests.
fn sources() -> Vec<String> {
    let is_source = |path: &&String| {
        path.starts_with("crates/") && path.contains("/src/") && path.ends_with(".rs") && !path.contains("test")
    };
    let read = |path: &String| read(path).split("#[cfg(test)]\nmod tests").next().unwrap_or_default().to_owned();
    files().iter().filter(is_source).map(read).collect()
}

/// Removes the line breaks of a multi-line literal, and backticks.
fn plain(text: &str) -> String {
    Regex::new(r"\\\n\s*").unwrap().replace_all(text, "").replace("\\\"", "\"").replace('`', "")
}

/// A message in the page's notation: `…` for inserted values.
fn shown(literal: &str) -> String {
    let filled = Regex::new(r"(\{[^}]*\})+").unwrap();
    filled.replace_all(&plain(literal), "…").trim_end().to_owned()
}

/// Arguments of a call, from its opening parenthesis on.
fn arguments(text: &str) -> &str {
    let (mut depth, mut quoted, mut escaped) = (1, false, false);
    let end = text.find(|c| {
        match c {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            '(' if !quoted => depth += 1,
            ')' if !quoted => depth -= 1,
            _ => {}
        }
        depth == 0
    });
    &text[..end.unwrap_or(text.len())]
}

/// Messages of `error!` and `warn!`. Those that only forward another text are skipped.
fn logged(source: &str) -> Vec<String> {
    let (call, literal) =
        (Regex::new(r"\b(?:error|warn)!\(").unwrap(), Regex::new(r#""((?:[^"\\]|\\[\s\S])*)""#).unwrap());
    let target = Regex::new(r#"target: "[^"]*""#).unwrap();
    let message = |found: regex_lite::Match<'_>| {
        let arguments = target.replace_all(arguments(&source[found.end()..]), "").into_owned();
        let literals = literal.captures_iter(&arguments).map(|found| shown(&found[1]));
        literals.max_by_key(String::len).unwrap_or_default()
    };
    let says_something = |message: &String| message.chars().filter(|c| c.is_alphabetic()).count() > 3;
    call.find_iter(source).map(message).filter(says_something).collect()
}

/// Cells of the first column: kinds of failures, and messages.
fn listed() -> (BTreeSet<String>, BTreeSet<String>) {
    let page = read(PAGE);
    let cells = page.lines().filter_map(|line| Some(line.strip_prefix("| `")?.split_once("` |")?.0.replace('`', "")));
    cells.partition(|cell| cell.chars().all(|c| c.is_ascii_lowercase() || c == '_'))
}

#[test]
fn every_warning_and_error_is_explained() {
    let messages = listed().1;
    let mut logged: Vec<String> = sources().iter().flat_map(|source| logged(source)).collect();
    assert!(logged.len() > 80, "{logged:#?}");
    logged.retain(|message| !messages.contains(message));
    assert!(logged.is_empty(), "{PAGE} lacks {logged:#?}");
}

#[test]
fn messages_that_are_explained_exist() {
    let all = sources().iter().map(|source| plain(source)).collect::<Vec<_>>().join("\n");
    for message in listed().1 {
        let longest = message.split('…').map(str::trim).max_by_key(|part| part.len()).unwrap();
        assert!(all.contains(longest), "{PAGE}: nothing logs {message:?}");
    }
}

#[test]
fn every_kind_of_fault_is_explained() {
    let label = Regex::new(r#"Self::\w+ => \(\d.*"(\w+)"\)"#).unwrap();
    let fault = read("crates/pool/src/fault.rs");
    let kinds: BTreeSet<String> = label.captures_iter(&fault).map(|found| found[1].to_owned()).collect();
    assert!(kinds.len() > 10, "{kinds:?}");
    assert_eq!(kinds, listed().0);
}

#[test]
fn messages_are_found_in_calls() {
    let source = "warn!(target: \"howdah::x\", id = %a(1), \"no {name}: \\\n   `x` (\\\"y\\\")\"); error!(\"{text}\");";
    assert_eq!(logged(source), ["no …: x (\"y\")"]);
}
