//! The settings of sites: requests for some hosts, with their root, pools and limits.

use std::path::PathBuf;

use crate::address::ListenAddr;
use crate::app_choice::AppChoice;
use crate::booted::Booted;
use crate::choice::RootLinks;
use crate::host::HostPattern;
use crate::origin::Origin;
use crate::row::Row;
use crate::rules::SiteRules;
use crate::settings_http::{CompressionSettings, HttpSettings, LogSettings, StaticSettings};
use crate::settings_mercure::MercureSettings;
use crate::settings_pusher::PusherSettings;
use crate::settings_tls::TlsSettings;
use crate::table::settings;

settings! {
    /// The keys of a `[[site]]` that the top level does not have, before they are checked.
    pub struct SiteKeys at "site" {
        /// Name in logs, metrics and commands; by default the first host.
        name: Option<String> = r#""""# example(r#""shop""#);
        /// Hosts of the site: names, `*.NAME` for everything below one, addresses, all without port; `"default"` for
        /// hosts that no site names. Required.
        ///
        /// Names win over `*`, and longer `*` over shorter ones. Case and a final dot are ignored.
        hosts: Vec<HostPattern> = "[]" example(r#"["shop.example", "*.shop.example"]"#);
        /// Pool that runs the site's scripts. A section `[site.pool]` instead makes a separate pool, named after the
        /// site.
        pool: Option<String> = r#""default""# example(r#""shop""#);
    }
    plus {}
}

/// Keys of the top level that a site may say for itself.
pub(crate) const OWN_KEYS: &[&str] =
    &["root", "root_links", "index", "front_controller", "server_name", "app", "htaccess"];

/// Sections that a site may have, with their rows and with the keys that it may say; all others are the whole server's.
pub(crate) const SITE_SECTIONS: &[(&str, &[Row], Keys)] = &[
    ("http", HttpSettings::ROWS, Keys::Only(&["max_body", "server_header", "request_id_header"])),
    ("static", StaticSettings::ROWS, Keys::But(&[])),
    ("compression", CompressionSettings::ROWS, Keys::But(&[])),
    ("log", LogSettings::ROWS, Keys::Only(&["access", "format"])),
    ("tls", TlsSettings::ROWS, Keys::Only(&["certificates", "auto"])),
    ("mercure", MercureSettings::ROWS, Keys::But(&[])),
    ("pusher", PusherSettings::ROWS, Keys::But(&[])),
];

/// Some keys of a section.
pub(crate) enum Keys {
    Only(&'static [&'static str]),
    But(&'static [&'static str]),
}

impl Keys {
    pub(crate) fn has(&self, key: &str) -> bool {
        match self {
            Self::Only(keys) => keys.contains(&key),
            Self::But(keys) => !keys.contains(&key),
        }
    }
}

/// A site: what it says itself over what the top level says.
#[derive(Debug, Clone, PartialEq)]
pub struct SiteSettings {
    /// Its name, which no other has.
    pub name: String,
    /// The hosts it is for, each in one site only.
    pub hosts: Vec<HostPattern>,
    /// FastCGI addresses that are for this site alone, whatever host is requested. Set by `howdah-fpm`.
    pub listen: Vec<ListenAddr>,
    /// The name of the pool that runs its scripts where no route says otherwise.
    pub pool: String,
    /// The application whose rules it has.
    pub app: AppChoice,
    /// The recipe that boots that application once for many requests.
    pub booted: Option<Booted>,
    /// `SERVER_NAME`, and the host in redirects; `None` for the host that was asked for.
    pub server_name: Option<String>,
    /// The directory that is served.
    pub root: PathBuf,
    /// When symbolic links in that path are resolved. With `reload` they are already.
    pub root_links: RootLinks,
    /// File names tried in turn where the path is a directory.
    pub index: Vec<String>,
    /// The script under the root that runs where no file matches the path.
    pub front_controller: Option<String>,
    /// Follow `.htaccess` files below the root.
    pub htaccess: bool,
    /// Rules: its own, or those of the top level if it has none.
    pub rules: SiteRules,
    /// `[http]` with what `[site.http]` says over it.
    pub http: HttpSettings,
    /// `[static]` with what `[site.static]` says over it.
    pub static_files: StaticSettings,
    /// `[compression]` with what `[site.compression]` says over it.
    pub compression: CompressionSettings,
    /// `[log]` with what `[site.log]` says over it.
    pub log: LogSettings,
    /// `[tls]` with what `[site.tls]` says over it; certificates and `auto` are its own alone.
    pub tls: TlsSettings,
    /// `[mercure]` with what `[site.mercure]` says over it.
    pub mercure: MercureSettings,
    /// `[pusher]` with what `[site.pusher]` says over it.
    pub pusher: PusherSettings,
    /// Where it is written; the default for the top level's own.
    pub origin: Origin,
}

impl SiteSettings {
    /// The hosts that the server can get a certificate for: neither those that a `*` stands for nor names without a domain.
    pub(crate) fn certifiable_hosts(&self) -> impl Iterator<Item = &String> {
        self.hosts.iter().filter_map(|host| match host {
            HostPattern::Exact(name) if name.contains(['.', ':']) || name == "localhost" => Some(name),
            HostPattern::Exact(_) | HostPattern::Below(_) | HostPattern::Any => None,
        })
    }

    /// `true` if some of its scripts run in this pool.
    #[must_use]
    pub fn uses(&self, pool: &str) -> bool {
        self.pool == pool || self.rules.pools().any(|named| named == pool)
    }
}
