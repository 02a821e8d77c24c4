//! RewriteRule and its RewriteCond lines: become a front controller or a rule.

use crate::commands::import::directive::Directive;
use crate::commands::import::site::{Rule, Site, escaped};

/// Patterns that match every path.
const MATCH_ALL: &[&str] = &["^", ".", "^(.*)$", "^.*$", "(.*)", ".*", "^(.+)$", ".+", "^.", "^(.*)", "^.+$"];

/// Writes a rewrite rule to the site. `directory` is the path of the enclosing directory, which patterns are relative
/// to.
///
/// # Errors
/// The reason if there is no counterpart.
pub(super) fn rewrite(
    rule: &Directive,
    conditions: &[Directive],
    directory: Option<&str>,
    site: &mut Site,
) -> Result<&'static str, &'static str> {
    let flags: Vec<String> = flags(rule.word(2));
    let has = |name: &str| flags.iter().any(|flag| flag == name);
    let (pattern, target) = (rule.word(0), rule.word(1));
    if flags.iter().any(|flag| flag.starts_with("E=HTTP_AUTHORIZATION")) {
        return Ok("taken: built in: scripts see HTTP_AUTHORIZATION");
    }
    let mut made = Rule::default();
    for condition in conditions {
        add(&mut made, condition)?;
    }
    let only_missing = conditions.iter().all(|condition| condition.word(1).starts_with("!-"));
    let script = target.trim_start_matches("%{DOCUMENT_ROOT}").trim_start_matches('/');
    let redirects = flags.iter().any(|flag| *flag == "R" || flag.starts_with("R=")) || target.contains("://");
    let is_whole = MATCH_ALL.contains(&pattern) && directory.is_none_or(str::is_empty);
    if is_whole && !conditions.is_empty() && only_missing && script.ends_with(".php") && !script.contains(['?', '$']) {
        site.keys.set("front_controller", script);
        return Ok("taken: front_controller");
    }
    made.paths = vec![path(pattern, has("NC"), directory)?];
    let target = replaced(target, directory)?;
    if has("F") {
        made.deny();
    } else if has("G") {
        made.keys.write("status", "410");
    } else if target == "-" {
        return Err("it only ends the list of rules");
    } else if redirects {
        made.keys.set("redirect", &target);
        let status = flags.iter().find_map(|flag| flag.strip_prefix("R=")).unwrap_or("302");
        let status = match status {
            "permanent" => "301",
            "temp" => "302",
            "seeother" => "303",
            number => number,
        };
        made.keys.write("status", status);
    } else {
        made.keys.set("rewrite", &target);
    }
    if has("END") {
        made.keys.write("last", "true");
    }
    site.rules.push(made);
    Ok("taken: a rule")
}

fn flags(word: &str) -> Vec<String> {
    let inside = word.trim_start_matches('[').trim_end_matches(']');
    let long = |flag: &str| match flag.split('=').next().unwrap_or_default().to_ascii_lowercase().as_str() {
        "nocase" => "NC".to_owned(),
        "forbidden" => "F".to_owned(),
        "gone" => "G".to_owned(),
        "redirect" => flag.find('=').map_or_else(|| "R".to_owned(), |at| format!("R{}", &flag[at..])),
        _ => flag.to_owned(),
    };
    inside.split(',').map(str::trim).filter(|flag| !flag.is_empty()).map(long).collect()
}

fn add(rule: &mut Rule, condition: &Directive) -> Result<(), &'static str> {
    let flags = flags(condition.word(2));
    if flags.iter().any(|flag| flag == "OR" || flag == "ornext") {
        return Err("conditions of which one suffices: write a rule for each");
    }
    let pattern = condition.word(1);
    let negative = pattern.starts_with('!');
    let pattern = pattern.trim_start_matches('!');
    let no_case = if flags.iter().any(|flag| flag == "NC") { "(?i)" } else { "" };
    // `=` before a text means a literal match.
    let regex = || match pattern.strip_prefix('=') {
        Some(text) => format!("~{no_case}^{}$", escaped(text)),
        None => format!("~{no_case}{pattern}"),
    };
    match (condition.word(0), pattern) {
        ("%{HTTPS}", state) => {
            let on = matches!(state.trim_start_matches(['=', '^']).trim_end_matches('$'), "on") != negative;
            rule.when.write("https", if on { "true" } else { "false" });
        }
        (_, "-f" | "-d" | "-l") if negative => rule.when.set("exists", "no"),
        (_, "-f") => rule.when.set("exists", "file"),
        (_, "-d") => rule.when.set("exists", "directory"),
        ("%{HTTP_HOST}" | "%{SERVER_NAME}", _) if negative => rule.unless.set("host", &regex()),
        ("%{HTTP_HOST}" | "%{SERVER_NAME}", _) => rule.when.set("host", &regex()),
        ("%{REQUEST_URI}", _) if negative => rule.except.push(regex()),
        ("%{REQUEST_METHOD}", method) if !negative => {
            let method = method.trim_start_matches(['^', '(', '=']).trim_end_matches(['$', ')']);
            rule.when.set_list("method", &method.split('|').map(str::to_owned).collect::<Vec<_>>());
        }
        _ => return Err("its conditions have no counterpart"),
    }
    Ok(())
}

/// Converts a pattern to a condition on the whole path.
fn path(pattern: &str, no_case: bool, directory: Option<&str>) -> Result<String, &'static str> {
    if pattern.starts_with('!') {
        return Err("a pattern that must not fit: write it as not");
    }
    let case = if no_case { "(?i)" } else { "" };
    let Some(directory) = directory else { return Ok(format!("~{case}{pattern}")) };
    let start = escaped(directory.trim_end_matches('/'));
    Ok(match pattern.strip_prefix('^') {
        Some(rest) => format!("~{case}^{start}/{}", rest.trim_start_matches("/?")),
        None if pattern.starts_with("(.*)") || pattern.starts_with("(.+)") => format!("~{case}^{start}/{pattern}"),
        None => format!("~{case}^{start}/.*{pattern}"),
    })
}

/// Replaces Apache's variables in a target with this server's.
fn replaced(target: &str, directory: Option<&str>) -> Result<String, &'static str> {
    let pairs = [
        ("%{DOCUMENT_ROOT}", ""),
        ("%{HTTP_HOST}", "$host"),
        ("%{SERVER_NAME}", "$host"),
        ("%{REQUEST_URI}", "$path"),
        ("?%{QUERY_STRING}", ""),
        ("%{QUERY_STRING}", "$query"),
        ("%{REQUEST_SCHEME}", "$scheme"),
    ];
    let made = pairs.iter().fold(target.to_owned(), |text, (theirs, own)| text.replace(theirs, own));
    if made.contains('%') {
        return Err("a part of a condition in its target has no counterpart");
    }
    let is_relative = made != "-" && !made.starts_with('/') && !made.starts_with('$') && !made.contains("://");
    Ok(if is_relative { format!("{}/{made}", directory.unwrap_or_default().trim_end_matches('/')) } else { made })
}
