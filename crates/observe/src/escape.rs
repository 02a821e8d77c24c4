//! Makes values from outside harmless in a log line or a metric: no value can end its line, its quotes or its field.

use std::fmt::Write as _;

const HEX: &[u8; 16] = b"0123456789ABCDEF";

/// `true` if a character is visible and does not affect the text around it, unlike control characters, line separators
/// and format characters (Unicode's category Cf).
pub fn is_plain(character: char) -> bool {
    !character.is_control()
        && !matches!(character,
            '\u{ad}' | '\u{600}'..='\u{605}' | '\u{61c}' | '\u{6dd}' | '\u{70f}' | '\u{890}'..='\u{891}' | '\u{8e2}'
            | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}' | '\u{110bd}' | '\u{110cd}' | '\u{13430}'..='\u{1343f}'
            | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e007f}')
}

/// Appends bytes to a line of the combined format: control characters, quotes, backslashes and everything beyond
/// ASCII become `\xHH`.
pub(crate) fn combined(out: &mut Vec<u8>, value: &[u8]) {
    // Without an early end, which would be a comparison per byte instead of one per 16.
    if value.iter().fold(true, |all, &byte| all & is_plain_byte(byte)) {
        return out.extend_from_slice(value);
    }
    let mut plain = 0;
    for (at, &byte) in value.iter().enumerate() {
        if is_plain_byte(byte) {
            continue;
        }
        out.extend_from_slice(&value[plain..at]);
        out.extend_from_slice(&[b'\\', b'x', HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
        plain = at + 1;
    }
    out.extend_from_slice(&value[plain..]);
}

/// `true` for a byte that stands for itself between quotes.
const fn is_plain_byte(byte: u8) -> bool {
    (byte >= b' ') & (byte <= b'~') & (byte != b'"') & (byte != b'\\')
}

/// Appends bytes as a JSON string with its quotes; bytes that are not UTF-8 become U+FFFD.
pub(crate) fn json(out: &mut Vec<u8>, value: &[u8]) {
    out.push(b'"');
    if value.iter().fold(true, |all, &byte| all & is_plain_byte(byte)) {
        out.extend_from_slice(value);
    } else {
        for character in String::from_utf8_lossy(value).chars() {
            match character {
                '"' => out.extend_from_slice(b"\\\""),
                '\\' => out.extend_from_slice(b"\\\\"),
                '\n' => out.extend_from_slice(b"\\n"),
                c if !is_plain(c) => out.extend_from_slice(in_json(c).as_bytes()),
                c => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
            }
        }
    }
    out.push(b'"');
}

/// Escapes a character as in a JSON string.
fn in_json(character: char) -> String {
    character.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}")).collect()
}

/// Escapes the remaining non-plain characters in the strings of serialized JSON; the serializer has escaped those of
/// ASCII.
pub fn of_json(json: &str) -> String {
    let raw = |c: char| !c.is_ascii_control() && !is_plain(c);
    json.chars().fold(String::with_capacity(json.len()), |mut out, c| {
        if raw(c) || c == '\u{7f}' {
            out.push_str(&in_json(c));
        } else {
            out.push(c);
        }
        out
    })
}

/// Escapes multi-line text with tabs for a terminal.
pub fn lines(value: &str) -> String {
    let mut out = String::with_capacity(value.len());
    for character in value.chars() {
        match character {
            '\n' | '\t' => out.push(character),
            c if !is_plain(c) => out.extend(c.escape_unicode()),
            c => out.push(c),
        }
    }
    out
}

/// Appends text to a line that people read, in the error log or on a terminal. Characters that are not plain become
/// `\n`, `\t` or `\u{…}`.
pub fn text(out: &mut String, value: &str) {
    for character in value.chars() {
        match character {
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            c if !is_plain(c) => out.extend(c.escape_unicode()),
            c => out.push(c),
        }
    }
}

/// Appends a label value in Prometheus' text format, without quotes.
pub(crate) fn prometheus(out: &mut String, value: &str) {
    for character in value.chars() {
        match character {
            '"' | '\\' => {
                let _ = write!(out, "\\{character}");
            }
            '\n' => out.push_str("\\n"),
            // The format has no other escape.
            c if !is_plain(c) => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_that_turn_or_hide_text_are_escaped_in_every_output() {
        for c in [
            '\u{1b}',
            '\u{7f}',
            '\u{9b}',
            '\u{ad}',
            '\u{200b}',
            '\u{200f}',
            '\u{2028}',
            '\u{202e}',
            '\u{2066}',
            '\u{2069}',
            '\u{feff}',
            '\u{e0041}',
        ] {
            let value = format!("a{c}b");
            let mut line = String::new();
            text(&mut line, &value);
            assert_eq!(line, format!("a{}b", c.escape_unicode()));
            assert_eq!(lines(&format!("x\n{value}\t")), format!("x\n{line}\t"));
            let mut quoted = Vec::new();
            json(&mut quoted, value.as_bytes());
            let quoted = String::from_utf8(quoted).unwrap();
            assert!(quoted.is_ascii(), "{quoted:?}");
            assert_eq!(serde_json::from_str::<String>(&quoted).unwrap(), value);
            let made = of_json(&serde_json::to_string_pretty(&[&value]).unwrap());
            assert!(made.chars().all(|c| c == '\n' || is_plain(c)), "{made:?}");
            assert_eq!(serde_json::from_str::<Vec<String>>(&made).unwrap(), std::slice::from_ref(&value));
            let mut fields = Vec::new();
            combined(&mut fields, value.as_bytes());
            assert!(fields.iter().all(|byte| (b' '..=b'~').contains(byte)));
            let mut label = String::new();
            prometheus(&mut label, &value);
            assert!(label.chars().all(is_plain), "{label:?}");
        }
        let readable = "Größe 1 × 2 — 日本語 עברית 😀 e\u{301}";
        let mut line = String::new();
        text(&mut line, readable);
        assert_eq!(line, readable);
    }
}
