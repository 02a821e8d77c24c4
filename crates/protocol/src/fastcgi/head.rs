//! A request's head from its CGI variables, and a response's head in CGI form.

use crate::exchange::{Head, Reason};
use crate::multiplexed::number;
use crate::params::Params;
use crate::target::Target;
use bytes::Bytes;
use http::header::{self, HeaderName, HeaderValue};
use http::response::Parts;
use http::{HeaderMap, Method, StatusCode, Version};

/// Makes the head of a request. `Connection`, `Upgrade`, `Transfer-Encoding` and `Expect` are left out, as they concern
/// the client's connection to the web server; scripts see them in the variables.
///
/// # Errors
/// The method is missing or invalid.
pub(super) fn head(params: &Params) -> Result<Head, &'static str> {
    let method = params.get("REQUEST_METHOD").ok_or("no REQUEST_METHOD")?;
    let method = Method::from_bytes(method).map_err(|_| "an invalid REQUEST_METHOD")?;
    let named = ["REQUEST_URI", "SCRIPT_NAME"].iter().filter_map(|name| params.get(name));
    let mut targets = named.filter_map(|text| Target::parse(Bytes::copy_from_slice(text)).ok());
    let target = match targets.next() {
        Some(target) => target,
        None => Target::parse(Bytes::from_static(b"/")).map_err(|_| "no target")?,
    };
    let version = match params.get("SERVER_PROTOCOL") {
        Some(b"HTTP/1.0") => Version::HTTP_10,
        Some(b"HTTP/2.0" | b"HTTP/2") => Version::HTTP_2,
        Some(b"HTTP/3.0" | b"HTTP/3") => Version::HTTP_3,
        _ => Version::HTTP_11,
    };
    Ok(Head { method, target, version, headers: headers(params) })
}

fn headers(params: &Params) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in params.iter() {
        let name = match name {
            b"CONTENT_TYPE" => Some(header::CONTENT_TYPE),
            b"CONTENT_LENGTH" if number(value).is_some() => Some(header::CONTENT_LENGTH),
            _ => name.strip_prefix(b"HTTP_").and_then(header_name),
        };
        let Some((name, value)) = name.zip(HeaderValue::from_bytes(value).ok()) else { continue };
        if !value.is_empty() && headers.try_insert(name, value).is_err() {
            break;
        }
    }
    headers
}

/// The field of an `HTTP_*` variable.
fn header_name(name: &[u8]) -> Option<HeaderName> {
    let name: Vec<u8> = name.iter().map(|byte| if *byte == b'_' { b'-' } else { *byte }).collect();
    let name = HeaderName::from_bytes(&name).ok()?;
    let is_elsewhere = matches!(
        name,
        header::CONNECTION
            | header::UPGRADE
            | header::TRANSFER_ENCODING
            | header::EXPECT
            | header::CONTENT_LENGTH
            | header::CONTENT_TYPE
    );
    (!is_elsewhere).then_some(name)
}

/// The length of a request's body from `CONTENT_LENGTH`; `None` if it is missing or invalid.
pub(super) fn body_length(params: &Params) -> Option<u64> {
    params.get("CONTENT_LENGTH").and_then(number)
}

/// Writes the head of a response in CGI form (RFC 3875, 6), with `length` if it is known.
pub(super) fn write(out: &mut Vec<u8>, response: &Parts, length: Option<u64>) {
    // Like PHP-FPM, never for 200: some web servers pass the field on to the client.
    if response.status != StatusCode::OK {
        let reason = response.extensions.get::<Reason>();
        let usual = response.status.canonical_reason().unwrap_or("Unknown").as_bytes();
        out.extend_from_slice(b"Status: ");
        out.extend_from_slice(response.status.as_str().as_bytes());
        out.push(b' ');
        out.extend_from_slice(reason.map_or(usual, Reason::as_bytes));
        out.extend_from_slice(b"\r\n");
    }
    for (name, value) in &response.headers {
        match *name {
            header::CONTENT_LENGTH if length.is_some() => continue,
            header::TRANSFER_ENCODING | header::CONNECTION => continue,
            _ => {}
        }
        out.extend_from_slice(name.as_str().as_bytes());
        out.extend_from_slice(b": ");
        out.extend_from_slice(value.as_bytes());
        out.extend_from_slice(b"\r\n");
    }
    if let Some(length) = length {
        out.extend_from_slice(format!("Content-Length: {length}\r\n").as_bytes());
    }
    out.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_status_is_written_with_its_reason_unless_it_is_200() {
        let head = |status: u16, reason: Option<&'static [u8]>| {
            let mut response = http::Response::builder().status(status).body(()).unwrap();
            if let Some(text) = reason {
                response.extensions_mut().insert(Reason::new(text).unwrap());
            }
            let mut out = Vec::new();
            write(&mut out, &response.into_parts().0, None);
            String::from_utf8(out).unwrap()
        };
        assert_eq!(head(200, None), "\r\n");
        assert_eq!(head(200, Some(b"Fine")), "\r\n");
        assert_eq!(head(404, None), "Status: 404 Not Found\r\n\r\n");
        assert_eq!(head(418, Some(b"Short")), "Status: 418 Short\r\n\r\n");
    }
}
