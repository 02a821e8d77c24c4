//! Converts the conditions of nginx's `if` to conditions of a rule.

use crate::commands::import::site::{Rule, escaped};
use howdah_config::quoted;

/// A comparison with the value of a variable.
enum Test<'a> {
    /// Not empty.
    Given,
    Text(&'a str),
    Regex(String),
}

/// Adds the condition to a rule. Returns `None` if it has no counterpart; the rule may be changed then.
pub(super) fn add(words: &[String], rule: &mut Rule) -> Option<()> {
    let words = inside(words);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        [test, file] if is_requested(file) => exists(test, rule),
        [variable] => compare(variable, &Test::Given, false, rule),
        [variable, "=", text] => compare(variable, &Test::Text(text), false, rule),
        [variable, "!=", text] => compare(variable, &Test::Text(text), true, rule),
        [variable, operator, pattern] => {
            let (negated, operator) = operator.strip_prefix('!').map_or((false, *operator), |rest| (true, rest));
            let regex = match operator {
                "~" => (*pattern).to_owned(),
                "~*" => format!("(?i){pattern}"),
                _ => return None,
            };
            compare(variable, &Test::Regex(regex), negated, rule)
        }
        _ => None,
    }
}

/// Decides a condition about a variable whose value is known. `None`: that depends on the request, or on a pattern.
pub(super) fn of_value(words: &[String], variable: &str, value: &str) -> Option<bool> {
    let words = inside(words);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let is = |text: &str| (!value.contains('$') && !text.contains('$')).then_some(value == text);
    match words.as_slice() {
        [own] if *own == variable => Some(!matches!(value, "" | "0")),
        [own, "=", text] if *own == variable => is(text),
        [own, "!=", text] if *own == variable => is(text).map(|is| !is),
        _ => None,
    }
}

/// Removes the parentheses around the words of a condition, which may be words themselves.
pub(super) fn inside(words: &[String]) -> Vec<String> {
    let mut words = words.to_vec();
    if let Some(rest) = words.first().and_then(|first| first.strip_prefix('(')).map(str::to_owned) {
        words[0] = rest;
        words.drain(..usize::from(words[0].is_empty()));
    }
    if let Some(rest) = words.last().and_then(|last| last.strip_suffix(')')).map(str::to_owned) {
        words.pop();
        words.extend((!rest.is_empty()).then_some(rest));
    }
    words
}

/// `true` for the file that a request names.
fn is_requested(file: &str) -> bool {
    matches!(file, "$request_filename" | "$document_root$uri" | "$document_root$fastcgi_script_name")
}

fn exists(test: &str, rule: &mut Rule) -> Option<()> {
    match test {
        "-f" => rule.when.set("exists", "file"),
        "!-f" => rule.unless.set("exists", "file"),
        "-d" => rule.when.set("exists", "directory"),
        "!-d" => rule.unless.set("exists", "directory"),
        "-e" => rule.when.set_list("exists", &["file".to_owned(), "directory".to_owned()]),
        "!-e" => rule.when.set("exists", "no"),
        _ => return None,
    }
    Some(())
}

fn compare(variable: &str, test: &Test<'_>, negated: bool, rule: &mut Rule) -> Option<()> {
    let mut https = |on: bool| rule.when.write("https", if on == negated { "false" } else { "true" });
    match (variable, test) {
        ("$scheme", Test::Text("https")) | ("$https", Test::Text("on") | Test::Given) => https(true),
        ("$scheme", Test::Text("http")) | ("$https", Test::Text("")) => https(false),
        ("$uri" | "$document_uri" | "$request_uri", test) => return path(variable, test, negated, rule),
        ("$is_args", Test::Given) => rule.when.write("query", if negated { "false" } else { "true" }),
        (variable, test) => {
            let part = if negated { &mut rule.unless } else { &mut rule.when };
            match (variable, test) {
                ("$request_method", Test::Text(method)) => part.set_list("method", &[(*method).to_owned()]),
                ("$request_method", Test::Regex(regex)) => part.set_list("method", &alternatives(regex)?),
                ("$host" | "$http_host", Test::Text(host)) => part.set("host", host),
                ("$host" | "$http_host", Test::Regex(regex)) => part.set("host", &format!("~{regex}")),
                ("$remote_addr", Test::Text(client)) => part.set_list("client", &[(*client).to_owned()]),
                _ => {
                    let key = request_part(variable)?;
                    match test {
                        Test::Given => part.write(&key, "true"),
                        Test::Text("") => part.write(&key, "false"),
                        // Patterns without `~` ignore the case.
                        Test::Text(text) if text.contains('*') || negated => part.set(&key, &exactly(text)),
                        Test::Text(text) => part.set(&key, text),
                        Test::Regex(regex) => part.set(&key, &format!("~{regex}")),
                    }
                }
            }
        }
    }
    Some(())
}

fn exactly(text: &str) -> String {
    format!("~^{}$", escaped(text))
}

fn path(variable: &str, test: &Test<'_>, negated: bool, rule: &mut Rule) -> Option<()> {
    let path = match test {
        Test::Text(path) if !path.contains(['*', '?']) => (*path).to_owned(),
        // `$request_uri` has the query, which paths of rules do not have: see `request_uri`.
        Test::Regex(regex) if variable != "$request_uri" || !regex.contains("\\?") => format!("~{regex}"),
        _ => return None,
    };
    if negated {
        rule.except.push(path);
    } else if rule.paths.is_empty() {
        rule.paths.push(path);
    } else {
        return None;
    }
    Some(())
}

/// The key for a header, the query or a parameter of it.
pub(super) fn request_part(variable: &str) -> Option<String> {
    if let Some(parameter) = variable.strip_prefix("$arg_") {
        return Some(format!("query.{}", quoted(parameter)));
    }
    let name = match variable {
        "$args" | "$query_string" => return Some("query".to_owned()),
        "$content_type" => "content_type",
        _ => variable.strip_prefix("$http_")?,
    };
    let capitalized = |word: &str| word.get(..1).map_or(String::new(), |first| first.to_uppercase() + &word[1..]);
    let name = name.split('_').map(capitalized).collect::<Vec<_>>().join("-");
    Some(format!("header.{}", quoted(&name)))
}

/// The texts of a pattern that consists of alternatives, such as `^(GET|HEAD)$`.
pub(super) fn alternatives(regex: &str) -> Option<Vec<String>> {
    let inner = regex.strip_prefix('^')?.strip_suffix('$')?;
    let inner = inner.strip_prefix('(').and_then(|rest| rest.strip_suffix(')')).unwrap_or(inner);
    let texts: Vec<String> = inner.trim_start_matches("?:").split('|').map(str::to_owned).collect();
    texts.iter().all(|text| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphabetic())).then_some(texts)
}
