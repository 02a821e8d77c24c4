//! Converts matchers of a Caddyfile to conditions of a rule.

use crate::commands::import::directive::Directive;
use crate::commands::import::site::Rule;

/// Adds the conditions of `@NAME` to a rule.
///
/// # Errors
/// A matcher without a counterpart.
pub(super) fn named(definition: &Directive, rule: &mut Rule) -> Result<(), String> {
    let parts: Vec<Directive> = match &definition.block {
        Some(block) => block.clone(),
        None => {
            let (name, words) = definition.words.split_first().ok_or("a matcher without conditions")?;
            let (name, words) = (name.clone(), words.to_vec());
            vec![Directive { name, words, block: None, line: definition.line }]
        }
    };
    parts.iter().try_for_each(|part| condition(part, rule))
}

fn condition(part: &Directive, rule: &mut Rule) -> Result<(), String> {
    let words = part.words.as_slice();
    let unknown = || Err(format!("the matcher {} has no counterpart", part.shown()));
    match part.name.as_str() {
        "path" => rule.paths.extend(words.iter().flat_map(|path| paths(path))),
        "path_regexp" => rule.paths.extend(words.last().map(|regex| format!("~{regex}"))),
        "host" => rule.when.set_list("host", words),
        "method" => rule.when.set_list("method", words),
        "remote_ip" | "client_ip" => rule.when.set_list("client", &networks(words)),
        "protocol" if matches!(part.word(0), "https" | "http") => {
            rule.when.write("https", if part.word(0) == "https" { "true" } else { "false" });
        }
        "header" if words.len() == 2 => rule.when.set_in("header", part.word(0), part.word(1)),
        "header_regexp" if words.len() >= 2 => {
            rule.when.set_in("header", &words[words.len() - 2], &format!("~{}", words[words.len() - 1]));
        }
        "query" if words.iter().all(|word| word.contains('=')) => {
            for (name, value) in words.iter().filter_map(|word| word.split_once('=')) {
                rule.when.set_in("query", name, value);
            }
        }
        // Without a root, the file is the requested one.
        "file" if part.block.is_none() && words.iter().all(|word| word == "{path}") => rule.when.set("exists", "file"),
        "not" => return negated(part, rule),
        _ => return unknown(),
    }
    Ok(())
}

fn negated(part: &Directive, rule: &mut Rule) -> Result<(), String> {
    let parts: Vec<Directive> = match &part.block {
        Some(block) => block.clone(),
        None if part.words.is_empty() => Vec::new(),
        None => vec![Directive {
            name: part.word(0).to_owned(),
            words: part.words[1..].to_vec(),
            block: None,
            line: part.line,
        }],
    };
    // Caddy excludes requests that match all matchers; a rule's exclusions apply if any one matches.
    let [part] = parts.as_slice() else { return Err("not with several matchers: write them by hand".to_owned()) };
    match part.name.as_str() {
        "path" => rule.except.extend(part.words.iter().flat_map(|path| paths(path))),
        "path_regexp" => rule.except.extend(part.words.last().map(|regex| format!("~{regex}"))),
        "host" => rule.unless.set_list("host", &part.words),
        "method" => rule.unless.set_list("method", &part.words),
        "remote_ip" | "client_ip" => rule.unless.set_list("client", &networks(&part.words)),
        "file" => rule.when.set("exists", "no"),
        _ => return Err(format!("the matcher not {} has no counterpart", part.shown())),
    }
    Ok(())
}

/// Converts a path with `*` at its beginning or end. Caddy's `/a*` also matches `/a`, as it does here.
pub(super) fn paths(path: &str) -> Vec<String> {
    if path == "*" { Vec::new() } else { vec![path.to_owned()] }
}

pub(super) fn networks(words: &[String]) -> Vec<String> {
    let private = ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "127.0.0.0/8", "fd00::/8", "::1"];
    let all = words.iter().filter(|word| *word != "forwarded");
    all.flat_map(|word| if word == "private_ranges" { private.map(str::to_owned).to_vec() } else { vec![word.clone()] })
        .collect()
}
