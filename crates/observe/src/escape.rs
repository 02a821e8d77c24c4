//! Makes values from outside harmless in a log line or a metric: no value can end its line, its quotes or its field.

use std::fmt::Write as _;

const HEX: &[u8; 16] = b"0123456789ABCDEF";

/// Appends bytes to a line of the combined format: control characters, quotes, backslashes and everything beyond
/// ASCII become `\xHH`.
pub(crate) fn combined(out: &mut Vec<u8>, value: &[u8]) {
    let mut plain = 0;
    for (at, &byte) in value.iter().enumerate() {
        if byte.is_ascii_graphic() && byte != b'"' && byte != b'\\' || byte == b' ' {
            continue;
        }
        out.extend_from_slice(&value[plain..at]);
        out.extend_from_slice(&[b'\\', b'x', HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
        plain = at + 1;
    }
    out.extend_from_slice(&value[plain..]);
}

/// Appends bytes as a JSON string with its quotes; bytes that are not UTF-8 become U+FFFD.
pub(crate) fn json(out: &mut Vec<u8>, value: &[u8]) {
    out.push(b'"');
    if value.iter().all(|&byte| matches!(byte, b' '..=b'~') && byte != b'"' && byte != b'\\') {
        out.extend_from_slice(value);
    } else {
        for character in String::from_utf8_lossy(value).chars() {
            match character {
                '"' => out.extend_from_slice(b"\\\""),
                '\\' => out.extend_from_slice(b"\\\\"),
                '\n' => out.extend_from_slice(b"\\n"),
                c if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}') => {
                    out.extend_from_slice(format!("\\u{:04x}", u32::from(c)).as_bytes());
                }
                c => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
            }
        }
    }
    out.push(b'"');
}

/// Appends text to a line that people read, in the error log or on a terminal; control characters become `\n`, `\t` or
/// `\u{…}`.
pub fn text(out: &mut String, value: &str) {
    for character in value.chars() {
        match character {
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            c if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}') => out.extend(c.escape_unicode()),
            c => out.push(c),
        }
    }
}

/// Appends a label's value of Prometheus' text format, without its quotes.
pub(crate) fn prometheus(out: &mut String, value: &str) {
    for character in value.chars() {
        match character {
            '"' | '\\' => {
                let _ = write!(out, "\\{character}");
            }
            '\n' => out.push_str("\\n"),
            c => out.push(c),
        }
    }
}
