//! Phase "limits": refuses requests that are too long or malformed; after the rules, which may change the limit, also
//! those with too large a body.
//!
//! The connection has already refused invalid HTTP (400) and a header larger than its buffer (431). The limits in the
//! settings are stricter and are checked here. The body size is checked twice: by `Content-Length` here, and while the
//! body is read (`php::spool`, `proxy::inbound`).

use crate::exchange::Exchange;
use crate::explanation::ExplanationBuilder;
use crate::forwarded::named_host;
use crate::host::is_host;
use crate::refusal::Refusal;
use crate::responder::{Context, Responder};
use crate::site::Limits;
use crate::upstream::Upstream;
use howdah_observe::Front;
use howdah_protocol::{Head, RequestBody, Response};
use http::{HeaderMap, HeaderValue, Method, StatusCode, Version, header};

/// Maximum body in bytes without `http.max_body`: of a proxied request, and of one for PHP if PHP's own limit is lower.
pub(crate) const DEFAULT_MAX_BODY: u64 = 8 << 20;

/// Maximum length of a method in bytes; no registered method comes close.
const MAX_METHOD: usize = 32;

/// Refuses a head that is too long or malformed.
pub(crate) struct HeadLimits;

impl Responder for HeadLimits {
    async fn respond<U: Upstream>(
        _: &Context<U>,
        exchange: &mut Exchange,
        _: &mut RequestBody,
    ) -> Result<Option<Response>, Refusal> {
        check(&exchange.site.limits, &exchange.head).map(|()| None)
    }

    fn explain(exchange: &mut Exchange, explaining: &mut ExplanationBuilder) {
        if let Err(refusal) = check(&exchange.site.limits, &exchange.head) {
            let status = refusal.status();
            explaining.respond(status, format!("{status}, before the path is evaluated"));
        }
    }
}

/// Refuses a request for a host that no site serves (RFC 9110 15.5.20).
pub(crate) struct KnownHost;

impl Responder for KnownHost {
    fn concerns(exchange: &Exchange) -> bool {
        exchange.misdirected
    }

    async fn respond<U: Upstream>(
        _: &Context<U>,
        exchange: &mut Exchange,
        _: &mut RequestBody,
    ) -> Result<Option<Response>, Refusal> {
        let server = &exchange.site.server;
        let host = named_host(&exchange.head).unwrap_or_default();
        server.note_unknown_host(&String::from_utf8_lossy(host));
        Err(Refusal::new(StatusCode::MISDIRECTED_REQUEST).because("a host that this server has no site for"))
    }

    fn explain(exchange: &mut Exchange, explaining: &mut ExplanationBuilder) {
        if exchange.misdirected {
            let status = StatusCode::MISDIRECTED_REQUEST;
            explaining.respond(status, format!("{status}, before the path is evaluated"));
        }
    }
}

/// Refuses a body whose `Content-Length` exceeds the limit of the site or its rules.
pub(crate) struct BodyLimit;

impl Responder for BodyLimit {
    async fn respond<U: Upstream>(
        _: &Context<U>,
        exchange: &mut Exchange,
        _: &mut RequestBody,
    ) -> Result<Option<Response>, Refusal> {
        check_body(exchange.max_body(), &exchange.head).map(|()| None)
    }
}

/// Checks a request's head.
pub(crate) fn check(limits: &Limits, head: &Head) -> Result<(), Refusal> {
    if head.target.as_bytes().len() > limits.max_uri {
        return Err(Refusal::new(StatusCode::URI_TOO_LONG));
    }
    let fields = Fields::of(&head.headers);
    if fields.bytes > limits.max_header {
        return Err(Refusal::new(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE));
    }
    if head.method.as_str().len() > MAX_METHOD {
        return Err(Refusal::bad_request("a method of more than 32 bytes"));
    }
    if head.method == Method::CONNECT || head.method == Method::TRACE {
        return Err(not_allowed());
    }
    check_host(head, &fields)?;
    check_coding(&fields)
}

/// Results of one pass over the header fields, which is cheaper than one search per name.
#[derive(Default)]
struct Fields<'a> {
    /// Size of all lines as in HTTP/1, with four bytes per line for the colon, the space and the line end.
    bytes: usize,
    hosts: Lines<'a>,
    codings: Lines<'a>,
}

/// The lines of one name.
#[derive(Default)]
struct Lines<'a> {
    first: Option<&'a HeaderValue>,
    more: bool,
}

impl<'a> Lines<'a> {
    fn add(&mut self, line: &'a HeaderValue) {
        if self.first.is_some() {
            self.more = true;
        } else {
            self.first = Some(line);
        }
    }
}

impl<'a> Fields<'a> {
    fn of(headers: &'a HeaderMap) -> Self {
        let mut fields = Self::default();
        for (name, value) in headers {
            fields.bytes += name.as_str().len() + value.len() + 4;
            match *name {
                header::HOST => fields.hosts.add(value),
                header::TRANSFER_ENCODING => fields.codings.add(value),
                _ => {}
            }
        }
        fields
    }
}

fn not_allowed() -> Refusal {
    Refusal::new(StatusCode::METHOD_NOT_ALLOWED).allow("GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS")
}

/// Returns the refusal of an extended CONNECT whose destination speaks HTTP only.
pub(crate) fn no_other_protocol() -> Refusal {
    not_allowed().because("a protocol that is not supported here")
}

/// Refuses a 2xx response to an extended CONNECT: the client would take it as acceptance of the requested protocol.
pub(crate) fn check_response(exchange: &Exchange, response: &Response) -> Result<(), Refusal> {
    match exchange.head.is_extended_connect() && response.status().is_success() {
        // The upstream server got the request but does not support the protocol.
        true if exchange.front == Front::Proxy => Err(Refusal::new(StatusCode::NOT_IMPLEMENTED)),
        true => Err(no_other_protocol()),
        false => Ok(()),
    }
}

/// Checks `Content-Length` against the limit, which rules may override.
pub(crate) fn check_body(max_body: Option<u64>, head: &Head) -> Result<(), Refusal> {
    let Some(max_body) = max_body else { return Ok(()) };
    match content_length(&head.headers).filter(|length| *length > max_body) {
        Some(length) => Err(too_large(max_body, Some(length), head)),
        None => Ok(()),
    }
}

/// Returns a 413 refusal. The client sees only the status, so the log names the setting.
pub(crate) fn too_large(max_body: u64, length: Option<u64>, head: &Head) -> Refusal {
    let target = String::from_utf8_lossy(head.target.as_bytes());
    let length = length.map_or_else(|| "more".to_owned(), |length| length.to_string());
    tracing::warn!(
        target: "howdah::request", length, target = &*target,
        "request body exceeds {max_body} (`http.max_body`, else PHP's `post_max_size`): 413"
    );
    Refusal::new(StatusCode::PAYLOAD_TOO_LARGE)
}

/// Returns `Content-Length`. The connection has already refused invalid and contradictory ones.
pub(crate) fn content_length(headers: &HeaderMap) -> Option<u64> {
    headers.get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

/// Checks every place where a request can name its host: `Host`, an absolute target, and `:authority`.
///
/// RFC 9112 3.2: exactly one `Host` in HTTP/1.1; older requests may have none, newer ones have `:authority`. Scripts
/// see the authority if there is one, so it must be valid like a `Host`, without a user's name (RFC 9110 4.2.4).
/// HTTP/1.1 tells servers to ignore a `Host` next to it; in HTTP/2 and 3 the two must agree (RFC 9113 8.3.1,
/// RFC 9114 4.3.1).
fn check_host(head: &Head, fields: &Fields<'_>) -> Result<(), Refusal> {
    let authority = head.target.authority();
    if authority.is_some_and(|authority| !is_host(authority)) {
        return Err(Refusal::bad_request("an invalid host in its target"));
    }
    let Some(first) = fields.hosts.first else {
        return if head.version == Version::HTTP_11 { Err(Refusal::bad_request("no Host header")) } else { Ok(()) };
    };
    if fields.hosts.more {
        return Err(Refusal::bad_request("more than one Host header"));
    }
    if !first.is_empty() && !is_host(first.as_bytes()) {
        return Err(Refusal::bad_request("an invalid Host header"));
    }
    if head.version >= Version::HTTP_2
        && let Some(authority) = authority
    {
        let port: &[u8] = if head.target.is_https() { b":443" } else { b":80" };
        let plain = |host| without_port(without_port(host, port), b":");
        if !plain(authority).eq_ignore_ascii_case(plain(first.as_bytes())) {
            return Err(Refusal::bad_request("a Host header that contradicts its authority"));
        }
    }
    Ok(())
}

/// Removes this default port from a host.
fn without_port<'a>(host: &'a [u8], port: &[u8]) -> &'a [u8] {
    host.strip_suffix(port).unwrap_or(host)
}

/// Allows no transfer coding but `chunked` (RFC 9112 6.1). Connections decode only the last coding, so any other would
/// reach scripts still encoded.
fn check_coding(fields: &Fields<'_>) -> Result<(), Refusal> {
    match fields.codings {
        Lines { first: None, .. } => Ok(()),
        Lines { first: Some(only), more: false } if only.as_bytes().trim_ascii().eq_ignore_ascii_case(b"chunked") => {
            Ok(())
        }
        _ => Err(Refusal::new(StatusCode::NOT_IMPLEMENTED)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use howdah_protocol::Target;
    use http::Request;

    fn limits() -> Limits {
        Limits { max_uri: 20, max_header: 100, max_body: Some(1000) }
    }

    fn status(build: impl FnOnce(http::request::Builder) -> http::request::Builder) -> u16 {
        let (parts, ()) = build(Request::builder()).body(()).unwrap().into_parts();
        let target = Target::from_uri(&parts.uri);
        let head = Head { method: parts.method, target, version: parts.version, headers: parts.headers };
        let checked = check(&limits(), &head).and_then(|()| check_body(limits().max_body, &head));
        checked.map_or_else(|refusal| refusal.status().as_u16(), |()| 200)
    }

    #[test]
    fn lengths_are_limited_and_the_limit_itself_is_allowed() {
        let uri = |n: usize| status(|b| b.uri(format!("/{}", "a".repeat(n - 1))).header("host", "h"));
        assert_eq!((uri(20), uri(21)), (200, 414));
        let header = |n: usize| status(|b| b.uri("/").header("host", "h").header("x", "v".repeat(n - 4 - 5 - 5)));
        assert_eq!((header(100), header(101)), (200, 431));
        let body = |n: u64| status(|b| b.uri("/").header("host", "h").header("content-length", n));
        assert_eq!((body(1000), body(1001)), (200, 413));
        let method = |n: usize| status(|b| b.uri("/").header("host", "h").method("M".repeat(n).as_str()));
        assert_eq!((method(32), method(33)), (200, 400));
    }

    #[test]
    fn host_rules() {
        assert_eq!(status(|b| b.uri("/")), 400);
        assert_eq!(status(|b| b.uri("/").version(Version::HTTP_10)), 200);
        assert_eq!(status(|b| b.uri("/").version(Version::HTTP_2)), 200);
        assert_eq!(status(|b| b.uri("/").header("host", "a").header("host", "a")), 400);
        for good in ["", "a", "a.b:80", "127.0.0.1:8080", "[::1]", "[::1]:80", "xn--e1a.example", "a:"] {
            assert_eq!(status(|b| b.uri("/").header("host", good)), 200, "{good}");
        }
        for bad in ["a/b", "a b", "a@b", "a:80x", "[::1", "[]", "[a]b", ":80", "a:80:90", "a\"", "a#b", "a?b", "a\\b"] {
            assert_eq!(status(|b| b.uri("/").header("host", bad)), 400, "{bad}");
        }
        for bad in ["evil,good", "ev%20il", "a!", "a=b", "a;b", "a~b", "*", ".", "..", "_", "a'"] {
            assert_eq!(status(|b| b.uri("/").header("host", bad)), 400, "{bad}");
        }
        for bad in ["a:65536", "a:99999999999999999999", "[::1]:80x", "[::1]80"] {
            assert_eq!(status(|b| b.uri("/").header("host", bad)), 400, "{bad}");
        }
    }

    #[test]
    fn a_host_is_checked_wherever_it_is_named() {
        for version in [Version::HTTP_10, Version::HTTP_11, Version::HTTP_2] {
            let target = |authority: &str, host: &str| {
                status(|b| b.uri(format!("http://{authority}/")).version(version).header("host", host))
            };
            for good in ["a", "a:80", "[::1]:80", "a.b"] {
                assert_eq!(target(good, good), 200, "{version:?} {good}");
            }
            for bad in ["evil:80x", "u@a", "u:p@a", "a:65536", "a:80:90", "evil,good", "ev%20il"] {
                let built = http::Uri::try_from(format!("http://{bad}/"));
                assert!(built.is_err() || target(bad, "a") == 400, "{version:?} {bad}");
            }
        }
    }

    #[test]
    fn in_http_2_host_and_authority_agree() {
        let with = |version, authority: &str, host: &str| {
            status(|b| b.uri(format!("http://{authority}/")).version(version).header("host", host))
        };
        for (authority, host, expected) in [
            ("a", "a", 200),
            ("a", "A", 200),
            ("a:80", "a", 200),
            ("a", "a:80", 200),
            ("a", "a:", 200),
            ("a", "b", 400),
            ("a:81", "a", 400),
            ("a", "a:443", 400),
            ("a", "", 400),
            ("a", "a, b", 400),
            ("a", "a.b", 400),
        ] {
            assert_eq!(with(Version::HTTP_2, authority, host), expected, "{authority} {host}");
        }
        // In HTTP/1.1 the target wins.
        assert_eq!(with(Version::HTTP_11, "a", "b"), 200);
        let https = |host: &str| status(|b| b.uri("https://a/").version(Version::HTTP_2).header("host", host));
        assert_eq!((https("a:443"), https("a:80")), (200, 400));
    }

    #[test]
    fn bodies_may_be_chunked_and_nothing_else() {
        let coded = |lines: &[&str]| {
            status(|b| {
                lines.iter().fold(b.uri("/").header("host", "h"), |b, line| b.header("transfer-encoding", *line))
            })
        };
        assert_eq!((coded(&["chunked"]), coded(&["Chunked "])), (200, 200));
        for other in [&["gzip, chunked"][..], &["gzip", "chunked"], &["chunked, chunked"], &["identity"], &["x"], &[""]]
        {
            assert_eq!(coded(other), 501, "{other:?}");
        }
    }

    #[test]
    fn connect_and_trace_are_refused() {
        assert_eq!(status(|b| b.uri("/").header("host", "h").method("TRACE")), 405);
        assert_eq!(status(|b| b.uri("h:80").header("host", "h").method("CONNECT")), 405);
    }
}
