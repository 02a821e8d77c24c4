//! `application/x-www-form-urlencoded`: queries, and the bodies of publishers.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode, utf8_percent_encode};

/// Everything but the unreserved characters of RFC 3986.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The names and values of a form, in order. Text that is not UTF-8 has replacement characters.
pub fn fields(form: &[u8]) -> impl Iterator<Item = (String, String)> {
    form_urlencoded::parse(form).into_owned()
}

/// Decodes a part of a path.
pub(crate) fn decoded(part: &[u8]) -> String {
    percent_decode(part).decode_utf8_lossy().into_owned()
}

/// Encodes text as one part of a path.
pub(crate) fn encoded(text: &str) -> String {
    utf8_percent_encode(text, RESERVED).to_string()
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
        assert_eq!(decoded(encoded(text).as_bytes()), text);
        assert_eq!(decoded(b"a+b"), "a+b");
    }
}
