//! Fields that are about one connection and do not go on to the next one, where a message is passed on.

use http::header::{self, HeaderMap, HeaderName};

/// Takes out of a message's fields what is about one connection alone (RFC 9110 7.6.1): the fields that are listed there, and
/// those that `Connection` lists. What cannot be listed are the fields that say where a message ends, and for whom it is.
pub fn strip(headers: &mut HeaderMap) {
    const FIXED: [HeaderName; 3] = [header::HOST, header::CONTENT_LENGTH, header::TRANSFER_ENCODING];
    const OF_THE_CONNECTION: [HeaderName; 9] = [
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
    for name in &OF_THE_CONNECTION {
        headers.remove(name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    #[test]
    fn what_is_about_one_connection_does_not_reach_the_next() {
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
}
