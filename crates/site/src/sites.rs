//! The sites of a server, and which of them a request is for.
//!
//! A host that is named counts before one that a `*` stands for, of several `*` the longest, and then comes the site for
//! `"default"`. Finding one takes no lock and no allocation, and with one site for all hosts no look at the host at all.

use crate::server::Server;
use crate::site::Site;
use howdah_budget::Budgets;
use howdah_config::{ClientAuth, HostPattern, HostRoom, ListenAddr, Settings, SocketPlace, normal_host};
use howdah_observe::{AccessLogs, Metrics};
use howdah_protocol::{Connection, Params, Peer};
use rustc_hash::FxHashMap;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// Files that a site may keep open however many sites share them.
const MIN_OPEN_FILES: usize = 8;

/// Which site a request is for.
#[derive(Debug, Clone, Copy)]
pub enum Found<'a> {
    /// This one.
    Site(&'a Arc<Site>),
    /// None; this one's limits and fields hold for the refusal.
    Nobody(&'a Arc<Site>),
}

/// Every site of a server.
#[derive(Debug)]
pub struct Sites {
    /// State shared by the sites.
    pub server: Arc<Server>,
    /// All of them, in the order of the settings. Never empty.
    all: Vec<Arc<Site>>,
    /// The sites of hosts that are named. No client adds to them, so the hash needs no secret.
    exact: FxHashMap<Box<[u8]>, usize>,
    /// Sites by the domain after a `*.`.
    below: FxHashMap<Box<[u8]>, usize>,
    /// FastCGI addresses that are for one site.
    addresses: Vec<(ListenAddr, usize)>,
    /// The site of all other hosts.
    default: Option<usize>,
    /// Nothing else is there than that one.
    only: bool,
    /// Client certificates are requested.
    asks_clients: bool,
    covers: OnceLock<Covers>,
}

/// Tells whether the certificate that clients get who send the first name is for the second one too.
type IsFor = dyn Fn(&str, &str) -> bool + Send + Sync;

/// Knows the certificates' names.
pub struct Covers(pub Box<IsFor>);

impl std::fmt::Debug for Covers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Covers")
    }
}

impl Sites {
    /// Derives the sites from settings. An error names the setting and what is wrong with it.
    pub fn new(
        settings: Arc<Settings>,
        metrics: Arc<Metrics>,
        logs: &AccessLogs,
        budgets: Budgets,
    ) -> Result<Self, String> {
        let server = Arc::new(Server::new(settings.clone(), metrics, logs.of(&settings.log), budgets));
        let (mut all, mut exact, mut below) = (Vec::new(), FxHashMap::default(), FxHashMap::default());
        let (mut default, mut addresses) = (None, Vec::new());
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
            // A number that it says itself is its own; that of the top level is for all together.
            if own.static_files.open_files == settings.static_files.open_files {
                own.static_files.open_files = open_files.min(settings.static_files.open_files);
            }
            let (name, log) = (own.name.clone(), logs.of(&own.log));
            let site = Site::new(&server, own, number, log);
            let is_only = settings.sites.is_empty();
            all.push(Arc::new(site.map_err(|error| if is_only { error } else { format!("site {name}: {error}") })?));
        }
        let only = default == Some(0) && all.len() == 1;
        let asks_clients = settings.tls.client_auth != ClientAuth::Off;
        Ok(Self { server, all, exact, below, addresses, default, only, asks_clients, covers: OnceLock::new() })
    }

    /// Every site.
    #[must_use]
    pub fn all(&self) -> &[Arc<Site>] {
        &self.all
    }

    /// Asks subscribers to come back whose hub has other settings than in the sites `before`, spread over this time, and has
    /// channels watched by these sites.
    pub fn end_changed_subscriptions(&self, before: &Self, spread: Duration) {
        for site in &self.all {
            if let Some(pusher) = &site.pusher {
                pusher.watch(&self.server.hubs().of(&site.settings.name));
            }
        }
        for old in before.all.iter().filter(|site| site.mercure.is_some()) {
            let new = self.all.iter().find(|site| site.settings.name == old.settings.name);
            if new.is_none_or(|new| new.settings.mercure != old.settings.mercure) {
                self.server.hubs().changed(&old.settings.name, new.is_some(), spread);
            }
        }
    }

    /// The site of a request if there is one for all hosts, who needs not be looked at.
    #[must_use]
    pub fn only(&self) -> Option<&Arc<Site>> {
        if self.only { self.all.first() } else { None }
    }

    /// The site for a host, as a request has it: with or without a port, and in whatever letters.
    #[must_use]
    pub fn find(&self, host: Option<&[u8]>) -> Found<'_> {
        let mut room: HostRoom = [0; _];
        let named = host.and_then(|host| self.named(normal_host(host, &mut room)?));
        match named.or(self.default) {
            Some(number) => Found::Site(&self.all[number]),
            None => Found::Nobody(&self.all[0]),
        }
    }

    /// The site of a request that a web server in front has judged: that of the address it came to, else of its host, else
    /// the one whose root it names, else the first.
    pub(crate) fn of_web_server(&self, peer: &Peer, host: Option<&[u8]>, variables: &Params) -> &Arc<Site> {
        if let Some((_, number)) = self.addresses.iter().find(|(addr, _)| is_at(peer, addr)) {
            return &self.all[*number];
        }
        let hosts = [host, variables.get("SERVER_NAME")];
        let mut named = hosts.into_iter().flatten().filter_map(|host| match self.find(Some(host)) {
            Found::Site(site) => Some(site),
            Found::Nobody(_) => None,
        });
        let of_root = || {
            let root = variables.get("DOCUMENT_ROOT")?;
            self.all.iter().find(|site| site.root.as_os_str().as_bytes() == root)
        };
        named.next().or_else(of_root).unwrap_or(&self.all[0])
    }

    /// Decides whether a connection may request this site under this host (RFC 9110 7.4): not if its client named
    /// another host in the TLS handshake, unless the certificate that it got covers this host too. With client
    /// certificates, it never may for another site. Trusted proxies may use any name.
    #[must_use]
    pub fn may_serve(&self, site: &Site, host: Option<&[u8]>, connection: &Connection) -> bool {
        let Some(session) = connection.session.get().filter(|_| !self.only && !connection.peer.trusted) else {
            return true;
        };
        let Some(name) = session.server_name.as_deref() else { return true };
        self.agrees(site, name.as_bytes()) || (!self.asks_clients && self.covers(name, host))
    }

    /// Says how to find out whether the certificate that clients get who send a name is for a host too.
    pub fn ask_about_certificates(&self, covers: Covers) {
        // Set once, at the start.
        let _ = self.covers.set(covers);
    }

    fn covers(&self, name: &str, host: Option<&[u8]>) -> bool {
        let mut room: HostRoom = [0; _];
        let host = host.and_then(|host| normal_host(host, &mut room)).and_then(|host| std::str::from_utf8(host).ok());
        host.zip(self.covers.get()).is_some_and(|(host, covers)| covers.0(name, host))
    }

    /// `true` if a host is one of this site's.
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

/// `true` if a peer has connected to this address.
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
