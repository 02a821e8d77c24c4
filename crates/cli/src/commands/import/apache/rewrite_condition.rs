//! The RewriteCond lines of a rule as an expression, which condition.rs converts as it does those of `<If>`.

use super::expression::Node;
use crate::commands::import::directive::Directive;
use crate::commands::import::site::escaped;
use howdah_htaccess::expression::{Compare, Word};

/// The conditions of a rule: all must hold; of those joined with `[OR]`, one.
///
/// # Errors
/// A condition without a counterpart.
pub(super) fn expression(conditions: &[Directive]) -> Result<Node, String> {
    let (mut all, mut any): (Option<Node>, Option<Node>) = (None, None);
    for (at, condition) in conditions.iter().enumerate() {
        let own = node(condition)?;
        let joined = any.take().map_or(own.clone(), |before| Node::Or(Box::new(before), Box::new(own)));
        let goes_on = flags(condition.word(2)).iter().any(|flag| flag == "OR") && at + 1 < conditions.len();
        if goes_on {
            any = Some(joined);
        } else {
            all = Some(all.map_or(joined.clone(), |before| Node::And(Box::new(before), Box::new(joined))));
        }
    }
    Ok(all.unwrap_or(Node::Constant(true)))
}

fn node(condition: &Directive) -> Result<Node, String> {
    let (subject, pattern) = (condition.word(0), condition.word(1));
    let (is_negated, pattern) = pattern.strip_prefix('!').map_or((false, pattern), |rest| (true, rest));
    let any_case = flags(condition.word(2)).iter().any(|flag| flag == "NC");
    let node = compared(subject, pattern, any_case)?;
    Ok(if is_negated { Node::Not(Box::new(node)) } else { node })
}

fn compared(subject: &str, pattern: &str, any_case: bool) -> Result<Node, String> {
    let no_counterpart = || Err(format!("rules have no such condition for {subject}"));
    if let Some(kind) = pattern.strip_prefix('-') {
        let is_requested = ["%{REQUEST_FILENAME}", "%{SCRIPT_FILENAME}", "%{DOCUMENT_ROOT}%{REQUEST_URI}"];
        let kind = match kind {
            // A link is a file here, and so is an empty file.
            "f" | "s" | "l" | "F" => b'f',
            "d" => b'd',
            _ => return no_counterpart(),
        };
        if !is_requested.iter().any(|own| subject.trim_end_matches('/').eq_ignore_ascii_case(own)) {
            return no_counterpart();
        }
        return Ok(Node::Unary(kind, Word::Variable("REQUEST_FILENAME".to_owned())));
    }
    let Some(name) = subject.strip_prefix("%{").and_then(|rest| rest.strip_suffix('}')) else {
        return no_counterpart();
    };
    if name.contains('%') || pattern.starts_with(['<', '>']) {
        return no_counterpart();
    }
    let variable = || Word::Variable(name.to_owned());
    let text = |text: &str| Word::Text(text.as_bytes().to_vec());
    let plain = pattern.trim_start_matches(['=', '^']).trim_end_matches('$').trim_matches('"');
    match name {
        "HTTPS" if ["on", "off"].contains(&&*plain.to_ascii_lowercase()) => {
            let on = Node::Text(Compare::Equal, variable(), text("on"));
            return Ok(if plain.eq_ignore_ascii_case("on") { on } else { Node::Not(Box::new(on)) });
        }
        "SERVER_PORT" if matches!(plain, "443" | "80") => {
            let on = Node::Text(Compare::Equal, Word::Variable("HTTPS".to_owned()), text("on"));
            return Ok(if plain == "443" { on } else { Node::Not(Box::new(on)) });
        }
        "REQUEST_METHOD" => {
            let words = plain.trim_start_matches('(').trim_end_matches(')').split('|');
            let words: Vec<&str> = words.map(|word| word.trim_matches(['^', '$'])).collect();
            let is_word = |word: &&str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_alphabetic());
            if !words.iter().all(is_word) {
                return no_counterpart();
            }
            return Ok(Node::In(variable(), words.into_iter().map(text).collect()));
        }
        _ => {}
    }
    let case = if any_case { "(?i)" } else { "" };
    match pattern.strip_prefix('=') {
        // `=` before a text means a literal match.
        Some(literal) if literal.trim_matches('"').is_empty() => Ok(Node::Unary(b'z', variable())),
        Some(literal) if any_case || literal.contains(['*', '?']) => {
            Ok(Node::Matches(variable(), format!("{case}^{}$", escaped(literal))))
        }
        Some(literal) => Ok(Node::Text(Compare::Equal, variable(), text(literal))),
        None if pattern == "^$" => Ok(Node::Unary(b'z', variable())),
        None if matches!(pattern, "." | ".+" | "^.+$" | "^.") => Ok(Node::Unary(b'n', variable())),
        None => Ok(Node::Matches(variable(), format!("{case}{pattern}"))),
    }
}

/// The flags of a rule or condition, by their short names.
pub(super) fn flags(word: &str) -> Vec<String> {
    let inside = word.trim_start_matches('[').trim_end_matches(']');
    let long = |flag: &str| match flag.split('=').next().unwrap_or_default().to_ascii_lowercase().as_str() {
        "nocase" => "NC".to_owned(),
        "forbidden" => "F".to_owned(),
        "gone" => "G".to_owned(),
        "last" => "L".to_owned(),
        "chain" => "C".to_owned(),
        "ornext" => "OR".to_owned(),
        "skip" => flag.find('=').map_or_else(|| "S=".to_owned(), |at| format!("S{}", &flag[at..])),
        "redirect" => flag.find('=').map_or_else(|| "R".to_owned(), |at| format!("R{}", &flag[at..])),
        _ => flag.to_owned(),
    };
    inside.split(',').map(str::trim).filter(|flag| !flag.is_empty()).map(long).collect()
}
