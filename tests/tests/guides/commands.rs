//! Commands in the guides succeed and print the output shown.
//!
//! The blocks of a page run in order on one machine: files named in a block's first line are written, a server that a
//! block starts runs until another one is started, and each page begins with the packaged server.

use super::blocks::{Block, pages, tried};
use super::settings::made_up;
use super::{on_a_machine, quoted};
use howdah_skip::skip;
use howdah_tests::time_limit;
use regex_lite::Regex;
use std::fmt::Write as _;

/// The path in the first line of a block: `# /etc/howdah/conf.d/shop.toml`, `<?php // worker.php, …`.
fn file(block: &Block) -> Option<String> {
    let name = match block.language.as_str() {
        "toml" => r"^# (/etc/howdah/[\w./-]+\.toml)",
        "php" => r"^<\?php // ([\w./-]+\.php)",
        _ => return None,
    };
    Some(Regex::new(name).unwrap().captures(&block.text)?[1].to_owned())
}

/// Commands of a block, and their output as shown.
fn commands(block: &Block) -> (String, String) {
    if block.language == "sh" {
        return (block.text.clone(), String::new());
    }
    let prompt = block.text.get(..2).unwrap_or("$ ");
    let (mut commands, mut printed) = (String::new(), String::new());
    for line in block.text.lines() {
        match line.strip_prefix(prompt) {
            Some(command) => commands += &format!("{command}\n"),
            None => printed += &format!("{line}\n"),
        }
    }
    (commands, printed)
}

fn script(blocks: &[Block]) -> String {
    let (mut script, mut page, mut number) = (String::new(), "", 0);
    for (at, block) in blocks.iter().enumerate() {
        if block.page != page {
            (page, number) = (&block.page, 0);
            let name = page.trim_end_matches(".md").rsplit('/').next().unwrap();
            let _ = writeln!(script, "page {name}");
        }
        if let Some(path) = file(block) {
            if block.language == "toml" {
                script += &made_up(&block.text);
            }
            let _ = writeln!(script, "write_file {} <<'END'\n{}END", quoted(&path), block.text);
            continue;
        }
        if !["sh", "console"].contains(&block.language.as_str()) {
            continue;
        }
        number += 1;
        let _ = writeln!(script, "block {at} {number} {} {}", block.language, quoted(&commands(block).0));
    }
    script
}

/// Normalizes numbers and whitespace, which differ between runs.
fn shape(text: &str) -> String {
    let number = Regex::new(r"[0-9]+([.][0-9]+)*").unwrap();
    let words: Vec<&str> = text.split_whitespace().collect();
    number.replace_all(&words.join(" "), "0").into_owned()
}

/// True if the parts of the text between `…` were printed, in this order.
fn is_shown(text: &str, printed: &str) -> bool {
    let (text, printed) = (shape(text), shape(printed));
    let mut rest = printed.as_str();
    text.split('…').map(str::trim).all(|part| match rest.split_once(part) {
        Some((_, after)) => {
            rest = after;
            true
        }
        None => false,
    })
}

/// Tests every third page, so that three tests can run at the same time.
fn try_pages(third: usize) {
    time_limit(180, "each page starts servers, and some run `howdah doctor`");
    if !rustix::process::geteuid().is_root() {
        skip!("root", "only root can mount the packages' files in a namespace");
    }
    let pages: Vec<String> = pages().into_iter().skip(third).step_by(3).collect();
    let mut blocks = tried(&["toml", "php", "sh", "console"]);
    blocks.retain(|block| pages.contains(&block.page));
    let printed = on_a_machine(&script(&blocks));
    let mut failed = Vec::new();
    for (at, block) in blocks.iter().enumerate().filter(|(_, block)| ["sh", "console"].contains(&&*block.language)) {
        let result = printed.split_once(&format!("=== {at}\n")).and_then(|(_, rest)| rest.split_once("#=> "));
        let Some((output, status)) = result else { panic!("{}: {printed}", block.place()) };
        let (commands, shown) = commands(block);
        // A message about an error is shown together with the failing command.
        let succeeds = status.starts_with("0\n") || block.language == "console";
        if !succeeds || !is_shown(&shown, output) {
            failed.push(format!("{}:\n{commands}{shown}--- printed:\n{output}=> {}", block.place(), &status[..1]));
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n\n"));
}

#[test]
fn commands_of_a_third_of_the_guides_print_the_output_shown() {
    try_pages(0);
}

#[test]
fn commands_of_another_third_of_the_guides_print_the_output_shown() {
    try_pages(1);
}

#[test]
fn commands_of_the_last_third_of_the_guides_print_the_output_shown() {
    try_pages(2);
}

#[test]
fn numbers_and_spaces_are_no_difference_but_words_are() {
    assert!(is_shown("process 1 serves;\n process … ends\n", "a process 23 serves; process 24 now ends"));
    assert!(!is_shown("process 1 serves", "process 1 ends"));
    assert!(is_shown("", "anything"));
}
