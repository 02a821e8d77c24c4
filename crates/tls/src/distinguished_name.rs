//! Subjects and issuers as text: RFC 4514, the last part first, which is the form that nginx and Apache pass to
//! scripts.

use std::fmt::Write;
use x509_parser::objects::{oid_registry, oid2abbrev};
use x509_parser::x509::{AttributeTypeAndValue, X509Name};

/// `CN=Ann,O=Example,C=DE`.
pub(crate) fn text(name: &X509Name<'_>) -> String {
    let parts: Vec<_> = name.iter_rdn().collect();
    let mut text = String::new();
    for part in parts.into_iter().rev() {
        for (at, attribute) in part.iter().enumerate() {
            if !text.is_empty() {
                text.push(if at == 0 { ',' } else { '+' });
            }
            let _ = write!(text, "{}=", kind(attribute));
            escape(&value(attribute), &mut text);
        }
    }
    text
}

pub(crate) fn common_name(name: &X509Name<'_>) -> Option<String> {
    name.iter_common_name().next().map(value)
}

fn kind(attribute: &AttributeTypeAndValue<'_>) -> String {
    match oid2abbrev(attribute.attr_type(), oid_registry()) {
        Ok(short) => short.to_owned(),
        Err(_) => attribute.attr_type().to_id_string(),
    }
}

/// Values that are not text are printed as `#` with their bytes in hexadecimal (RFC 4514 2.4).
fn value(attribute: &AttributeTypeAndValue<'_>) -> String {
    match attribute.as_str() {
        Ok(text) => text.to_owned(),
        Err(_) => attribute.as_slice().iter().fold("#".to_owned(), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        }),
    }
}

/// Escapes a value, so that no part of it looks like another attribute or ends a line.
fn escape(value: &str, to: &mut String) {
    let last = value.chars().count().saturating_sub(1);
    for (at, c) in value.chars().enumerate() {
        let at_edge = c == ' ' && (at == 0 || at == last) || c == '#' && at == 0;
        match c {
            ',' | '+' | '"' | '\\' | '<' | '>' | ';' | '=' => to.extend(['\\', c]),
            _ if at_edge => to.extend(['\\', c]),
            c if c.is_control() => {
                let mut bytes = [0; 4];
                for byte in c.encode_utf8(&mut bytes).bytes() {
                    let _ = write!(to, "\\{byte:02X}");
                }
            }
            c => to.push(c),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_that_looks_like_another_attribute_is_escaped() {
        let mut text = String::new();
        escape(" Ann,CN=root\r\n#", &mut text);
        assert_eq!(text, "\\ Ann\\,CN\\=root\\0D\\0A#");
    }
}
