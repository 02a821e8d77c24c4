//! Splits a file's text into logical lines, and lines into words. A line's number is that of its first physical line.

use crate::limits;
use std::borrow::Cow;

/// A directive or section tag, not interpreted yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// Counted from 1.
    pub number: usize,
    /// The first word, without `<` and `/`.
    pub name: String,
    /// The text after the name, trimmed; for a tag without its `>`.
    pub rest: String,
    /// A directive, or a tag of a section.
    pub kind: Kind,
}

/// The role of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Directive,
    /// `<NAME …>`.
    Open,
    /// `</NAME>`.
    Close,
}

/// An error in a file, and its place.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {what}")]
pub struct SyntaxError {
    /// The line, counted from 1.
    pub line: usize,
    pub what: String,
}

impl SyntaxError {
    pub(crate) fn new(line: usize, what: impl Into<String>) -> Self {
        Self { line, what: what.into() }
    }
}

/// Splits a file into lines. A backslash at a line's end continues the line, even in a comment, as in Apache.
///
/// # Errors
/// A malformed tag, a NUL byte, too many directives, or a file that is too long.
pub fn lines(text: &[u8]) -> Result<Vec<Line>, SyntaxError> {
    if text.len() > limits::FILE {
        return Err(SyntaxError::new(1, format!("the file is longer than {} bytes", limits::FILE)));
    }
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    let mut found = Vec::new();
    let (mut logical, mut began) = (Vec::new(), 0);
    for (at, raw) in text.split(|&b| b == b'\n').enumerate() {
        if logical.is_empty() {
            began = at + 1;
        }
        let raw = raw.strip_suffix(b"\r").unwrap_or(raw);
        if let Some(part) = raw.strip_suffix(b"\\") {
            logical.extend_from_slice(part);
            continue;
        }
        logical.extend_from_slice(raw);
        if let Some(line) = line(logical.trim_ascii(), began)? {
            if found.len() == limits::DIRECTIVES {
                return Err(SyntaxError::new(began, format!("more than {} directives", limits::DIRECTIVES)));
            }
            found.push(line);
        }
        logical.clear();
    }
    if let Some(line) = line(logical.trim_ascii(), began)? {
        found.push(line);
    }
    Ok(found)
}

fn line(text: &[u8], number: usize) -> Result<Option<Line>, SyntaxError> {
    if text.is_empty() || text[0] == b'#' {
        return Ok(None);
    }
    if text.contains(&0) {
        return Err(SyntaxError::new(number, "a NUL byte"));
    }
    let text = with_stand_ins(text);
    let (text, kind) = match text.strip_prefix('<') {
        None => (&*text, Kind::Directive),
        Some(tag) => {
            let tag = tag.strip_suffix('>').ok_or_else(|| SyntaxError::new(number, format!("`{text}` has no `>`")))?;
            match tag.strip_prefix('/') {
                None => (tag, Kind::Open),
                Some(name) if name.contains(|c: char| c.is_ascii_whitespace()) => {
                    return Err(SyntaxError::new(number, format!("`{text}` has a blank before its `>`")));
                }
                Some(name) => (name, Kind::Close),
            }
        }
    };
    let end = text.find(|c: char| c.is_ascii_whitespace()).unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    Ok(Some(Line { number, name: name.to_owned(), rest: rest.trim().to_owned(), kind }))
}

/// Private-use character that stands for the byte 0; the following characters stand for the other bytes.
const FIRST_STAND_IN: u32 = 0x10_FF00;

/// Decodes a line. Directives are bytes to Apache: bytes that are not UTF-8 become stand-in characters until `raw`
/// converts them back.
fn with_stand_ins(text: &[u8]) -> String {
    let mut made = String::with_capacity(text.len());
    for chunk in text.utf8_chunks() {
        made.push_str(chunk.valid());
        made.extend(chunk.invalid().iter().filter_map(|&byte| char::from_u32(FIRST_STAND_IN + u32::from(byte))));
    }
    made
}

/// The byte that a stand-in character represents.
pub(crate) fn stands_for(c: char) -> Option<u8> {
    u32::from(c).checked_sub(FIRST_STAND_IN).and_then(|byte| u8::try_from(byte).ok())
}

/// The original bytes of a text in its file.
pub(crate) fn raw(text: &str) -> Cow<'_, [u8]> {
    if !text.contains(|c| stands_for(c).is_some()) {
        return Cow::Borrowed(text.as_bytes());
    }
    let mut made = Vec::with_capacity(text.len());
    for c in text.chars() {
        match stands_for(c) {
            Some(byte) => made.push(byte),
            None => made.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    Cow::Owned(made)
}

/// Converts a text for a destination that takes only UTF-8. Bytes that were not UTF-8 are read as ISO 8859-1.
pub(crate) fn as_latin1(text: &str) -> String {
    text.chars().map(|c| stands_for(c).map_or(c, char::from)).collect()
}

/// Splits a directive into words, which are separated by blanks. Quotes enclose words with blanks; within quotes, a
/// backslash escapes a quote or a backslash.
pub fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let (word, after) = if first == '"' || first == '\'' { quoted(rest, first) } else { bare(rest) };
        words.push(word);
        rest = after.trim_start();
    }
    words
}

fn bare(text: &str) -> (String, &str) {
    let end = text.find(|c: char| c.is_ascii_whitespace()).unwrap_or(text.len());
    (text[..end].to_owned(), &text[end..])
}

fn quoted(text: &str, quote: char) -> (String, &str) {
    let mut word = String::new();
    let mut chars = text.char_indices().skip(1).peekable();
    while let Some((at, c)) = chars.next() {
        if c == quote {
            return (word, &text[at + 1..]);
        }
        match chars.peek() {
            Some(&(_, next)) if c == '\\' && (next == quote || next == '\\') => {
                word.push(next);
                chars.next();
            }
            _ => word.push(c),
        }
    }
    (word, "")
}

/// Splits the words of `RewriteRule` and `RewriteCond`: backslashes are kept, except before a blank or the quote.
pub fn rewrite_words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut chars = text.trim().chars().peekable();
    while let Some(&first) = chars.peek() {
        if first.is_ascii_whitespace() {
            chars.next();
            continue;
        }
        let quote = (first == '"' || first == '\'').then_some(first);
        if quote.is_some() {
            chars.next();
        }
        let mut word = String::new();
        while let Some(c) = chars.next() {
            let ends = quote.map_or(c.is_ascii_whitespace(), |quote| c == quote);
            if ends {
                break;
            }
            match chars.peek() {
                Some(&next) if c == '\\' && (next.is_ascii_whitespace() || Some(next) == quote) => {
                    word.push(next);
                    chars.next();
                }
                _ => word.push(c),
            }
        }
        words.push(word);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_continued_and_comments_dropped() {
        let text = b"\xef\xbb\xbf# c \\\n still c\nA b \\\n  c\r\n\n<If \"1 > 0\">\n</If>\nlast";
        let found = lines(text).unwrap();
        let found: Vec<_> = found.iter().map(|l| (l.number, l.name.as_str(), l.rest.as_str(), l.kind)).collect();
        let expected = [
            (3, "A", "b   c", Kind::Directive),
            (6, "If", "\"1 > 0\"", Kind::Open),
            (7, "If", "", Kind::Close),
            (8, "last", "", Kind::Directive),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn invalid_lines_are_errors() {
        for (text, what) in [(&b"<If x"[..], "no `>`"), (b"A\0", "NUL")] {
            let mistake = lines(text).unwrap_err();
            assert!(mistake.what.contains(what), "{mistake}");
        }
        assert!(lines(b"# caf\xe9").unwrap().is_empty());
        assert!(lines(&b"A\n".repeat(limits::DIRECTIVES + 1)).unwrap_err().what.contains("directives"));
        assert!(lines(&vec![b'#'; limits::FILE + 1]).unwrap_err().what.contains("longer"));
    }

    #[test]
    fn bytes_that_are_not_utf8_are_kept() {
        let line = lines(b"A caf\xe9 \xc3\xa9 \xff").unwrap().remove(0);
        assert_eq!(
            words(&line.rest).iter().map(|word| raw(word).to_vec()).collect::<Vec<_>>(),
            [b"caf\xe9".to_vec(), b"\xc3\xa9".to_vec(), b"\xff".to_vec()]
        );
        assert_eq!(as_latin1(&line.rest), "caf\u{e9} \u{e9} \u{ff}");
    }

    #[test]
    fn words_and_quotes() {
        for (text, expected) in [
            ("a  b", vec!["a", "b"]),
            (r#""a b" c"#, vec!["a b", "c"]),
            (r#""a \"b\" \\ \d" 'x y'"#, vec![r#"a "b" \ \d"#, "x y"]),
            (r#""open"#, vec!["open"]),
            ("\"\" x", vec!["", "x"]),
        ] {
            assert_eq!(words(text), expected, "{text}");
        }
        for (text, expected) in [
            (r"^a\ b$ - [F]", vec!["^a b$", "-", "[F]"]),
            (r#""^a \"b" /x\.y "[L, NC]""#, vec!["^a \"b", r"/x\.y", "[L, NC]"]),
        ] {
            assert_eq!(rewrite_words(text), expected, "{text}");
        }
    }
}
