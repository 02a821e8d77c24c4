//! Hop-by-hop fields, which are removed when a message is forwarded.

use http::header::{self, HeaderMap, HeaderName, HeaderValue};

/// Headers that frame or route a message: `Connection` cannot list them.
const FIXED: [HeaderName; 3] = [header::HOST, header::CONTENT_LENGTH, header::TRANSFER_ENCODING];

const CONNECTION_HEADERS: [HeaderName; 9] = [
    header::CONNECTION,
    header::PROXY_AUTHENTICATE,
    header::PROXY_AUTHORIZATION,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
];

/// Removes the fields that a request's `Connection` lists, and their names from it. Otherwise a client could list, and
/// so remove, a field that rules insert later. `strip` removes the other hop-by-hop fields if the request is forwarded.
///
/// Forwarding headers from proxies are kept: behind a proxy that passes on its client's `Connection`, a client could
/// otherwise remove its own address.
pub(crate) fn strip_listed(headers: &mut HeaderMap) {
    let mut kept = Vec::new();
    let mut listed = Vec::new();
    let lines = headers.get_all(header::CONNECTION).iter();
    for word in lines.flat_map(|line| line.as_bytes().split(|&byte| byte == b',')).map(<[u8]>::trim_ascii) {
        if is_option_of_the_connection(word) {
            kept.push(word.to_ascii_lowercase());
        } else if let Ok(name) = HeaderName::from_bytes(word)
            && !FIXED.contains(&name)
            && !is_about_the_client(&name)
        {
            listed.push(name);
        }
    }
    for name in listed {
        headers.remove(name);
    }
    match HeaderValue::from_bytes(&kept.join(&b", "[..])) {
        Ok(value) if !kept.is_empty() => drop(headers.insert(header::CONNECTION, value)),
        _ => drop(headers.remove(header::CONNECTION)),
    }
}

/// `true` if an option of `Connection` is a header that is never forwarded, or `close`.
pub(crate) fn is_option_of_the_connection(word: &[u8]) -> bool {
    word.eq_ignore_ascii_case(b"close")
        || CONNECTION_HEADERS.iter().any(|name| word.eq_ignore_ascii_case(name.as_str().as_bytes()))
}

fn is_about_the_client(name: &HeaderName) -> bool {
    let name = name.as_str();
    name.starts_with("x-forwarded-") || matches!(name, "forwarded" | "x-real-ip" | "x-request-id")
}

/// Removes a message's hop-by-hop fields (RFC 9110 7.6.1): the well-known ones, and those that `Connection` lists.
pub fn strip(headers: &mut HeaderMap) {
    if headers.contains_key(header::CONNECTION) {
        let listed: Vec<HeaderName> = headers
            .get_all(header::CONNECTION)
            .iter()
            .flat_map(|line| line.as_bytes().split(|&byte| byte == b','))
            .filter_map(|word| HeaderName::from_bytes(word.trim_ascii()).ok())
            .filter(|name| !FIXED.contains(name))
            .collect();
        for name in listed {
            headers.remove(name);
        }
    }
    for name in &CONNECTION_HEADERS {
        headers.remove(name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_of_one_connection_do_not_reach_the_next() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("connection", "close, X-Forwarded-For , content-length"),
            ("connection", "x-b,,host, \u{e4}"),
            ("x-forwarded-for", "1.2.3.4"),
            ("x-b", "1"),
            ("x-c", "1"),
            ("host", "h"),
            ("content-length", "3"),
            ("transfer-encoding", "chunked"),
            ("te", "trailers"),
            ("upgrade", "h2c"),
            ("keep-alive", "1"),
            ("proxy-connection", "x"),
        ] {
            headers.append(name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
        }
        strip(&mut headers);
        let mut left: Vec<&str> = headers.keys().map(HeaderName::as_str).collect();
        left.sort_unstable();
        assert_eq!(left, ["content-length", "host", "x-c"]);
    }

    #[test]
    fn a_client_cannot_remove_a_field_that_is_inserted_later() {
        for (connection, left) in [
            ("keep-alive, X-Role", Some("keep-alive")),
            ("X-Role", None),
            ("Upgrade, x-role, HTTP2-Settings", Some("upgrade")),
            ("x-forwarded-for, close, host,, \u{e4}", Some("close")),
        ] {
            let mut headers = HeaderMap::new();
            for (name, value) in [("connection", connection), ("x-role", "guest"), ("x-forwarded-for", "1.2.3.4")] {
                headers.append(name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
            }
            strip_listed(&mut headers);
            assert_eq!(headers.get("connection").map(|value| value.to_str().unwrap()), left, "{connection}");
            assert_eq!(headers.contains_key("x-role"), !connection.to_ascii_lowercase().contains("x-role"));
            assert!(headers.contains_key("x-forwarded-for"), "{connection}");
            headers.insert("x-role", HeaderValue::from_static("inserted"));
            strip(&mut headers);
            assert!(headers.contains_key("x-role"), "{connection}");
        }
    }
}
