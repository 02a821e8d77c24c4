//! TLS of the server: builds the certificate store and the configuration of listeners and tasks from the settings.
//! `howdah check` uses the same code, so settings that pass it can be served.

use howdah_config::{Account, CertificateFiles, ClientAuth, HostPattern, ListenAddr, Loaded, Settings, TlsVersion};
use howdah_protocol::http3;
use howdah_protocol::inherited::InheritedSockets;
use howdah_protocol::listener::{BindError, Listener};
use howdah_tls::names::covers;
use howdah_tls::{FileUser, Files, Hosts, MinVersion, Options, Pair, ServerConfig, Store, server_config};
use std::path::PathBuf;
use std::sync::Arc;
use tokio::task::JoinSet;

/// TLS state of a server.
pub(crate) struct Tls {
    store: Arc<Store>,
    config: Arc<ServerConfig>,
    /// Configuration of HTTP/3, if it is on.
    quic: Option<http3::Config>,
    files: Files,
    /// Hosts that sites' certificates do not cover.
    uncovered: Vec<String>,
    hosts: Hosts,
}

/// Loads the certificates that the settings name; `None` if no address uses TLS.
///
/// # Errors
/// All mistakes, each with the setting.
///
/// Does not change the store; `install` does. Where the server may no longer read a file, such as root's keys after it
/// switched users, the certificate loaded `before` stays in use.
pub(crate) fn prepare(loaded: &Loaded, store: Arc<Store>, before: Option<&Files>) -> Result<Option<Tls>, Vec<String>> {
    let settings = &loaded.settings;
    if !settings.listen.iter().any(|addr| matches!(addr, ListenAddr::Https(_))) {
        return Ok(None);
    }
    let at = |key: &str, why: &dyn std::fmt::Display| {
        format!("{}: [tls] {key}: {why}", loaded.origins.of(&format!("tls.{key}")))
    };
    let mut errors = Vec::new();
    let mut loaded_files = Vec::new();
    for (site, certificates) in all_certificates(settings) {
        let pair = |files: &CertificateFiles| Pair { certificate: files.cert.clone(), key: files.key.clone(), site };
        match Files::load_over(certificates.iter().map(pair), before) {
            Ok(files) => loaded_files.push(files),
            Err(wrong) => {
                errors.extend(wrong.iter().map(|error| match site.map(|number| &settings.sites[number].name) {
                    Some(name) => {
                        let origin = loaded.origins.of(&format!("site.{name}.tls.certificates"));
                        format!("{origin}: [site.tls] certificates: {error}")
                    }
                    None => at("certificates", error),
                }))
            }
        }
    }
    let config = server_config::tcp(store.clone(), &options(settings)).map_err(|error| at("client_ca", &error));
    let quic = match settings.tls.http3 {
        true => quic(store.clone(), settings).map(Some).map_err(|why| at("http3", &why)),
        false => Ok(None),
    };
    match config.and_then(|config| Ok((config, quic?))) {
        Ok((config, quic)) if errors.is_empty() => {
            let files = Files::joined(loaded_files);
            let uncovered = uncovered(settings, &files);
            Ok(Some(Tls { store, config, quic, files, uncovered, hosts: hosts(settings) }))
        }
        config => Err(errors.into_iter().chain(config.err()).collect()),
    }
}

/// Certificates of the top level, and of each site with its number.
fn all_certificates(settings: &Settings) -> impl Iterator<Item = (Option<usize>, &[CertificateFiles])> {
    let of_sites = settings.sites.iter().enumerate();
    let of_sites = of_sites.map(|(number, site)| (Some(number), site.tls.certificates.as_slice()));
    std::iter::once((None, settings.tls.certificates.as_slice())).chain(of_sites)
}

/// Maps hosts to sites.
fn hosts(settings: &Settings) -> Hosts {
    let mut hosts = Hosts::default();
    for (number, site) in settings.sites.iter().enumerate() {
        for host in &site.hosts {
            match host {
                HostPattern::Exact(name) => hosts.exact(name, number),
                HostPattern::Below(name) => hosts.below(name, number),
                HostPattern::Any => hosts.others(number),
            }
        }
    }
    hosts
}

/// Warnings for hosts of sites with certificates, if no certificate of the site or the top level covers the host:
/// clients would refuse it.
fn uncovered(settings: &Settings, files: &Files) -> Vec<String> {
    let mut warnings = Vec::new();
    for (number, site) in settings.sites.iter().enumerate().filter(|(_, site)| !site.tls.certificates.is_empty()) {
        let fits = |pair: &Pair| pair.site.is_none_or(|site| site == number);
        let names: Vec<&str> = files
            .certificates()
            .filter(|(pair, _)| fits(pair))
            .flat_map(|(_, certificate)| certificate.names.iter().map(AsRef::as_ref))
            .collect();
        let is_covered = |host: &&HostPattern| match host {
            HostPattern::Exact(host) => {
                host.parse::<std::net::IpAddr>().is_ok()
                    || host.starts_with('[')
                    || settings.acme.names.contains(host)
                    || names.iter().any(|name| covers(name, host))
            }
            HostPattern::Below(parent) => names.iter().any(|name| name.strip_prefix("*.") == Some(parent)),
            HostPattern::Any => true,
        };
        let missing: Vec<String> =
            site.hosts.iter().filter(|host| !is_covered(host)).map(ToString::to_string).collect();
        if !missing.is_empty() {
            warnings.push(format!(
                "site {}: none of its certificates is for {}, so clients refuse the connection; they are for {}",
                site.name,
                missing.join(", "),
                if names.is_empty() { "no name".to_owned() } else { names.join(", ") }
            ));
        }
    }
    warnings
}

/// Number of handshakes with unvalidated client addresses above which further clients must validate theirs first (QUIC
/// Retry).
const HTTP3_RETRY_ABOVE: usize = 100;

/// Configuration of HTTP/3. Resumed clients may send early data; the server decides for each request whether to accept
/// it.
fn quic(store: Arc<Store>, settings: &Settings) -> Result<http3::Config, String> {
    let tls = server_config::quic(store, &options(settings), true).map_err(|error| error.to_string())?;
    http3::Config::new(tls, HTTP3_RETRY_ABOVE).map_err(|error| error.to_string())
}

fn options(settings: &Settings) -> Options {
    let tls = &settings.tls;
    let authority = || tls.client_ca.clone().unwrap_or_default();
    Options {
        min_version: match tls.min_version {
            TlsVersion::Tls12 => MinVersion::Tls12,
            TlsVersion::Tls13 => MinVersion::Tls13,
        },
        client_auth: match tls.client_auth {
            ClientAuth::Off => howdah_tls::ClientAuth::Off,
            ClientAuth::Optional => howdah_tls::ClientAuth::Optional(authority()),
            ClientAuth::Required => howdah_tls::ClientAuth::Required(authority()),
        },
    }
}

impl Tls {
    /// Problems that do not prevent serving. `account` is the server's future user.
    pub(crate) fn warnings(&self, account: Option<&Account>) -> Vec<String> {
        let mut warnings = self.files.warnings();
        warnings.extend(self.uncovered.iter().cloned());
        if let Some(account) = account {
            let paths = self.files.certificates().flat_map(|(pair, _)| [&pair.certificate, &pair.key]);
            let groups: Vec<u32> = account.groups.iter().copied().chain([account.gid]).collect();
            let reader = FileUser { uid: Some(account.uid), groups: &groups };
            let closed: Vec<&PathBuf> = paths.filter(|path| !reader.can_read(path)).collect();
            warnings.extend(closed.into_iter().map(|path| {
                format!(
                    "{} can be read by root, but not by {} (see the modes of the file and of its directories): a renewed \
                     certificate is served only after a restart",
                    path.display(),
                    account.name
                )
            }));
        }
        warnings
    }

    /// Adds TLS to the listener if its address says so.
    pub(crate) fn on(&self, listener: Listener, addr: &ListenAddr) -> Listener {
        if matches!(addr, ListenAddr::Https(_)) { listener.with_tls(self.config.clone()) } else { listener }
    }

    /// Replaces the store's certificates with those from files, and reloads changed files until the returned tasks are
    /// dropped. Called within a runtime.
    pub(crate) fn install(&mut self) -> JoinSet<()> {
        self.store.set_hosts(std::mem::take(&mut self.hosts));
        self.files.put_into(&self.store);
        let mut watch = JoinSet::new();
        watch.spawn(self.files.clone().watch(self.store.clone()));
        watch
    }

    /// Keeps the HTTP/3 configuration of `before`, and its session ticket keys for TCP if nothing else in the TLS
    /// configuration changes.
    pub(crate) fn inherit_from(&mut self, before: &Self, was: &Settings, is: &Settings) {
        // The file of a client authority may have new contents under the same name.
        let same = is.tls.client_auth == ClientAuth::Off
            && was.tls.client_auth == ClientAuth::Off
            && was.tls.min_version == is.tls.min_version;
        if same {
            self.config = before.config.clone();
        }
        self.quic.clone_from(&before.quic);
    }

    pub(crate) fn files(&self) -> &Files {
        &self.files
    }

    /// Configuration of TLS over TCP.
    pub(crate) fn config(&self) -> &Arc<ServerConfig> {
        &self.config
    }

    /// Binds HTTP/3 on a listener's port, if its address uses TLS and HTTP/3 is on.
    ///
    /// # Errors
    /// The UDP port cannot be bound.
    pub(crate) fn http3_listener(
        &self,
        listener: &Listener,
        inherited: &mut InheritedSockets,
    ) -> Option<Result<Listener, BindError>> {
        match (&self.quic, listener.local_addr()) {
            (Some(config), ListenAddr::Https(addr)) => {
                let bound = match inherited.take_udp(addr) {
                    Some(socket) => Listener::inherit_quic(addr, socket, config.clone()),
                    None => Listener::bind_quic(addr, config.clone()),
                };
                Some(bound.map(|quic| quic.configured_as(listener.configured())))
            }
            _ => None,
        }
    }
}
