//! `howdah explain`: finds the site, file, script and pool of a request, and the reasons. It runs the code that serves
//! requests, with the settings and the file system only.

use crate::exchange::Exchange;
use crate::explanation::ExplanationBuilder;
use crate::forwarded;
use crate::notes::Notes;
use crate::server_request::{self, Purpose};
use crate::service;
use crate::sites::Sites;
use bytes::Bytes;
use howdah_config::{HostPattern, HostRoom, ListenAddr, Origin, normal_host};
use howdah_protocol::{Head, Peer, Target};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Version, header};
use std::net::{IpAddr, SocketAddr};

pub use crate::explanation::{Explanation, ScriptRun};

/// The request to explain.
#[derive(Debug, Clone)]
pub struct Question {
    pub method: String,
    /// `http://host/path?query`, or only the path.
    pub url: String,
    /// Its headers besides `Host`.
    pub headers: Vec<(String, String)>,
    /// The client's address.
    pub client: IpAddr,
}

/// Explains a request.
///
/// # Errors
/// The question is not a valid request.
pub fn explain(sites: &Sites, question: &Question) -> Result<Explanation, String> {
    let head = head(question)?;
    let mut explaining = ExplanationBuilder::default();
    let peer = listener(sites, question, &head, &explaining.notes);
    let mut exchange = server_request::begin(sites, Purpose::Explain, head, peer);
    name_client(&exchange, &explaining.notes);
    name_site(sites, &exchange, &explaining.notes);
    if !exchange.misdirected {
        explaining.found.site = Some(exchange.site.settings.name.clone());
    }
    service::explain(&mut exchange, &mut explaining);
    Ok(explaining.finish())
}

fn head(question: &Question) -> Result<Head, String> {
    let target = Target::parse(Bytes::copy_from_slice(question.url.as_bytes()))
        .map_err(|_| format!("{:?} is not an address: write http://HOST/PATH, with %20 for a space", question.url))?;
    let method =
        Method::from_bytes(question.method.as_bytes()).map_err(|_| format!("{:?} is not a method", question.method))?;
    let mut headers = HeaderMap::new();
    for (name, value) in &question.headers {
        let name: HeaderName = name.parse().map_err(|_| format!("{name:?} is not the name of a header"))?;
        let value = HeaderValue::from_str(value).map_err(|_| format!("{value:?} cannot be the value of a header"))?;
        headers.append(name, value);
    }
    let version = if headers.contains_key(header::HOST) || target.authority().is_some() {
        Version::HTTP_11
    } else {
        // Only HTTP/1.0 may omit the host.
        Version::HTTP_10
    };
    if let Some(authority) = target.authority().filter(|_| !headers.contains_key(header::HOST)) {
        let host = HeaderValue::from_bytes(authority).map_err(|_| "the host has invalid characters".to_owned())?;
        headers.insert(header::HOST, host);
    }
    Ok(Head { method, target, version, headers })
}

/// Returns the peer of the request: its listening address and its client.
fn listener(sites: &Sites, question: &Question, head: &Head, notes: &Notes) -> Peer {
    let named = forwarded::named_host(head).map(String::from_utf8_lossy).unwrap_or_default();
    let port = forwarded::split_port(&named).1.and_then(|port| port.parse().ok());
    let port: u16 = port.unwrap_or(if head.target.is_https() { 443 } else { 80 });
    let https = head.target.is_https();
    let of_scheme = |addr: &ListenAddr| match addr {
        ListenAddr::Tcp(addr) => Some(*addr).filter(|_| !https),
        ListenAddr::Https(addr) => Some(*addr).filter(|_| https),
        ListenAddr::Unix(_) | ListenAddr::FastCgiTcp(_) | ListenAddr::FastCgiUnix(_) => None,
    };
    let settings = &sites.server.settings;
    let fits = settings.listen.iter().filter_map(of_scheme).find(|addr| addr.port() == port);
    let scheme = if https { "https" } else { "http" };
    match fits {
        Some(addr) => notes.add("listener", format!("{addr}, {scheme}, from `listen`")),
        None => notes
            .add("listener", format!("no address of `listen` has port {port} for {scheme}; assuming that one has it")),
    }
    let local = SocketAddr::new(fits.map_or(IpAddr::from([127, 0, 0, 1]), |addr| addr.ip()), port);
    let proxies = &settings.http.trusted_proxies;
    let mut peer = Peer::tcp(SocketAddr::new(question.client, 0), local, |peer| forwarded::trusts(proxies, peer));
    peer.https = https;
    peer
}

fn name_client(exchange: &Exchange, notes: &Notes) {
    let peer = &exchange.connection.peer;
    let (shown, client) = (&*peer.addr_text, exchange.client.addr(peer));
    let trusted = if peer.trusted { ", a trusted proxy" } else { "" };
    let by_proxy = if client == shown { String::new() } else { format!(", for {client}") };
    notes.add("client", format!("{shown}{trusted}{by_proxy}"));
}

fn name_site(sites: &Sites, exchange: &Exchange, notes: &Notes) {
    let (site, host) = (&exchange.site, exchange.host());
    if exchange.misdirected {
        let shown = host.map(String::from_utf8_lossy);
        let host = shown.map_or_else(|| "a request without a host".to_owned(), |host| format!("\"{host}\""));
        notes.add("site", format!("none: no site has hosts for {host} or \"default\""));
    } else if sites.only().is_some() {
        notes.add("site", format!("\"{}\", the only one, for every host", site.settings.name));
    } else {
        let mut room: HostRoom = [0; _];
        let host = host.and_then(|host| normal_host(host, &mut room)).map(String::from_utf8_lossy).unwrap_or_default();
        let fits = |pattern: &&HostPattern| pattern.fits(&host);
        // An exact name wins over a `*` pattern, and a longer pattern over a shorter one.
        let why = site.settings.hosts.iter().filter(fits).max_by_key(|pattern| match pattern {
            HostPattern::Exact(_) => usize::MAX,
            HostPattern::Below(name) => name.len() + 1,
            HostPattern::Any => 0,
        });
        let why = why.map(ToString::to_string).unwrap_or_default();
        let place = &site.settings.origin;
        let place = if *place == Origin::Default { String::new() } else { format!(", {place}") };
        notes.add("site", format!("\"{}\", by its host \"{why}\"{place}", site.settings.name));
    }
}
