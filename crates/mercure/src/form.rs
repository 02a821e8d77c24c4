//! `application/x-www-form-urlencoded`: queries, and the bodies of publishers.

/// The names and values of a form, in order. Text that is not UTF-8 has replacement characters.
pub fn fields(form: &[u8]) -> impl Iterator<Item = (String, String)> {
    form.split(|byte| *byte == b'&').filter(|field| !field.is_empty()).map(|field| {
        let (name, value) = match field.iter().position(|byte| *byte == b'=') {
            Some(at) => (&field[..at], &field[at + 1..]),
            None => (field, &[][..]),
        };
        (decoded(name, true), decoded(value, true))
    })
}

/// Text without its percent-encoding. `form`: a plus sign is a space.
#[must_use]
pub fn decoded(text: &[u8], form: bool) -> String {
    let digit = |at: usize| text.get(at).and_then(|byte| char::from(*byte).to_digit(16));
    let (mut plain, mut at) = (Vec::with_capacity(text.len()), 0);
    while let Some(&byte) = text.get(at) {
        match (byte, digit(at + 1), digit(at + 2)) {
            (b'%', Some(high), Some(low)) => {
                plain.push(u8::try_from(high * 16 + low).unwrap_or_default());
                at += 3;
                continue;
            }
            (b'+', ..) if form => plain.push(b' '),
            _ => plain.push(byte),
        }
        at += 1;
    }
    String::from_utf8(plain).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

/// Text as one part of a path: everything but unreserved characters (RFC 3986) is percent-encoded.
#[must_use]
pub fn encoded(text: &str) -> String {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    let mut found = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            found.push(char::from(byte));
        } else {
            found.push('%');
            found.push(char::from(DIGITS[usize::from(byte >> 4)]));
            found.push(char::from(DIGITS[usize::from(byte & 15)]));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_is_read_as_browsers_write_it() {
        let read =
            |form: &str| fields(form.as_bytes()).map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>();
        assert_eq!(
            read("topic=a&topic=b%26c+d&private&=x&&e=%C3%A9=1"),
            ["topic=a", "topic=b&c d", "private=", "=x", "e=é=1"]
        );
        assert_eq!(read("a=%zz%4&b=%"), ["a=%zz%4", "b=%"]);
        assert_eq!(read("a=%ff"), ["a=\u{fffd}"]);
        assert_eq!(read(""), [""; 0]);
    }

    #[test]
    fn a_part_of_a_path_is_encoded_and_decoded() {
        let text = "https://example.com/{sel ector}+~é";
        assert_eq!(encoded(text), "https%3A%2F%2Fexample.com%2F%7Bsel%20ector%7D%2B~%C3%A9");
        assert_eq!(decoded(encoded(text).as_bytes(), false), text);
        assert_eq!(decoded(b"a+b", false), "a+b");
    }
}
