//! Writes PHP settings for the `php.ini` parser, so that each value is read unchanged, and reads sizes as PHP does. After
//! a syntax error the parser drops the rest of the file.
//!
//! Words and expressions stay unquoted, since `off` and `E_ALL & ~E_NOTICE` are not strings in `php.ini`.

use std::collections::BTreeMap;

/// Characters that are not allowed in a setting's name, because the parser interprets them.
const NOT_IN_NAMES: &[char] =
    &['=', ';', '&', '|', '^', '$', '~', '(', ')', '{', '}', '!', '"', '\'', '[', ']', '#', ' ', '\t'];

/// `true` if PHP's parser accepts this as a setting's name.
pub fn is_name(name: &str) -> bool {
    !name.is_empty() && !name.contains(|c: char| c.is_control() || NOT_IN_NAMES.contains(&c))
}

/// Formats settings as a part of a `php.ini`.
pub fn text(values: &BTreeMap<String, String>) -> String {
    values.iter().map(|(name, value)| format!("{name}={}\n", written(value))).collect()
}

/// Formats a value so that PHP's parser reads it back unchanged.
fn written(value: &str) -> String {
    let trimmed = value.trim();
    if is_word(trimmed) || is_expression(trimmed) { trimmed.to_owned() } else { quoted(unquoted(value)) }
}

/// Removes quotes around the whole value, as `php.ini` does.
fn unquoted(value: &str) -> &str {
    let inside = |quote: char| value.strip_prefix(quote)?.strip_suffix(quote).filter(|text| !text.contains(quote));
    inside('"').or_else(|| inside('\'')).unwrap_or(value)
}

/// Quotes a value. Between single quotes the parser interprets only the closing quote, so each single quote is put
/// between double quotes. Adjacent parts are concatenated.
fn quoted(value: &str) -> String {
    if value.is_empty() {
        return "\"\"".to_owned();
    }
    let parts = value.split('\'').map(|part| if part.is_empty() { String::new() } else { format!("'{part}'") });
    parts.collect::<Vec<_>>().join("\"'\"")
}

/// `true` for a number, `on`, `none`, or the name of a constant.
fn is_word(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// `true` for numbers and constants joined by operators. An incomplete expression would be a syntax error.
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

/// Parses a size as PHP does (`zend_atol`): digits and a unit letter at the end. `None` for a negative size.
pub fn size(text: &str) -> Option<u64> {
    let text = text.trim();
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let factor = match text.bytes().last().map(|last| last.to_ascii_lowercase()) {
        Some(b'k') => 1 << 10,
        Some(b'm') => 1 << 20,
        Some(b'g') => 1 << 30,
        _ => 1u64,
    };
    let number = if text.starts_with('-') { None } else { Some(&text[..digits]) };
    number.map(|number| number.parse().unwrap_or(0u64).saturating_mul(factor))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_expressions_are_not_quoted() {
        for value in ["off", "128", "E_ALL", "E_ALL & ~E_NOTICE", "~E_NOTICE", "(E_ALL | 1) ^ !2", "PHP_VERSION"] {
            assert_eq!(written(value), value);
        }
        assert_eq!(written(" on "), "on");
    }

    #[test]
    fn everything_else_is_quoted() {
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
            // An incomplete expression.
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
    fn sizes_are_read_as_php_reads_them() {
        for (text, bytes) in [
            ("8M", Some(8 << 20)),
            ("64m", Some(64 << 20)),
            (" 1k ", Some(1024)),
            ("2G", Some(2 << 30)),
            ("100", Some(100)),
            ("0", Some(0)),
            ("", Some(0)),
            ("x", Some(0)),
            ("-1", None),
            ("99999999999999999999G", Some(0)),
            ("9999999999999G", Some(u64::MAX)),
        ] {
            assert_eq!(size(text), bytes, "{text}");
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
