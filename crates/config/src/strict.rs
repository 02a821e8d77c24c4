//! Rejects unknown keys, and suggests the key that was probably meant.

use std::sync::Arc;

use crate::file::{File, OWN_POOL};
use crate::load_sites::sites_of;
use crate::origin::{ConfigError, Origin, bracketed};
use crate::other_servers::counterpart;
use crate::row::Row;
use crate::settings::{DEFAULT_POOL, PhpSettings, PoolSettings, Settings};
use crate::settings_acme::AcmeSettings;
use crate::settings_deploy::DeploySettings;
use crate::settings_http::{CompressionSettings, HttpSettings, LogSettings, StaticSettings};
use crate::settings_mercure::MercureSettings;
use crate::settings_proxy::ProxySettings;
use crate::settings_pusher::PusherSettings;
use crate::settings_sandbox::SandboxSettings;
use crate::settings_site::{OWN_KEYS, SITE_SECTIONS, SiteKeys};
use crate::settings_telemetry::TelemetrySettings;
use crate::settings_tls::TlsSettings;
use crate::source::{entries, find};
use howdah_rules::keys::nearest;
use howdah_rules::tree::{Entry, Tree};

/// The rows of every section that is a plain table.
pub(crate) const SECTIONS: &[(&str, &[Row])] = &[
    ("php", PhpSettings::ROWS),
    ("sandbox", SandboxSettings::ROWS),
    ("http", HttpSettings::ROWS),
    ("tls", TlsSettings::ROWS),
    ("static", StaticSettings::ROWS),
    ("compression", CompressionSettings::ROWS),
    ("acme", AcmeSettings::ROWS),
    ("mercure", MercureSettings::ROWS),
    ("pusher", PusherSettings::ROWS),
    ("deploy", DeploySettings::ROWS),
    ("log", LogSettings::ROWS),
    ("telemetry", TelemetrySettings::ROWS),
];

/// Every setting that is not part of a list (`[[site]]`, `[proxy.NAME]`).
pub(crate) fn all_rows() -> impl Iterator<Item = &'static Row> {
    [Settings::ROWS, PoolSettings::ROWS].into_iter().chain(SECTIONS.iter().map(|(_, rows)| *rows)).flatten()
}

fn keys(lists: &[&'static [Row]]) -> Vec<&'static str> {
    lists.iter().flat_map(|rows| rows.iter().map(|row| row.key)).collect()
}

/// The errors for unknown keys of `howdah.toml`.
pub(crate) fn unknown_keys(file: &File) -> Vec<ConfigError> {
    let mut found = Finder { file, errors: Vec::new() };
    let mut top = keys(&[Settings::ROWS, PoolSettings::ROWS]);
    top.extend(SECTIONS.iter().map(|(name, _)| *name));
    top.extend(["pool", "proxy", "rule", "site"]);
    found.keys("", entries(&file.root), &top);
    for entry in entries(&file.root) {
        match entry.key.as_str() {
            "pool" => found.pools(entry),
            "proxy" => found.proxies(entry),
            "site" => found.sites(entry),
            key => {
                if let Some((name, rows)) = SECTIONS.iter().find(|(name, _)| *name == key) {
                    found.section(name, entry, &keys(&[rows]));
                }
            }
        }
    }
    found.errors
}

pub(crate) fn unknown_keys_of_sites(file: &File) -> Vec<ConfigError> {
    let mut found = Finder { file, errors: Vec::new() };
    let top = entries(&file.root);
    match find(top, "site") {
        Some(sites) => {
            found.sites(sites);
            if let Some(pools) = find(top, "pool") {
                found.pools(pools);
            }
            for entry in top.iter().filter(|entry| !matches!(entry.key.as_str(), "site" | "pool")) {
                let message = "a file with [[site]] sections may contain only these and [pool.NAME]";
                found.error(entry.line, entry.key.clone(), message.to_owned());
            }
        }
        None => found.site(&sites_of(file, false)[0].name(), top),
    }
    found.errors
}

struct Finder<'a> {
    file: &'a File,
    errors: Vec<ConfigError>,
}

impl Finder<'_> {
    fn error(&mut self, line: usize, setting: String, message: String) {
        let origin = Some(Origin::File(Arc::clone(&self.file.path), line));
        self.errors.push(ConfigError { origin, setting, message });
    }

    fn keys(&mut self, section: &str, entries: &[Entry], known: &[&'static str]) {
        for entry in entries.iter().filter(|entry| !known.contains(&entry.key.as_str())) {
            let name = if section.is_empty() { entry.key.clone() } else { format!("{section}.{}", entry.key) };
            let message = format!("unknown key{}", self.advice(section, &entry.key, known));
            self.error(entry.line, bracketed(&name), message);
        }
    }

    /// A suggestion: the key in another section, or a similar key in this one.
    fn advice(&self, section: &str, key: &str, known: &[&'static str]) -> String {
        let top = keys(&[Settings::ROWS, PoolSettings::ROWS]);
        if let Some(own) = section.strip_prefix("site.") {
            // A site's name may contain dots, so its sections are recognized by their ends.
            let of_server = SITE_SECTIONS.iter().find(|(name, ..)| own.ends_with(&format!(".{name}")));
            if let Some((name, ..)) = of_server.filter(|(_, rows, _)| rows.iter().any(|row| row.key == key)) {
                return format!("; it applies to all sites and belongs to [{name}] of howdah.toml");
            }
            if key == "proxy" && of_server.is_none() {
                return "; [proxy.NAME] applies to all sites and belongs to howdah.toml".to_owned();
            }
            if keys(&[Settings::ROWS]).contains(&key) && !known.contains(&key) {
                return "; it applies to all sites and belongs to the top level of howdah.toml".to_owned();
            }
            if keys(&[PoolSettings::ROWS, PhpSettings::ROWS]).contains(&key) && of_server.is_none() {
                return "; it belongs to a pool: [site.pool], which is the site's own, or [pool.NAME]".to_owned();
            }
        } else if !section.is_empty() && top.contains(&key) {
            return "; it belongs to the top level, before the first section".to_owned();
        }
        let home = SECTIONS.iter().find(|(name, rows)| *name != section && rows.iter().any(|row| row.key == key));
        if let Some((name, _)) = home {
            return format!("; it belongs to [{name}]");
        }
        if let Some(own) = counterpart(key) {
            return format!("; here it is {own}");
        }
        nearest(key, known.iter().copied()).map_or_else(String::new, |near| format!("; did you mean {near}?"))
    }

    fn section(&mut self, name: &str, entry: &Entry, known: &[&'static str]) {
        match &entry.node.tree {
            Tree::Table(entries) => self.keys(name, entries, known),
            _ => {
                let message = format!("expected a section [{name}], found {}", entry.node.describe());
                self.error(entry.line, name.to_owned(), message);
            }
        }
    }

    fn pools(&mut self, entry: &Entry) {
        let Tree::Table(pools) = &entry.node.tree else {
            let found = entry.node.describe();
            return self.error(entry.line, "pool".to_owned(), format!("expected sections [pool.NAME], found {found}"));
        };
        let known = pool_keys();
        for pool in pools {
            let name = format!("pool.{}", pool.key);
            let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
            if pool.key == DEFAULT_POOL {
                let message = "the default pool is set at the top level and in [php], not in a separate section";
                self.error(pool.line, format!("[{name}]"), message.to_owned());
            } else if !matches!(pool.node.tree, Tree::Table(_)) {
                let hint =
                    if known.contains(&pool.key.as_str()) { "; write a pool's settings into [pool.NAME]" } else { "" };
                let message = format!("expected a section [{name}], found {}{hint}", pool.node.describe());
                self.error(pool.line, bracketed(&name), message);
                continue;
            } else if pool.key.is_empty() || !pool.key.bytes().all(fits) {
                let message = "a pool's name must consist of letters, digits, -, _ and dots";
                self.error(pool.line, format!("[{name}]"), message.to_owned());
            }
            self.pool(&name, pool, &known);
        }
    }

    fn pool(&mut self, name: &str, pool: &Entry, known: &[&'static str]) {
        self.section(name, pool, known);
        if let Some(sandbox) = find(entries(&pool.node), "sandbox") {
            self.section(&format!("{name}.sandbox"), sandbox, &keys(&[SandboxSettings::ROWS]));
        }
    }

    fn sites(&mut self, entry: &Entry) {
        if !matches!(entry.node.tree, Tree::List(_)) {
            let message = "expected sections [[site]], each with hosts and root (two brackets)";
            return self.error(entry.line, "site".to_owned(), message.to_owned());
        }
        let file = self.file;
        for site in sites_of(file, false) {
            self.site(&site.name(), site.entries);
        }
    }

    fn site(&mut self, name: &str, entries: &[Entry]) {
        let section = format!("site.{name}");
        let mut known = keys(&[SiteKeys::ROWS]);
        known.extend(OWN_KEYS);
        known.extend(SITE_SECTIONS.iter().map(|(name, ..)| *name));
        known.extend(["rule", OWN_POOL]);
        self.keys(&section, entries, &known);
        for entry in entries {
            match entry.key.as_str() {
                OWN_POOL => self.pool(&format!("{section}.pool"), entry, &pool_keys()),
                key => {
                    if let Some((name, rows, allowed)) = SITE_SECTIONS.iter().find(|(name, ..)| *name == key) {
                        let known: Vec<_> = keys(&[rows]).into_iter().filter(|key| allowed.has(key)).collect();
                        self.section(&format!("{section}.{name}"), entry, &known);
                    }
                }
            }
        }
    }

    fn proxies(&mut self, entry: &Entry) {
        let Tree::Table(proxies) = &entry.node.tree else {
            let found = entry.node.describe();
            let message = format!("expected sections [proxy.NAME], found {found}");
            return self.error(entry.line, "proxy".to_owned(), message);
        };
        let known = keys(&[ProxySettings::ROWS]);
        for proxy in proxies {
            let name = format!("proxy.{}", proxy.key);
            let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
            if proxy.key.is_empty() || !proxy.key.bytes().all(fits) {
                let message = "a proxy's name must consist of letters, digits, - and _";
                self.error(proxy.line, format!("[{name}]"), message.to_owned());
            }
            self.section(&name, proxy, &known);
        }
    }
}

fn pool_keys() -> Vec<&'static str> {
    let mut known = keys(&[PoolSettings::ROWS, PhpSettings::ROWS]);
    known.push("sandbox");
    known
}
