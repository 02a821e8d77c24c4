//! Writes settings of PHP for its `php.ini` parser, so that each value arrives unchanged. A syntax error would lose
//! more than one value: the parser drops everything after it.
//!
//! A word or an expression stays one, since `off` and `E_ALL & ~E_NOTICE` are no strings in `php.ini`.

use std::collections::BTreeMap;

/// Characters that a setting's name cannot have: all of them mean something to the parser.
const NOT_IN_NAMES: &[char] =
    &['=', ';', '&', '|', '^', '$', '~', '(', ')', '{', '}', '!', '"', '\'', '[', ']', '#', ' ', '\t'];

/// True if PHP's parser takes this for the name of a setting.
#[must_use]
pub fn is_name(name: &str) -> bool {
    !name.is_empty() && !name.contains(|c: char| c.is_control() || NOT_IN_NAMES.contains(&c))
}

/// These settings as a part of a `php.ini`.
#[must_use]
pub fn text(values: &BTreeMap<String, String>) -> String {
    values.iter().map(|(name, value)| format!("{name}={}\n", written(value))).collect()
}

/// A value as PHP's parser reads it back.
fn written(value: &str) -> String {
    let trimmed = value.trim();
    if is_word(trimmed) || is_expression(trimmed) { trimmed.to_owned() } else { quoted(unquoted(value)) }
}

/// Quotes around the whole value are removed, as in `php.ini`.
fn unquoted(value: &str) -> &str {
    let inside = |quote: char| value.strip_prefix(quote)?.strip_suffix(quote).filter(|text| !text.contains(quote));
    inside('"').or_else(|| inside('\'')).unwrap_or(value)
}

/// Between single quotes the parser looks for nothing but the next one; that one goes between double quotes. Parts that
/// follow one another are one text.
fn quoted(value: &str) -> String {
    if value.is_empty() {
        return "\"\"".to_owned();
    }
    let parts = value.split('\'').map(|part| if part.is_empty() { String::new() } else { format!("'{part}'") });
    parts.collect::<Vec<_>>().join("\"'\"")
}

/// A number, `on`, `none`, the name of a constant.
fn is_word(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// Numbers and constants with operators between them. It must be a whole one: half of one would be an error of syntax.
fn is_expression(text: &str) -> bool {
    let (mut rest, mut depth, mut operand_next) = (text, 0_u32, true);
    while let Some(first) = rest.chars().next() {
        let mut length = first.len_utf8();
        match first {
            ' ' | '\t' => {}
            '~' | '!' if operand_next => {}
            '(' if operand_next => depth += 1,
            ')' if !operand_next && depth > 0 => depth -= 1,
            '&' | '|' | '^' if !operand_next => operand_next = true,
            'A'..='Z' | '0'..='9' if operand_next => {
                let is_part = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
                length = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
                operand_next = false;
            }
            _ => return false,
        }
        rest = &rest[length..];
    }
    !operand_next && depth == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_expressions_stay_what_they_are() {
        for value in ["off", "128", "E_ALL", "E_ALL & ~E_NOTICE", "~E_NOTICE", "(E_ALL | 1) ^ !2", "PHP_VERSION"] {
            assert_eq!(written(value), value);
        }
        assert_eq!(written(" on "), "on");
    }

    #[test]
    fn everything_else_is_a_text_whatever_it_holds() {
        for (value, expected) in [
            ("", "\"\""),
            ("128M", "128M"),
            ("Europe/Vienna", "'Europe/Vienna'"),
            ("tcp://h?a=1&b=2", "'tcp://h?a=1&b=2'"),
            ("a;b", "'a;b'"),
            ("${HOME}", "'${HOME}'"),
            ("a\nb", "'a\nb'"),
            ("it's", "'it'\"'\"'s'"),
            ("'", "\"'\""),
            ("say \"a\"", "'say \"a\"'"),
            ("\"a = b; c\"", "'a = b; c'"),
            ("'a = b'", "'a = b'"),
            ("\"a\" and \"b\"", "'\"a\" and \"b\"'"),
            ("a\\", "'a\\'"),
            // Half an expression.
            ("E_ALL &", "'E_ALL &'"),
            ("(1", "'(1'"),
            ("1 2", "'1 2'"),
            ("a & b", "'a & b'"),
            ("~", "'~'"),
        ] {
            assert_eq!(written(value), expected, "{value}");
        }
    }

    #[test]
    fn names_are_words_and_dots() {
        assert!(is_name("memory_limit") && is_name("opcache.enable") && is_name("Xdebug-like"));
        for name in ["", "a=b", "a\nb", "a b", "[a]", "a;b", "a\"", "${a}"] {
            assert!(!is_name(name), "{name:?}");
        }
    }
}
