//! Lists of entity tags (RFC 9110, section 8.8.3) in `If-Match` and `If-None-Match`. Parsed in one pass: the time is
//! linear even for a malicious list.

/// The entity tags of a list, each with its quotes and its `W/`. Iteration ends at the first invalid tag.
pub(crate) struct Tags<'a>(pub(crate) &'a [u8]);

impl<'a> Iterator for Tags<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        // A tag may contain commas, so the list cannot simply be split at them.
        let start = self.0.iter().position(|b| !matches!(b, b' ' | b'\t' | b','))?;
        self.0 = &self.0[start..];
        let quote = if self.0.starts_with(b"W/") { 2 } else { 0 };
        let opaque = self.0.get(quote..)?.strip_prefix(b"\"")?;
        let end = quote + 1 + opaque.iter().position(|&b| b == b'"')? + 1;
        let (tag, rest) = self.0.split_at(end);
        self.0 = rest;
        Some(tag)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn iteration_ends_at_the_first_invalid_tag() {
        let tags =
            |list: &'static str| Tags(list.as_bytes()).map(|tag| std::str::from_utf8(tag).unwrap()).collect::<Vec<_>>();
        assert_eq!(tags("\"a\", W/\"b,c\",,\t\"\""), ["\"a\"", "W/\"b,c\"", "\"\""]);
        assert_eq!(tags("\"a\" x \"b\""), ["\"a\""]);
        for none in ["", " ,", "a", "\"", "W/", "W", "w/\"a\"", "*"] {
            assert!(tags(none).is_empty(), "{none}");
        }
    }
}
