//! The sites of a server, and the choice of the site for a request.
//!
//! An exact host wins over a `*` pattern, a longer pattern over a shorter one, and the `"default"` site comes last. The
//! lookup takes no lock and does not allocate. With a single site for all hosts there is no lookup.

use crate::server::Server;
use crate::site::Site;
use howdah_budget::Budgets;
use howdah_config::{ClientAuth, HostPattern, HostRoom, ListenAddr, Settings, SocketPlace, normal_host};
use howdah_observe::{AccessLogs, Metrics};
use howdah_protocol::{Connection, Params, Peer};
use rustc_hash::FxHashMap;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// Minimum number of files that each site may keep open, however many sites share a larger limit.
const MIN_OPEN_FILES: usize = 8;

/// Result of the site lookup.
#[derive(Debug, Clone, Copy)]
pub enum Found<'a> {
    /// The site of the request.
    Site(&'a Arc<Site>),
    /// No site matches. The limits and header fields of this site apply to the refusal.
    NoSite(&'a Arc<Site>),
}

/// Every site of a server.
#[derive(Debug)]
pub struct Sites {
    /// State shared by the sites.
    pub server: Arc<Server>,
    /// All of them, in the order of the settings. Never empty.
    all: Vec<Arc<Site>>,
    /// Sites by exact host. Clients cannot add entries, so the hash needs no random seed.
    exact: FxHashMap<Box<[u8]>, usize>,
    /// Sites by the domain after a `*.`.
    below: FxHashMap<Box<[u8]>, usize>,
    /// FastCGI addresses that belong to one site.
    addresses: Vec<(ListenAddr, usize)>,
    /// Sites by their roots, as written and with links resolved, for FastCGI requests.
    roots: FxHashMap<Box<[u8]>, Vec<usize>>,
    /// The `"default"` site, for all other hosts.
    default: Option<usize>,
    /// `true` if the default site is the only one.
    only: bool,
    /// `true` if client certificates are requested.
    asks_clients: bool,
    covers: OnceLock<CertificateCoverage>,
}

/// Returns `true` if the certificate for the first name (as SNI) is also valid for the second name.
type CoverageFn = dyn Fn(&str, &str) -> bool + Send + Sync;

/// Checks which names a certificate covers.
pub struct CertificateCoverage(pub Box<CoverageFn>);

impl std::fmt::Debug for CertificateCoverage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Covers")
    }
}

impl Sites {
    /// Builds the sites from the settings. An error names the setting and the problem.
    pub fn new(
        settings: Arc<Settings>,
        metrics: Arc<Metrics>,
        logs: &AccessLogs,
        budgets: Budgets,
    ) -> Result<Self, String> {
        let server = Arc::new(Server::new(settings.clone(), metrics, logs.of(&settings.log), budgets));
        let (mut all, mut exact, mut below) = (Vec::new(), FxHashMap::default(), FxHashMap::default());
        let (mut default, mut addresses, mut roots) = (None, Vec::new(), FxHashMap::<_, Vec<usize>>::default());
        let sites = settings.all_sites();
        let open_files = (settings.static_files.open_files / sites.len().max(1)).max(MIN_OPEN_FILES);
        for (number, mut own) in sites.into_iter().enumerate() {
            for host in &own.hosts {
                match host {
                    HostPattern::Exact(name) => drop(exact.insert(name.as_bytes().into(), number)),
                    HostPattern::Below(name) => drop(below.insert(name.as_bytes().into(), number)),
                    HostPattern::Any => default = Some(number),
                }
            }
            addresses.extend(own.listen.iter().map(|addr| (addr.clone(), number)));
            // A site's own `open_files` is for that site alone; the top-level value is shared by all sites.
            if own.static_files.open_files == settings.static_files.open_files {
                own.static_files.open_files = open_files.min(settings.static_files.open_files);
            }
            for root in names_of_root(&own.root) {
                roots.entry(root).or_default().push(number);
            }
            let (name, log) = (own.name.clone(), logs.of(&own.log));
            let site = Site::new(&server, own, number, log);
            let is_only = settings.sites.is_empty();
            all.push(Arc::new(site.map_err(|error| if is_only { error } else { format!("site {name}: {error}") })?));
        }
        let only = default == Some(0) && all.len() == 1;
        let asks_clients = settings.tls.client_auth != ClientAuth::Off;
        Ok(Self { server, all, exact, below, addresses, roots, default, only, asks_clients, covers: OnceLock::new() })
    }

    /// Every site.
    pub fn all(&self) -> &[Arc<Site>] {
        &self.all
    }

    /// Makes the Pusher applications of these sites watch their channels.
    pub fn watch_channels(&self) {
        for site in &self.all {
            if let Some(pusher) = &site.pusher {
                pusher.watch(&self.server.hubs().of(&site.settings.name));
            }
        }
    }

    /// Disconnects the subscribers of hubs and the clients of Pusher applications whose settings differ from `before`,
    /// spread over this time; they reconnect. Also makes the Pusher applications of these sites watch their channels.
    pub fn end_changed_subscriptions(&self, before: &Self, spread: Duration) {
        self.watch_channels();
        for old in before.all.iter().filter(|site| site.mercure.is_some() || site.pusher.is_some()) {
            let new = self.all.iter().find(|site| site.settings.name == old.settings.name);
            let is_same = |new: &&Arc<Site>| {
                new.settings.mercure == old.settings.mercure && new.settings.pusher == old.settings.pusher
            };
            if new.filter(is_same).is_none() {
                self.server.hubs().changed(&old.settings.name, new.is_some(), spread);
            }
        }
    }

    /// Returns the site if there is only one, for all hosts. The host of a request then need not be examined.
    pub fn only(&self) -> Option<&Arc<Site>> {
        if self.only { self.all.first() } else { None }
    }

    /// Finds the site for a host as in a request: with or without a port, in upper or lower case.
    pub fn find(&self, host: Option<&[u8]>) -> Found<'_> {
        let mut room: HostRoom = [0; _];
        let named = host.and_then(|host| self.named(normal_host(host, &mut room)?));
        match named.or(self.default) {
            Some(number) => Found::Site(&self.all[number]),
            None => Found::NoSite(&self.all[0]),
        }
    }

    /// Returns the site of a FastCGI request from a web server: by the address that it arrived on, else by
    /// `DOCUMENT_ROOT`, which the web server's settings determine. The host decides only among sites with that root, or
    /// if there is none: clients choose it, and web servers pass `Host` on even if they served another name.
    pub(crate) fn of_web_server(&self, peer: &Peer, host: Option<&[u8]>, variables: &Params) -> &Arc<Site> {
        if let Some((_, number)) = self.addresses.iter().find(|(addr, _)| is_at(peer, addr)) {
            return &self.all[*number];
        }
        let root = variables.get("DOCUMENT_ROOT").map(|root| root.strip_suffix(b"/").unwrap_or(root));
        let rooted = root.and_then(|root| self.roots.get(root));
        let fits = |number: &usize| rooted.is_none_or(|rooted| rooted.contains(number));
        let mut room: HostRoom = [0; _];
        let hosts = [host, variables.get("SERVER_NAME")].into_iter().flatten();
        let named = hosts.filter_map(|host| self.named(normal_host(host, &mut room)?)).find(fits);
        let number = named.or(self.default.filter(fits)).or_else(|| rooted?.first().copied());
        &self.all[number.unwrap_or(0)]
    }

    /// Returns `true` if a connection may request this site under this host (RFC 9110 7.4). If the client named another
    /// site in the TLS handshake, the certificate that it got must cover this host too; with client certificates, it
    /// may not request another site at all. Without TLS or a named host, and for trusted proxies, any host will do.
    pub fn may_serve(&self, site: &Site, host: Option<&[u8]>, connection: &Connection) -> bool {
        let Some(session) = connection.session.get().filter(|_| !self.only && !connection.peer.trusted) else {
            return true;
        };
        let Some(name) = session.server_name.as_deref() else { return true };
        self.agrees(site, name.as_bytes()) || (!self.asks_clients && self.covers(name, host))
    }

    /// Sets the check of the names that a certificate covers.
    pub fn ask_about_certificates(&self, covers: CertificateCoverage) {
        // Called once, before these sites serve.
        let _ = self.covers.set(covers);
    }

    fn covers(&self, name: &str, host: Option<&[u8]>) -> bool {
        let mut room: HostRoom = [0; _];
        let host = host.and_then(|host| normal_host(host, &mut room)).and_then(|host| std::str::from_utf8(host).ok());
        host.zip(self.covers.get()).is_some_and(|(host, covers)| covers.0(name, host))
    }

    /// `true` if a host belongs to this site.
    fn agrees(&self, site: &Site, host: &[u8]) -> bool {
        matches!(self.find(Some(host)), Found::Site(found) if found.number == site.number)
    }

    fn named(&self, host: &[u8]) -> Option<usize> {
        if let Some(number) = self.exact.get(host) {
            return Some(*number);
        }
        if self.below.is_empty() {
            return None;
        }
        let dots = host.iter().enumerate().filter(|(_, byte)| **byte == b'.');
        dots.filter_map(|(at, _)| self.below.get(&host[at + 1..])).next().copied()
    }
}

/// The root of a site as written, and with links resolved if that differs.
fn names_of_root(root: &Path) -> impl Iterator<Item = Box<[u8]>> {
    let (written, real) = (std::path::absolute(root).ok(), root.canonicalize().ok());
    let real = real.filter(|real| Some(real) != written.as_ref());
    let bytes = |path: PathBuf| path.components().as_path().as_os_str().as_bytes().into();
    written.into_iter().chain(real).map(bytes)
}

/// `true` if the peer is connected to this address.
fn is_at(peer: &Peer, addr: &ListenAddr) -> bool {
    match addr.place() {
        SocketPlace::Unix(path) => {
            peer.addr.is_none() && peer.server_addr.strip_prefix("unix:").is_some_and(|own| Path::new(own) == path)
        }
        SocketPlace::Tcp(addr) => {
            let is_port = peer.server_port.parse() == Ok(addr.port());
            is_port && (addr.ip().is_unspecified() || peer.server_addr.parse() == Ok(addr.ip().to_canonical()))
        }
    }
}

#[cfg(test)]
#[path = "sites_tests.rs"]
mod tests;
