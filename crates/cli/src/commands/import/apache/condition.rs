//! Comparisons of Apache's expressions as conditions of a rule.

use super::expression::{Node, Test, alternatives};
use crate::commands::import::site::{Rule, escaped, fits_empty, joined};
use howdah_config::quoted;

/// The conditions of the rules of which one must hold: none if no request meets the expression.
///
/// # Errors
/// The reason if there is no counterpart.
pub(super) fn rules(node: &Node) -> Result<Vec<Rule>, String> {
    alternatives(node, false)?.iter().map(|all| rule(all)).collect()
}

fn rule(all: &[(Test, bool)]) -> Result<Rule, String> {
    let mut rule = Rule::default();
    for (test, is_negated) in all {
        add(test, *is_negated, &mut rule)?;
    }
    Ok(rule)
}

/// Adds a comparison to the conditions of a rule.
///
/// # Errors
/// The reason if it has no counterpart; the rule is unusable then.
fn add(test: &Test, is_negated: bool, rule: &mut Rule) -> Result<(), String> {
    let variable = match test {
        Test::Text(variable, _) | Test::Regex(variable, _) | Test::Given(variable) => variable.as_str(),
        Test::Network(_) => "REMOTE_ADDR",
        Test::Exists(_) => "REQUEST_FILENAME",
    };
    let no_counterpart = || format!("rules have no such condition for {variable}");
    match (variable, test) {
        ("HTTPS", Test::Text(_, texts)) if texts.len() == 1 => {
            return https(texts[0].eq_ignore_ascii_case("on") != is_negated, rule);
        }
        ("REQUEST_SCHEME", Test::Text(_, texts)) if texts.len() == 1 && ["http", "https"].contains(&&*texts[0]) => {
            return https((texts[0] == "https") != is_negated, rule);
        }
        ("REQUEST_FILENAME", Test::Exists(kind)) => {
            return exists(kind, is_negated, rule);
        }
        ("REQUEST_URI", _) => return path(test, is_negated, rule).ok_or_else(no_counterpart),
        _ => {}
    }
    let (key, values) = match (variable, test) {
        ("HTTP_HOST" | "SERVER_NAME" | "HTTP:Host", Test::Text(_, hosts)) => ("host".to_owned(), hosts.clone()),
        ("HTTP_HOST" | "SERVER_NAME" | "HTTP:Host", Test::Regex(_, regex)) => {
            ("host".to_owned(), vec![format!("~{regex}")])
        }
        ("REQUEST_METHOD", Test::Text(_, methods)) => ("method".to_owned(), methods.clone()),
        ("REMOTE_ADDR", Test::Text(_, clients)) if clients.iter().all(|client| is_network(client)) => {
            ("client".to_owned(), clients.clone())
        }
        ("REMOTE_ADDR", Test::Network(network)) if is_network(network) => ("client".to_owned(), vec![network.clone()]),
        _ => return part(variable, test, is_negated, rule).ok_or_else(no_counterpart)?,
    };
    let is_plain = |value: &String| !value.is_empty() && (value.starts_with('~') || !value.contains(['*', '?']));
    if !values.iter().all(is_plain) {
        return Err(no_counterpart());
    }
    if is_negated {
        // One of several suffices for `not`.
        values.iter().for_each(|value| rule.unless.add(&key, value));
        return Ok(());
    }
    set(rule.when.has(&key), || rule.when.set_list(&key, &values))
}

/// Sets a condition that the rule must not have yet.
fn set(is_there: bool, write: impl FnOnce()) -> Result<(), String> {
    if is_there {
        return Err("two conditions of one kind must hold".to_owned());
    }
    write();
    Ok(())
}

fn exists(kind: &str, is_negated: bool, rule: &mut Rule) -> Result<(), String> {
    let before = rule.unless.text("exists");
    match before.as_deref() {
        _ if !is_negated => return same(rule.when.text("exists"), kind, || rule.when.set("exists", kind)),
        Some(before) if before == kind => {}
        // Neither a file nor a directory.
        Some(_) => {
            rule.unless.remove("exists");
            return same(rule.when.text("exists"), "no", || rule.when.set("exists", "no"));
        }
        None if rule.when.text("exists").as_deref() == Some("no") => {}
        None => rule.unless.set("exists", kind),
    }
    Ok(())
}

/// Sets a condition that the rule may have already.
fn same(before: Option<String>, value: &str, write: impl FnOnce()) -> Result<(), String> {
    match before {
        Some(before) if before == value => Ok(()),
        before => set(before.is_some(), write),
    }
}

fn https(is_on: bool, rule: &mut Rule) -> Result<(), String> {
    set(rule.when.has("https"), || rule.when.write("https", if is_on { "true" } else { "false" }))
}

fn is_network(text: &str) -> bool {
    let (addr, bits) = text.split_once('/').map_or((text, None), |(addr, bits)| (addr, Some(bits)));
    addr.parse::<std::net::IpAddr>().is_ok() && bits.is_none_or(|bits| bits.parse::<u8>().is_ok())
}

fn path(test: &Test, is_negated: bool, rule: &mut Rule) -> Option<()> {
    let paths = match test {
        Test::Text(_, paths) if paths.iter().all(|path| path.starts_with('/') && !path.contains(['*', '?'])) => {
            paths.clone()
        }
        Test::Regex(_, regex) => vec![format!("~{regex}")],
        _ => return None,
    };
    if is_negated {
        rule.except.extend(paths);
    } else if rule.paths.is_empty() {
        rule.paths = paths;
    } else {
        return None;
    }
    Some(())
}

fn header(name: &str) -> String {
    format!("header.{}", quoted(name))
}

/// A condition on a header, or on the query. A rule has one for each header, and `not` one in all, because those in it
/// would have to hold together.
fn part(variable: &str, test: &Test, is_negated: bool, rule: &mut Rule) -> Option<Result<(), String>> {
    let key = match variable {
        "QUERY_STRING" => "query".to_owned(),
        "HTTP_USER_AGENT" => header("User-Agent"),
        "HTTP_REFERER" => header("Referer"),
        "HTTP_COOKIE" => header("Cookie"),
        "HTTP_ACCEPT" => header("Accept"),
        "HTTP_FORWARDED" => header("Forwarded"),
        "HTTP_PROXY_CONNECTION" => header("Proxy-Connection"),
        other => header(other.strip_prefix("HTTP:")?),
    };
    let value = match test {
        Test::Given(_) => {
            let value = if is_negated { "false" } else { "true" };
            return Some(set(rule.when.has(&key), || rule.when.write(&key, value)));
        }
        // A header that is not there is an empty text for Apache.
        Test::Text(_, texts) if texts.iter().all(String::is_empty) => {
            let value = if is_negated { "true" } else { "false" };
            return Some(set(rule.when.has(&key), || rule.when.write(&key, value)));
        }
        Test::Text(_, texts) if !texts.iter().any(String::is_empty) => {
            let texts: Vec<String> = texts.iter().map(|text| escaped(text)).collect();
            format!("~^(?:{})$", texts.join("|"))
        }
        Test::Regex(_, regex) if !fits_empty(regex) || key == "query" => format!("~{regex}"),
        _ => return None,
    };
    if !is_negated {
        return Some(set(rule.when.has(&key), || rule.when.set(&key, &value)));
    }
    let value = rule.unless.text(&key).map_or(value.clone(), |before| joined(&[before, value]));
    let is_there = !rule.unless.has(&key) && rule.unless.has_any("header.");
    Some(set(is_there, || rule.unless.set(&key, &value)))
}
