//! The settings of sites: requests for some hosts, with their root, pools and limits.

use std::path::PathBuf;

use crate::address::ListenAddr;
use crate::app_choice::AppChoice;
use crate::choice::RootLinks;
use crate::host::HostPattern;
use crate::origin::Origin;
use crate::recipe_pool::RecipePool;
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

/// Keys of the top level that a site may override.
pub(crate) const OWN_KEYS: &[&str] =
    &["root", "root_links", "index", "front_controller", "server_name", "app", "htaccess"];

/// Sections that a site may have, with their rows and the keys that it may set; all other sections apply to the whole
/// server.
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

/// A site: its own settings, with those of the top level as defaults.
#[derive(Debug, Clone, PartialEq)]
pub struct SiteSettings {
    /// The unique name of the site.
    pub name: String,
    /// The site's hosts; each host belongs to one site only.
    pub hosts: Vec<HostPattern>,
    /// FastCGI addresses only for this site, whatever host is requested. Set by `howdah-fpm`.
    pub listen: Vec<ListenAddr>,
    /// Name of the pool that runs the site's scripts unless a route selects another one.
    pub pool: String,
    /// The application whose rules apply.
    pub app: AppChoice,
    /// The recipe that boots that application once for many requests.
    pub booted: Option<RecipePool>,
    /// `SERVER_NAME`, and the host in redirects; `None` for the requested host.
    pub server_name: Option<String>,
    /// The document root.
    pub root: PathBuf,
    /// When symbolic links in `root` are resolved. With `reload` they are resolved already.
    pub root_links: RootLinks,
    /// File names that are tried in turn if the path is a directory.
    pub index: Vec<String>,
    /// Script under the root that runs if no file matches the path.
    pub front_controller: Option<String>,
    /// Follow `.htaccess` files below the root.
    pub htaccess: bool,
    /// Rules: its own, or those of the top level if it has none.
    pub rules: SiteRules,
    /// `[http]`, overridden by `[site.http]`.
    pub http: HttpSettings,
    /// `[static]`, overridden by `[site.static]`.
    pub static_files: StaticSettings,
    /// `[compression]`, overridden by `[site.compression]`.
    pub compression: CompressionSettings,
    /// `[log]`, overridden by `[site.log]`.
    pub log: LogSettings,
    /// `[tls]`, overridden by `[site.tls]`; certificates are not inherited.
    pub tls: TlsSettings,
    /// `[mercure]`, overridden by `[site.mercure]`.
    pub mercure: MercureSettings,
    /// `[pusher]`, overridden by `[site.pusher]`.
    pub pusher: PusherSettings,
    /// Origin of the site; the default for the top level.
    pub origin: Origin,
}

impl SiteSettings {
    /// The hosts for which the server can obtain or create a certificate: neither `*` patterns nor names without a dot,
    /// except `localhost`.
    pub(crate) fn certifiable_hosts(&self) -> impl Iterator<Item = &String> {
        self.hosts.iter().filter_map(|host| match host {
            HostPattern::Exact(name) if name.contains(['.', ':']) || name == "localhost" => Some(name),
            HostPattern::Exact(_) | HostPattern::Below(_) | HostPattern::Any => None,
        })
    }

    /// `true` if some of the site's scripts run in this pool.
    pub fn uses(&self, pool: &str) -> bool {
        self.pool == pool || self.rules.pools().any(|named| named == pool)
    }
}
