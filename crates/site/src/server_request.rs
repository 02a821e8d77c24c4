//! Requests that the server makes itself: as a visitor's GET on this machine would be, at the first address that does not
//! send clients elsewhere.

use crate::site::Site;
use crate::sites::Sites;
use bytes::Bytes;
use howdah_config::{HostPattern, ListenAddr, Settings};
use howdah_protocol::{Connection, Head, Peer, Request, RequestBody, Shared, Target};
use http::{HeaderMap, HeaderValue, Method, Version, header};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Instant, SystemTime};

/// A GET of a target such as `/products?page=2` under a host of a site, or under this one; `agent` is who says to ask.
///
/// # Errors
/// What is wrong with the target or the host.
pub fn get(
    sites: &Sites,
    shared: Arc<Shared>,
    site: &Site,
    host: Option<&str>,
    target: &str,
    agent: &'static str,
) -> Result<Request, String> {
    let target = Target::parse(Bytes::copy_from_slice(target.as_bytes()))
        .map_err(|_| "it is no path: write %20 for a space".to_owned())?;
    let host = host.map_or_else(|| host_of(site), str::to_owned);
    let headers = HeaderMap::from_iter([
        (header::HOST, HeaderValue::from_str(&host).map_err(|error| error.to_string())?),
        (header::USER_AGENT, HeaderValue::from_static(agent)),
        (header::ACCEPT, HeaderValue::from_static("*/*")),
    ]);
    Ok(Request {
        head: Head { method: Method::GET, target, version: Version::HTTP_11, headers },
        body: RequestBody::none(),
        informational: None,
        connection: Arc::new(Connection::of_no_client(shared, peer(&sites.server.settings))),
        received: Instant::now(),
        time: SystemTime::now(),
    })
}

/// A host that the site is for.
fn host_of(site: &Site) -> String {
    let named = site.settings.hosts.iter().find_map(|host| match host {
        HostPattern::Exact(name) => Some(name.clone()),
        HostPattern::Below(name) => Some(format!("www.{name}")),
        HostPattern::Any => None,
    });
    named.or_else(|| site.settings.server_name.clone()).unwrap_or_else(|| "localhost".to_owned())
}

/// This machine, at the first address that does not send clients elsewhere.
fn peer(settings: &Settings) -> Peer {
    let to_tls = settings.tls.redirect;
    let listener = settings.listen.iter().find_map(|addr| match addr {
        ListenAddr::Https(addr) => Some((*addr, true)),
        ListenAddr::Tcp(addr) if !to_tls => Some((*addr, false)),
        ListenAddr::Tcp(_) | ListenAddr::Unix(_) => None,
    });
    let here = IpAddr::from(Ipv4Addr::LOCALHOST);
    let (local, https) = listener.unwrap_or((SocketAddr::new(here, 80), false));
    let mut peer = Peer::tcp(SocketAddr::new(here, 0), SocketAddr::new(here, local.port()), |_| false);
    peer.https = https;
    peer
}
