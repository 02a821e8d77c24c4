//! Generates the stubs for IDEs (`php/stubs/async.stub.php`) and the API's reference page (`docs/reference/async-api.md`)
//! from the async library's own files, and compares them with what is committed. `make generate` writes them.
//!
//! This is no parser of PHP: it relies on the library's layout, where members stand four spaces in and braces of
//! functions have a line of their own or end one.

use super::SOURCES;
use std::fmt::Write;

/// A function, method or constant that users may call.
struct Item {
    /// With its comment marks, without indentation.
    doc: Vec<String>,
    /// In one line, without `{`.
    signature: String,
}

/// A class, interface, or (with an empty head) the functions of the namespace.
struct Block {
    doc: Vec<String>,
    head: String,
    items: Vec<Item>,
}

/// Everything public in one file of the library.
fn blocks(text: &str) -> Vec<Block> {
    let mut blocks = vec![Block { doc: Vec::new(), head: String::new(), items: Vec::new() }];
    let mut doc = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let code = line.trim_start();
        let indent = line.len() - code.len();
        if code.starts_with("/**") {
            doc = vec![code.to_owned()];
            while !doc.last().is_some_and(|last| last.ends_with("*/")) {
                let Some(next) = lines.next() else { break };
                doc.push(format!(" {}", next.trim_start()));
            }
        } else if indent == 0 && ["final class ", "class ", "interface "].iter().any(|kind| code.starts_with(kind)) {
            blocks.push(Block { doc: std::mem::take(&mut doc), head: code.to_owned(), items: Vec::new() });
        } else if (indent == 0 && code.starts_with("function ")) || (indent == 4 && code.starts_with("public ")) {
            let mut signature = code.to_owned();
            while !signature.ends_with([')', ';', '{'])
                && !signature.rsplit(')').next().is_some_and(|rest| rest.starts_with(':'))
            {
                let Some(next) = lines.next() else { break };
                signature.push(' ');
                signature.push_str(next.trim());
            }
            let signature = signature.trim_end_matches(['{', ';', ' ']).replace("( ", "(").replace(", )", ")");
            let signature = signature.replace("private readonly ", "").replace("#[\\SensitiveParameter] ", "");
            let doc = std::mem::take(&mut doc);
            let internal = doc.iter().any(|line: &String| line.contains("@internal"));
            if !internal && !signature.contains("__destruct") && signature.contains("function ") {
                // Functions stand before any class of their file.
                let block = if indent == 0 { blocks.first_mut() } else { blocks.last_mut() };
                block.into_iter().for_each(|b| b.items.push(Item { doc: doc.clone(), signature: signature.clone() }));
            }
        } else if !code.is_empty() && !code.starts_with("#[") {
            doc.clear();
        }
    }
    blocks.retain(|block| !block.head.is_empty() || !block.items.is_empty());
    blocks
}

/// The comment that opens a file, as a doc comment.
fn purpose(text: &str) -> Vec<String> {
    let comment = text.split("*/").next().unwrap_or_default().trim_start().trim_start_matches("/*").trim();
    let mut doc = vec!["/**".to_owned()];
    doc.extend(comment.lines().map(|line| format!(" * {}", line.trim_start().trim_start_matches("* "))));
    doc.push(" */".to_owned());
    doc
}

/// All public blocks in the order of the library. What a file says of itself is said of its class.
fn public() -> Vec<Block> {
    let mut all = Vec::new();
    for source in SOURCES.iter().filter(|source| source.text.contains("\nnamespace Howdah;\n")) {
        for mut block in blocks(source.text) {
            if block.doc.iter().all(|line| line.contains("@implements")) {
                block.doc = purpose(source.text);
            }
            all.push(block);
        }
    }
    all
}

fn stubs() -> String {
    let mut out = String::from(
        "<?php\n\n/**\n * Howdah's async library, for IDEs and static analysers; never run. Generated from crates/php-host/library by\n \
         * `make generate`; a test compares the two. Do not edit.\n */\n\nnamespace Howdah;\n",
    );
    for block in public() {
        let inner = if block.head.is_empty() { "" } else { "    " };
        if !block.head.is_empty() {
            let _ = write!(out, "\n{}\n{}\n{{\n", block.doc.join("\n"), block.head);
        }
        for (number, item) in block.items.iter().enumerate() {
            if number > 0 || inner.is_empty() {
                out.push('\n');
            }
            for line in &item.doc {
                let _ = writeln!(out, "{inner}{line}");
            }
            let body = if block.head.starts_with("interface") { ";" } else { " {}" };
            let _ = writeln!(out, "{inner}{}{body}", item.signature);
        }
        if !block.head.is_empty() {
            out.push_str("}\n");
        }
    }
    out
}

/// A doc comment's text for a table: its description, then what it throws, without parameters.
fn prose(doc: &[String]) -> String {
    let mut text = String::new();
    for line in doc {
        let line = line.trim().trim_start_matches("/**").trim_end_matches("*/").trim_start_matches('*').trim();
        if line.starts_with('@') {
            break;
        }
        if !line.is_empty() {
            let _ = write!(text, "{}{line}", if text.is_empty() { "" } else { " " });
        }
    }
    text.replace('|', "\\|").replace('<', "&lt;")
}

fn reference() -> String {
    let mut out = String::from(
        "# Functions and classes of async mode\n\n<!-- Generated from crates/php-host/library by `make generate`; a test \
         compares the two. -->\n\nAll of this is there in async workers only, in the namespace `Howdah`. Times are in seconds, \
         those of `Timer` in milliseconds. How to use it: [async.md](../guide/async.md); parameters in full: \
         `php/stubs/async.stub.php`.\n",
    );
    for block in public() {
        if block.head.is_empty() {
            out.push_str("\n## Functions\n\n| function | |\n|---|---|\n");
        } else {
            let _ = write!(out, "\n## `{}`\n\n{}\n", block.head.trim_start_matches("final "), prose(&block.doc));
            if !block.items.is_empty() {
                out.push_str("\n| method | |\n|---|---|\n");
            }
        }
        for item in &block.items {
            let signature = item.signature.replace("public ", "").replace("function ", "").replace('|', "\\|");
            let _ = writeln!(out, "| `{signature}` | {} |", prose(&item.doc));
        }
    }
    out
}

/// Compares a file with what it should be, or writes it if HOWDAH_GENERATE is set.
fn is_current(path: &str, fresh: &str) {
    let path = format!("{}/../../{path}", env!("CARGO_MANIFEST_DIR"));
    if std::env::var_os("HOWDAH_GENERATE").is_some() {
        std::fs::write(&path, fresh).expect("written");
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(committed == fresh, "{path} is out of date: run `make generate`");
}

#[test]
fn stubs_and_reference_of_the_library_are_current() {
    is_current("php/stubs/async.stub.php", &stubs());
    is_current("docs/reference/async-api.md", &reference());
}
