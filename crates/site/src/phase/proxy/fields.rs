//! The header fields that tell the upstream server about the client and its connection. The client's own fields of this
//! kind (`ABOUT_THE_CLIENT`) are removed. Only a trusted proxy's `X-Forwarded-For` or `Forwarded`, if the settings list
//! it, is extended.

use crate::client_fields;
use crate::exchange::Exchange;
use crate::forwarded::{Client, named_host};
use howdah_config::{ForwardedFields, ProxySettings, TrustedHeader};
use howdah_protocol::{Peer, hop_by_hop};
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use std::net::IpAddr;

const FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
const PORT: HeaderName = HeaderName::from_static("x-forwarded-port");
const REAL_IP: HeaderName = HeaderName::from_static("x-real-ip");
const FORWARDED: HeaderName = header::FORWARDED;

/// The trace context. The client's own is replaced if this server traces requests.
const TRACE_PARENT: HeaderName = HeaderName::from_static("traceparent");
const TRACE_STATE: HeaderName = HeaderName::from_static("tracestate");

/// Common fields about the client that applications trust.
const ABOUT_THE_CLIENT: [HeaderName; 9] = [
    FOR,
    PROTO,
    HOST,
    PORT,
    REAL_IP,
    FORWARDED,
    HeaderName::from_static("x-forwarded-server"),
    HeaderName::from_static("x-forwarded-scheme"),
    HeaderName::from_static("x-forwarded-ssl"),
];

/// This server's name in `Via` (RFC 9110 7.6.3).
const VIA: &str = "howdah";

/// A request that has passed this many servers of this kind is in a loop.
const MAX_HOPS: usize = 8;

/// `true` if a request has passed `MAX_HOPS` servers of this kind.
pub(super) fn is_looping(headers: &HeaderMap) -> bool {
    let words = headers.get_all(header::VIA).iter().flat_map(|line| line.as_bytes().split(|&byte| byte == b','));
    words.filter(|word| word.trim_ascii().ends_with(VIA.as_bytes())).count() >= MAX_HOPS
}

/// Returns the request's header fields for the upstream server.
pub(super) fn fields(exchange: &Exchange, settings: &ProxySettings) -> HeaderMap {
    let (head, peer, client) = (&exchange.head, &exchange.connection.peer, &exchange.client);
    let http = &exchange.site.server.settings.http;
    let mut headers = head.headers.clone();
    // Before any field is added: the client could otherwise have it removed by listing it in `Connection`.
    hop_by_hop::strip(&mut headers);
    client_fields::strip(&mut headers, peer.trusted);
    join_cookies(&mut headers);
    let host = named_host(head);
    if let Some(host) = host.and_then(|host| HeaderValue::from_bytes(host).ok()) {
        headers.insert(header::HOST, host);
    }
    let is_trusted = |listed| peer.trusted && http.trusted_headers.contains(&listed);
    let chain = chain(if is_trusted(TrustedHeader::For) { headers.get_all(FOR).iter().collect() } else { Vec::new() });
    let elements = chain_of_forwarded(&headers, is_trusted(TrustedHeader::Forwarded));
    for name in &ABOUT_THE_CLIENT {
        headers.remove(name);
    }
    let host = exchange.host();
    match settings.forwarded {
        ForwardedFields::Off => {}
        ForwardedFields::XForwarded => {
            x_forwarded(&mut headers, client, peer, chain, host);
        }
        ForwardedFields::Forwarded => {
            let element = element(client, peer.addr, host);
            set(&mut headers, FORWARDED, &[&elements[..], &element].concat());
        }
    }
    if let Some(trace) = &exchange.trace {
        headers.remove(&TRACE_STATE);
        set(&mut headers, TRACE_PARENT, trace.parent_field().as_bytes());
        if let Some(state) = trace.state_field() {
            set(&mut headers, TRACE_STATE, state.as_bytes());
        }
    }
    let version = match head.version {
        http::Version::HTTP_10 => "1.0",
        http::Version::HTTP_2 => "2",
        http::Version::HTTP_3 => "3",
        _ => "1.1",
    };
    if let Ok(via) = HeaderValue::from_str(&format!("{version} {VIA}")) {
        headers.append(header::VIA, via);
    }
    headers
}

/// Joins the cookies: HTTP/2 and 3 may send one field per cookie, HTTP/1.1 needs a single line (RFC 9113 8.2.3).
fn join_cookies(headers: &mut HeaderMap) {
    let mut lines = headers.get_all(header::COOKIE).iter();
    if lines.next().is_none() || lines.next().is_none() {
        return;
    }
    let lines: Vec<&[u8]> = headers.get_all(header::COOKIE).iter().map(HeaderValue::as_bytes).collect();
    let joined = lines.join(&b"; "[..]);
    set(headers, header::COOKIE, &joined);
}

fn set(headers: &mut HeaderMap, name: HeaderName, value: &[u8]) {
    if let Ok(value) = HeaderValue::from_bytes(value) {
        headers.insert(name, value);
    }
}

/// Returns the existing elements in one line, with a separator for the next one.
fn chain(lines: Vec<&HeaderValue>) -> Vec<u8> {
    let mut chain = Vec::new();
    for line in lines.iter().map(|line| line.as_bytes().trim_ascii()).filter(|line| !line.is_empty()) {
        chain.extend_from_slice(line);
        chain.extend_from_slice(b", ");
    }
    chain
}

fn chain_of_forwarded(headers: &HeaderMap, is_trusted: bool) -> Vec<u8> {
    chain(if is_trusted { headers.get_all(FORWARDED).iter().collect() } else { Vec::new() })
}

fn x_forwarded(headers: &mut HeaderMap, client: &Client, peer: &Peer, chain: Vec<u8>, host: Option<&[u8]>) {
    // A peer on a Unix socket has no address, so only its own `X-Forwarded-For` is passed on.
    let last = peer.addr.map(|addr| addr.to_string());
    let all = match &last {
        Some(last) => [&chain[..], last.as_bytes()].concat(),
        None => chain.strip_suffix(b", ").unwrap_or_default().to_vec(),
    };
    if !all.is_empty() {
        set(headers, FOR, &all);
    }
    if let Some(address) = client.ip {
        set(headers, REAL_IP, address.to_string().as_bytes());
    }
    set(headers, PROTO, if client.https { b"https" } else { b"http" });
    if let Some(host) = host {
        set(headers, HOST, host);
    }
    let port = client.server_port(peer);
    if !port.is_empty() {
        set(headers, PORT, port.as_bytes());
    }
}

/// Returns this hop's element of `Forwarded` (RFC 7239 4). An IPv6 address and a host with a port need quotes.
fn element(client: &Client, peer: Option<IpAddr>, host: Option<&[u8]>) -> Vec<u8> {
    let node = match peer {
        Some(IpAddr::V4(address)) => address.to_string(),
        Some(IpAddr::V6(address)) => format!("\"[{address}]\""),
        None => "unknown".to_owned(),
    };
    let mut element = format!("for={node};proto={}", if client.https { "https" } else { "http" }).into_bytes();
    // No escaping: a valid host contains neither quotation marks nor backslashes.
    if let Some(host) = host {
        element.extend_from_slice(b";host=\"");
        element.extend_from_slice(host);
        element.push(b'"');
    }
    element
}
