//! The client of a request: the peer of the connection or, behind a trusted proxy, the client that the proxy reports in
//! the header fields that the settings list (`Forwarded`, RFC 7239, and `X-Forwarded-For/-Proto/-Host/-Port`). Fields
//! of an untrusted peer are ignored. So are fields that are not listed, because a proxy may pass on forged ones of its
//! client.
//!
//! Only the last element of each field is trusted: the nearest proxy wrote it, and the elements before it may be the
//! client's. `X-Forwarded-For` and `Forwarded` are followed further back, as long as the addresses are those of trusted
//! proxies. Fields are read as bytes, so that an element with invalid text cannot hide the proxy's element after it.

use howdah_config::{HttpSettings, TrustedHeader, TrustedProxy};
use howdah_protocol::{Head, Params, Peer};
use http::{HeaderMap, HeaderValue};
use std::borrow::Cow;
use std::net::{IpAddr, SocketAddr};

/// The client of a request, as scripts and logs see it. Determined once, when the request begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Client {
    /// The address; `None` if it is unknown, as on a Unix socket.
    pub ip: Option<IpAddr>,
    /// `true` if the client used HTTPS.
    pub https: bool,
    /// Set only behind a trusted proxy or a web server, so that other requests allocate nothing.
    reported: Option<Box<ForwardedValues>>,
}

/// Reported values, which replace those of the connection.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct ForwardedValues {
    /// Address and port. The port is empty if it is unknown.
    node: Option<(String, String)>,
    host: Option<String>,
    server_port: Option<Cow<'static, str>>,
}

impl Client {
    /// The client is the peer of the connection.
    fn direct(peer: &Peer) -> Self {
        Self { ip: peer.addr, https: peer.https, reported: None }
    }

    /// The client that a web server in front reports (FastCGI).
    pub(crate) fn of_variables(variables: &Params) -> Self {
        let text = |name| variables.get(name).map(String::from_utf8_lossy).unwrap_or_default().into_owned();
        let addr = text("REMOTE_ADDR");
        let https =
            variables.get("HTTPS").is_some_and(|value| !value.is_empty() && !value.eq_ignore_ascii_case(b"off"));
        let ip = addr.parse::<IpAddr>().ok().map(|addr| addr.to_canonical());
        let server_port = Some(Cow::Owned(text("SERVER_PORT")));
        let reported = ForwardedValues { node: Some((addr, text("REMOTE_PORT"))), host: None, server_port };
        Self { ip, https, reported: Some(Box::new(reported)) }
    }

    fn node(&self) -> Option<&(String, String)> {
        self.reported.as_ref()?.node.as_ref()
    }

    /// `REMOTE_ADDR`. `peer` is the connection's other end.
    pub fn addr<'a>(&'a self, peer: &'a Peer) -> &'a str {
        self.node().map_or(&*peer.addr_text, |(addr, _)| addr)
    }

    /// `REMOTE_PORT`; empty if it is unknown.
    pub fn port<'a>(&'a self, peer: &'a Peer) -> &'a str {
        self.node().map_or(&*peer.port_text, |(_, port)| port)
    }

    /// The host that a proxy reports, with its port if there is one; `None` if the request's own host applies.
    pub fn reported_host(&self) -> Option<&str> {
        self.reported.as_ref()?.host.as_deref()
    }

    /// `SERVER_PORT` as the client sees it.
    pub fn server_port<'a>(&'a self, peer: &'a Peer) -> &'a str {
        let reported = self.reported.as_ref().and_then(|reported| reported.server_port.as_deref());
        reported.unwrap_or(&peer.server_port)
    }

    fn report(&mut self) -> &mut ForwardedValues {
        self.reported.get_or_insert_default()
    }
}

const FORWARDED: &str = "forwarded";
const FOR: &str = "x-forwarded-for";
const PROTO: &str = "x-forwarded-proto";
const HOST: &str = "x-forwarded-host";
const PORT: &str = "x-forwarded-port";

/// `true` if `peer` is one of these proxies. `peer` is `None` for a Unix socket.
pub fn trusts(proxies: &[TrustedProxy], peer: Option<IpAddr>) -> bool {
    proxies.iter().any(|proxy| peer.map_or(*proxy == TrustedProxy::Unix, |peer| proxy.contains(peer)))
}

/// Determines the client. `Exchange::client` has the result for a request.
pub fn client(peer: &Peer, headers: &HeaderMap, settings: &HttpSettings) -> Client {
    let mut client = Client::direct(peer);
    if !peer.trusted {
        return client;
    }
    let trusted = &settings.trusted_proxies;
    let is_listed = |header| settings.trusted_headers.contains(&header);
    // If both are listed, `X-Forwarded-For` wins, because nearly every proxy writes it.
    let has_for = is_listed(TrustedHeader::For) && headers.contains_key(FOR);
    if is_listed(TrustedHeader::Forwarded) && headers.contains_key(FORWARDED) && !has_for {
        apply_forwarded(&mut client, headers, trusted);
    } else {
        apply_x_forwarded(&mut client, headers, trusted, is_listed);
    }
    client
}

/// Returns the last element of a field, which may span several lines; `None` if there is none or it is not valid text.
fn last_element<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let line = headers.get_all(name).iter().next_back()?.as_bytes();
    let element = line.rsplit(|&b| b == b',').next()?;
    std::str::from_utf8(element).ok().map(str::trim).filter(|element| !element.is_empty())
}

/// Returns the elements of a list without quotes, which may span several lines, in reverse order. Invalid text becomes
/// an empty element.
fn elements_from_last<'a>(headers: &'a HeaderMap, name: &str) -> impl Iterator<Item = &'a str> {
    let lines = headers.get_all(name).iter().rev();
    let elements = lines.flat_map(|line| line.as_bytes().rsplit(|&b| b == b','));
    elements.map(|element| std::str::from_utf8(element).unwrap_or_default().trim())
}

/// Like `elements_from_last`, for elements that may contain quoted commas. So each line must be parsed from its start.
fn quoted_elements_from_last<'a>(headers: &'a HeaderMap, name: &str) -> impl Iterator<Item = &'a str> {
    let lines = headers.get_all(name).iter().rev();
    let elements = lines.flat_map(|line| {
        let text = std::str::from_utf8(line.as_bytes()).unwrap_or_default();
        split_outside_quotes(text, b',').into_iter().rev()
    });
    elements.map(str::trim)
}

/// Splits at a byte that is not inside a quoted string.
fn split_outside_quotes(text: &str, at: u8) -> Vec<&str> {
    let (mut parts, mut start, mut quoted, mut escaped) = (Vec::new(), 0, false, false);
    for (i, byte) in text.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            _ if byte == at && !quoted => {
                parts.push(&text[start..i]);
                start = i + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

/// Walks the chain of addresses from the nearest proxy outwards, and uses the first that is not a trusted proxy, else
/// the last. Stops at an invalid address, because the elements beyond it were written by an unknown party.
fn apply_chain<'h, T>(
    client: &mut Client,
    hops: impl Iterator<Item = (Option<(IpAddr, Option<u16>)>, T)>,
    trusted: &[TrustedProxy],
    mut describe: impl FnMut(&mut Client, T),
) where
    T: 'h,
{
    let mut farthest = None;
    for (node, rest) in hops {
        describe(client, rest);
        let Some((addr, port)) = node else { break };
        let addr = addr.to_canonical();
        farthest = Some((addr, port));
        if !trusted.iter().any(|proxy| proxy.contains(addr)) {
            break;
        }
    }
    if let Some((addr, port)) = farthest {
        client.ip = Some(addr);
        client.report().node = Some((addr.to_string(), port.map(|port| port.to_string()).unwrap_or_default()));
    }
}

fn apply_forwarded(client: &mut Client, headers: &HeaderMap, trusted: &[TrustedProxy]) {
    let hops = quoted_elements_from_last(headers, FORWARDED).map(|element| {
        let (mut node, mut proto, mut host) = (None, None, None);
        for pair in split_outside_quotes(element, b';') {
            let Some((name, value)) = pair.split_once('=') else { continue };
            let value = unquote(value.trim());
            match name.trim() {
                n if n.eq_ignore_ascii_case("for") => node = parse_node(&value),
                n if n.eq_ignore_ascii_case("proto") => proto = Some(value.into_owned()),
                n if n.eq_ignore_ascii_case("host") => host = Some(value.into_owned()),
                _ => {}
            }
        }
        (node, (proto, host))
    });
    // Each trusted hop may describe the hop before it. The outermost trusted description wins.
    apply_chain(client, hops, trusted, |client, (proto, host)| {
        if let Some(proto) = proto {
            set_proto(client, &proto);
        }
        if let Some(host) = host {
            set_host(client, &host);
        }
    });
    complete_port(client);
}

fn apply_x_forwarded(
    client: &mut Client,
    headers: &HeaderMap,
    trusted: &[TrustedProxy],
    is_listed: impl Fn(TrustedHeader) -> bool,
) {
    if is_listed(TrustedHeader::For) {
        let hops = elements_from_last(headers, FOR).map(|element| (parse_node(element), ()));
        apply_chain(client, hops, trusted, |_, ()| {});
    }
    // Only the last element of these fields is used: they do not show which proxy wrote which element, and the first
    // one may be the client's.
    let last = |header, name| if is_listed(header) { last_element(headers, name) } else { None };
    if let Some(proto) = last(TrustedHeader::Proto, PROTO) {
        set_proto(client, proto);
    }
    if let Some(host) = last(TrustedHeader::Host, HOST) {
        set_host(client, host);
    }
    if let Some(port) = last(TrustedHeader::Port, PORT).and_then(port_number) {
        client.report().server_port = Some(Cow::Owned(port.to_string()));
    }
    complete_port(client);
}

/// Parses a port. Digits only, because `parse` alone would accept a sign.
fn port_number(text: &str) -> Option<u16> {
    text.parse().ok().filter(|_| text.bytes().all(|b| b.is_ascii_digit()))
}

fn set_proto(client: &mut Client, proto: &str) {
    if proto.eq_ignore_ascii_case("https") || proto.eq_ignore_ascii_case("wss") {
        client.https = true;
        client.report().server_port = Some(Cow::Borrowed("443"));
    } else if proto.eq_ignore_ascii_case("http") || proto.eq_ignore_ascii_case("ws") {
        client.https = false;
        client.report().server_port = Some(Cow::Borrowed("80"));
    }
}

fn set_host(client: &mut Client, host: &str) {
    if crate::host::is_host(host.as_bytes()) {
        client.report().host = Some(host.to_owned());
    }
}

/// Uses the port of the forwarded host, if it has one, as the server port that the client sees.
fn complete_port(client: &mut Client) {
    let port = client.reported_host().and_then(|host| split_port(host).1).map(str::to_owned);
    if let Some(port) = port {
        client.report().server_port = Some(Cow::Owned(port));
    }
}

/// Returns the host that a request names. A target in absolute form and `:authority` (HTTP/2 and 3) take precedence
/// over `Host` (RFC 9112 3.2.2). `limits` checks that it is valid.
pub fn named_host(head: &Head) -> Option<&[u8]> {
    head.target.authority().or_else(|| head.headers.get(http::header::HOST).map(HeaderValue::as_bytes))
}

/// Returns the host that the client requested, with its port if there is one.
pub fn host<'a>(head: &'a Head, client: &'a Client) -> Option<&'a [u8]> {
    client.reported_host().map(str::as_bytes).or_else(|| named_host(head))
}

/// Splits `host:port`. The host keeps the brackets of an IPv6 address.
pub fn split_port(host: &str) -> (&str, Option<&str>) {
    match host.rsplit_once(':') {
        Some((name, port)) if !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit()) && !name.is_empty() => {
            (name, Some(port))
        }
        Some((name, "")) => (name, None),
        _ => (host, None),
    }
}

fn unquote(value: &str) -> Cow<'_, str> {
    let Some(inner) = value.strip_prefix('"').and_then(|v| v.strip_suffix('"')) else { return Cow::Borrowed(value) };
    if !inner.contains('\\') {
        return Cow::Borrowed(inner);
    }
    let mut plain = String::with_capacity(inner.len());
    let mut chars = inner.chars();
    while let Some(c) = chars.next() {
        plain.push(if c == '\\' { chars.next().unwrap_or('\\') } else { c });
    }
    Cow::Owned(plain)
}

/// Parses an address with or without a port, IPv6 with or without brackets. `None` for `unknown` and obfuscated names.
fn parse_node(text: &str) -> Option<(IpAddr, Option<u16>)> {
    if let Ok(addr) = text.parse::<IpAddr>() {
        return Some((addr, None));
    }
    if let Ok(addr) = text.parse::<SocketAddr>() {
        return Some((addr.ip(), Some(addr.port())));
    }
    if let Some(inner) = text.strip_prefix('[').and_then(|t| t.strip_suffix(']')) {
        return inner.parse().ok().map(|addr| (addr, None));
    }
    // `192.0.2.1:_hidden`: the port is obfuscated (RFC 7239 6).
    let (addr, port) = text.rsplit_once(':')?;
    if !port.starts_with('_') {
        return None;
    }
    let addr = addr.strip_prefix('[').and_then(|t| t.strip_suffix(']')).unwrap_or(addr);
    addr.parse().ok().map(|addr| (addr, None))
}

#[cfg(test)]
#[path = "forwarded_tests.rs"]
mod tests;
