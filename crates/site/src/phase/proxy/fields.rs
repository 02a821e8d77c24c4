//! The fields that tell the next server who the client is and how it came. Of what the client itself sends of them nothing
//! arrives, unless it is a trusted proxy: then its word stands, and this hop is added.

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

/// The caller's span; of what the client sends of them nothing arrives where this server makes traces itself.
const TRACE_PARENT: HeaderName = HeaderName::from_static("traceparent");
const TRACE_STATE: HeaderName = HeaderName::from_static("tracestate");

/// Every field that some application believes about the client.
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

/// A request that has been through so many servers of this kind goes in a circle.
const MAX_HOPS: usize = 8;

/// `true` if a request has passed too many servers like this one.
pub(super) fn goes_in_a_circle(headers: &HeaderMap) -> bool {
    let words = headers.get_all(header::VIA).iter().flat_map(|line| line.as_bytes().split(|&byte| byte == b','));
    words.filter(|word| word.trim_ascii().ends_with(VIA.as_bytes())).count() >= MAX_HOPS
}

/// The client's fields as they go on.
pub(super) fn fields(exchange: &Exchange, settings: &ProxySettings) -> HeaderMap {
    let (head, peer, client) = (&exchange.head, &exchange.connection.peer, &exchange.client);
    let http = &exchange.site.server.settings.http;
    let mut headers = head.headers.clone();
    // Before anything is added, or the client could list that in `Connection`.
    hop_by_hop::strip(&mut headers);
    client_fields::strip(&mut headers, peer.trusted);
    join_cookies(&mut headers);
    let host = named_host(head);
    if let Some(host) = host.and_then(|host| HeaderValue::from_bytes(host).ok()) {
        headers.insert(header::HOST, host);
    }
    let told = |listed| peer.trusted && http.trusted_headers.contains(&listed);
    let chain = chain(if told(TrustedHeader::For) { headers.get_all(FOR).iter().collect() } else { Vec::new() });
    let elements = chain_of_forwarded(&headers, told(TrustedHeader::Forwarded));
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

/// HTTP/2 brings cookies one by one, HTTP/1.1 has them in one line (RFC 9113 8.2.3).
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

/// The elements so far, in one line, with what separates them from the next.
fn chain(lines: Vec<&HeaderValue>) -> Vec<u8> {
    let mut chain = Vec::new();
    for line in lines.iter().map(|line| line.as_bytes().trim_ascii()).filter(|line| !line.is_empty()) {
        chain.extend_from_slice(line);
        chain.extend_from_slice(b", ");
    }
    chain
}

fn chain_of_forwarded(headers: &HeaderMap, told: bool) -> Vec<u8> {
    chain(if told { headers.get_all(FORWARDED).iter().collect() } else { Vec::new() })
}

fn x_forwarded(headers: &mut HeaderMap, client: &Client, peer: &Peer, chain: Vec<u8>, host: Option<&[u8]>) {
    // A peer on a Unix socket has no address: what it says of its client is all there is.
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

/// This hop's element of `Forwarded` (RFC 7239 4): an IPv6 address and a host with a port need quotes.
fn element(client: &Client, peer: Option<IpAddr>, host: Option<&[u8]>) -> Vec<u8> {
    let node = match peer {
        Some(IpAddr::V4(address)) => address.to_string(),
        Some(IpAddr::V6(address)) => format!("\"[{address}]\""),
        None => "unknown".to_owned(),
    };
    let mut element = format!("for={node};proto={}", if client.https { "https" } else { "http" }).into_bytes();
    // A valid host has no quotation mark and no backslash.
    if let Some(host) = host {
        element.extend_from_slice(b";host=\"");
        element.extend_from_slice(host);
        element.push(b'"');
    }
    element
}
