//! The subset of YAML that configurations use: nested keys, lists, quoted and plain texts, comments. Anchors, tags,
//! multi-line texts and the like are refused rather than guessed.

use serde_json::{Map, Value};

/// Parses a file. The lines of the keys are those of their last mention.
///
/// # Errors
/// The line that is not valid in this subset.
pub(super) fn parse(text: &str) -> Result<Value, String> {
    let mut lines = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let bare = without_comment(line);
        let content = bare.trim_start();
        if content.is_empty() || content == "---" {
            continue;
        }
        if bare[..bare.len() - content.len()].contains('\t') {
            return Err(format!("line {}: a tab before a key", at + 1));
        }
        lines.push(Line { indent: bare.len() - content.len(), text: content.trim_end().to_owned(), number: at + 1 });
    }
    let mut reader = Reader { lines, at: 0 };
    let first = reader.lines.first().map_or(0, |line| line.indent);
    let value = reader.value(first, 0)?;
    match reader.lines.get(reader.at) {
        Some(line) => Err(line.wrong("unexpected indentation or list item")),
        None => Ok(value),
    }
}

#[derive(Clone)]
struct Line {
    indent: usize,
    text: String,
    number: usize,
}

impl Line {
    fn wrong(&self, why: &str) -> String {
        format!("line {}: {}: {why}", self.number, self.text)
    }
}

struct Reader {
    lines: Vec<Line>,
    at: usize,
}

/// Maximum nesting depth of blocks.
const MAX_DEPTH: usize = 32;

impl Reader {
    /// Parses the keys or list items with this indentation.
    fn value(&mut self, indent: usize, depth: usize) -> Result<Value, String> {
        let mut map = Map::new();
        let mut items = Vec::new();
        // A list may have the same indentation as the key before it, so it ends at the next key.
        let is_item = |line: &Line| line.text == "-" || line.text.starts_with("- ");
        let is_list = self.lines.get(self.at).is_some_and(is_item);
        let fits = |line: &Line| line.indent == indent && is_item(line) == is_list;
        while let Some(line) = self.lines.get(self.at).cloned().filter(fits) {
            if depth == MAX_DEPTH {
                return Err(line.wrong("too deep"));
            }
            self.at += 1;
            if let Some(item) = line.text.strip_prefix("- ").or_else(|| (line.text == "-").then_some("")) {
                let item = item.trim_start();
                if pair(item).is_some() {
                    // The keys of an item are indented past its dash.
                    let inner = line.indent + (line.text.len() - item.len());
                    self.at -= 1;
                    self.lines[self.at] = Line { indent: inner, text: item.to_owned(), number: line.number };
                    items.push(self.value(inner, depth + 1)?);
                } else {
                    items.push(self.scalar_or_block(item, &line, depth)?);
                }
            } else {
                let (key, rest) = pair(&line.text).ok_or_else(|| line.wrong("expected KEY: VALUE"))?;
                let key = unquoted(&key, &line)?;
                let value = self.scalar_or_block(rest, &line, depth)?;
                map.insert(key, value);
            }
        }
        Ok(if is_list { Value::Array(items) } else { Value::Object(map) })
    }

    fn scalar_or_block(&mut self, text: &str, line: &Line, depth: usize) -> Result<Value, String> {
        if !text.is_empty() {
            return scalar(text, line);
        }
        match self.lines.get(self.at) {
            Some(next) if next.indent > line.indent => self.value(next.indent, depth + 1),
            Some(next) if next.indent == line.indent && next.text.starts_with('-') && !line.text.starts_with('-') => {
                self.value(next.indent, depth + 1)
            }
            _ => Ok(Value::Null),
        }
    }
}

/// Splits a key from the rest of its line.
fn pair(text: &str) -> Option<(String, &str)> {
    let at = match text.chars().next()? {
        quote @ ('"' | '\'') => text[1..].find(quote).map(|end| end + 2).filter(|end| text[*end..].starts_with(':'))?,
        _ => text.find(": ").or_else(|| text.ends_with(':').then(|| text.len() - 1))?,
    };
    Some((text[..at].trim().to_owned(), text[at + 1..].trim()))
}

fn scalar(text: &str, line: &Line) -> Result<Value, String> {
    if let Some(inside) = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        let items = inside.split(',').map(str::trim).filter(|item| !item.is_empty());
        return items.map(|item| scalar(item, line)).collect::<Result<_, _>>().map(Value::Array);
    }
    if matches!(text, "{}" | "~" | "null") {
        return Ok(Value::Null);
    }
    if text.starts_with(['&', '*', '!', '|', '>', '{', '[', '%', '@', '`']) {
        return Err(line.wrong("this kind of YAML is not read: write it as plain keys and texts"));
    }
    unquoted(text, line).map(Value::String)
}

fn unquoted(text: &str, line: &Line) -> Result<String, String> {
    match text.chars().next() {
        Some(quote @ ('"' | '\'')) => {
            let inside = text[1..].strip_suffix(quote).ok_or_else(|| line.wrong("a quote is not closed"))?;
            Ok(if quote == '"' {
                inside.replace("\\\"", "\"").replace("\\\\", "\\")
            } else {
                inside.replace("''", "'")
            })
        }
        _ => Ok(text.to_owned()),
    }
}

/// Removes the comment of a line. A comment needs a blank before it.
fn without_comment(line: &str) -> &str {
    let mut quote = None;
    let mut before = ' ';
    for (at, c) in line.char_indices() {
        match (quote, c) {
            (None, '#') if before.is_whitespace() => return &line[..at],
            (None, '"' | '\'') if before.is_whitespace() || matches!(before, '[' | ',') => quote = Some(c),
            (Some(open), _) if c == open => quote = None,
            _ => {}
        }
        before = c;
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nested_keys_lists_and_texts_are_read() {
        let text = "# c\nversion: \"3\"\nhttp:\n  address: 127.0.0.1:8080 # here\n  list: [a, \"b c\"]\n  more:\n  - x\n  - y\n\
                    \x20 deep:\n    a: 'it''s'\nrest:\n  - name: n\n    value: v\n  - other: o\nempty:\n";
        let value = parse(text).unwrap();
        let expected = serde_json::json!({
            "version": "3",
            "http": {"address": "127.0.0.1:8080", "list": ["a", "b c"], "more": ["x", "y"], "deep": {"a": "it's"}},
            "rest": [{"name": "n", "value": "v"}, {"other": "o"}],
            "empty": null,
        });
        assert_eq!(value, expected);
        for wrong in ["a: &x b", "a: |\n  b", "a\n", "a: \"b", "a:\n\tb: c", "a: b\n   c: d", "a: {b: c}"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
