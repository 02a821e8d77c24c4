//! Texts with references: `$1` to a group, `&` to the whole match. A backslash escapes `$`, `&` and itself.

use crate::limits;
use crate::pattern::Captures;
use crate::text::raw;

/// Replaces the references by the matched groups.
pub(crate) fn groups(text: &str, found: &Captures) -> Vec<u8> {
    let mut made = Vec::new();
    let text = raw(text);
    let mut bytes = text.iter().copied().peekable();
    while let Some(byte) = bytes.next() {
        match (byte, bytes.peek().copied()) {
            (b'$', Some(digit @ b'0'..=b'9')) => {
                made.extend_from_slice(found.group(usize::from(digit - b'0')));
                bytes.next();
            }
            (b'\\', Some(next @ (b'$' | b'&' | b'\\'))) => {
                made.push(next);
                bytes.next();
            }
            (b'&', _) => made.extend_from_slice(found.group(0)),
            _ => made.push(byte),
        }
        if made.len() > limits::EXPANDED {
            break;
        }
    }
    made.truncate(limits::EXPANDED);
    made
}
