//! Prints settings as an equivalent `howdah.toml`, with the origin of each value.

use std::fmt::Write as _;
use std::path::PathBuf;

use crate::kind::Kind;
use crate::load::Loaded;
use crate::origin::{Origin, Origins};
use crate::row::{Row, Shown};
use crate::rules::SiteRules;
use crate::settings::{DEFAULT_POOL, PoolSettings, Settings};
use crate::settings_site::SiteSettings;
use crate::value::Value;
use howdah_rules::tree::quoted;

impl Loaded {
    /// The final settings as a `howdah.toml`, each with its origin as a comment.
    pub fn show(&self) -> String {
        let settings = &self.settings;
        let mut page = Page { text: String::new(), origins: &self.origins, top_rules: &settings.rules };
        let (booted, mut pools): (Vec<PoolSettings>, Vec<PoolSettings>) =
            settings.pools.iter().cloned().partition(|pool| pool.recipe.is_some());
        for pool in &mut pools {
            // Prints the pool as it was before `recipe` split it into a booted pool and a fallback.
            if let Some(booted) = booted.iter().find(|booted| booted.compare_with.as_ref() == Some(&pool.name)) {
                *pool = PoolSettings { script: None, name: pool.name.clone(), ..booted.clone() };
            }
        }
        let (default, others) = match pools.split_first() {
            Some((default, others)) => (Some(default), others),
            None => (None, &[][..]),
        };
        // The sites of these files are printed below.
        let files = !settings.site_files.is_empty();
        page.rows("", settings.shown().into_iter().filter(|(row, _)| !(files && row.key == "sites")).collect());
        if files {
            page.line("sites", "[]", &format!("read: {}", paths(&settings.site_files)));
        }
        if let Some(default) = default {
            page.rows("", default.shown());
            page.section("php", default.php.shown());
            page.section("sandbox", default.sandbox.shown());
        }
        for (name, rows) in settings.sections() {
            page.section(name, rows);
        }
        for pool in others {
            debug_assert_ne!(pool.name, DEFAULT_POOL);
            let rows = pool.shown().into_iter().chain(pool.php.shown()).collect();
            let header = format!("pool.{}", key(&pool.name));
            page.section_of(&header, &format!("pool.{}", pool.name), rows);
            page.section_of(&format!("{header}.sandbox"), &format!("pool.{}.sandbox", pool.name), pool.sandbox.shown());
        }
        // Proxies that are only an address are printed in their rules.
        for proxy in settings.proxies.iter().filter(|proxy| !proxy.name.contains(':')) {
            page.section(&format!("proxy.{}", proxy.name), proxy.shown());
        }
        page.rules("rule", &settings.rules);
        for site in &settings.sites {
            page.site(site);
        }
        page.text
    }
}

impl Settings {
    /// The sections of the server as a whole.
    pub(crate) fn sections(&self) -> [(&'static str, Shown); 10] {
        [
            ("http", self.http.shown()),
            ("tls", self.tls.shown()),
            ("static", self.static_files.shown()),
            ("compression", self.compression.shown()),
            ("acme", self.acme.shown()),
            ("mercure", self.mercure.shown()),
            ("pusher", self.pusher.shown()),
            ("deploy", self.deploy.shown()),
            ("log", self.log.shown()),
            ("telemetry", self.telemetry.shown()),
        ]
    }
}

impl SiteSettings {
    /// The site's keys outside of sections, with their values as they would be written.
    pub(crate) fn values(&self) -> [(&'static str, String); 9] {
        [
            ("hosts", self.hosts.show()),
            ("root", self.root.show()),
            ("root_links", self.root_links.show()),
            ("index", self.index.show()),
            ("front_controller", self.front_controller.show()),
            ("app", self.app.show()),
            ("server_name", self.server_name.show()),
            ("htaccess", self.htaccess.show()),
            ("pool", self.pool.show()),
        ]
    }

    pub(crate) fn sections(&self) -> [(&'static str, Shown); 7] {
        [
            ("http", self.http.shown()),
            ("static", self.static_files.shown()),
            ("compression", self.compression.shown()),
            ("log", self.log.shown()),
            ("tls", self.tls.shown()),
            ("mercure", self.mercure.shown()),
            ("pusher", self.pusher.shown()),
        ]
    }
}

fn paths(paths: &[PathBuf]) -> String {
    paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
}

/// Quotes a name for a section header, if necessary.
fn key(name: &str) -> String {
    if name.contains('.') { quoted(name) } else { name.to_owned() }
}

struct Page<'a> {
    text: String,
    origins: &'a Origins,
    /// The rules of the top level, which sites without rules share.
    top_rules: &'a SiteRules,
}

impl Page<'_> {
    fn section(&mut self, name: &str, rows: Shown) {
        let _ = writeln!(self.text, "\n[{name}]");
        self.rows(name, rows);
    }

    /// Prints a section whose header differs from the prefix of its settings' names.
    fn section_of(&mut self, header: &str, name: &str, rows: Shown) {
        let _ = writeln!(self.text, "\n[{header}]");
        self.rows(name, rows);
    }

    /// Prints rules as they were written, followed by descriptions of all rules, including the application's.
    fn rules(&mut self, header: &str, rules: &SiteRules) {
        for rule in &rules.written {
            let _ = write!(self.text, "\n[[{header}]]\n{rule}");
        }
        if !rules.is_empty() {
            let _ = writeln!(self.text, "\n# The rules in order, with their effects:");
        }
        for rule in rules.rules() {
            let mut actions: Vec<String> = rule.describe_actions();
            if rule.last {
                actions.push("no further rule".to_owned());
            }
            let _ = writeln!(self.text, "# {}: {}: {}", rule.name, rule.describe_conditions(), actions.join("; "));
        }
    }

    /// Prints a site: its identity, and the sections that it sets itself.
    fn site(&mut self, site: &SiteSettings) {
        let _ = writeln!(self.text, "\n[[site]]");
        let section = format!("site.{}", site.name);
        let origin = |key: &str| {
            let own = self.origins.of(&format!("{section}.{key}"));
            if own == Origin::Default { self.origins.of(key) } else { own }.to_string()
        };
        self.line("name", &Some(&site.name).cloned().show(), &site.origin.to_string());
        for (key, value) in site.values() {
            let origin = if key == "pool" { site.origin.to_string() } else { origin(key) };
            self.line(key, &value, &origin);
        }
        for (name, rows) in site.sections() {
            let section = format!("{section}.{name}");
            let is_own = |row: &Row| self.origins.of(&format!("{section}.{}", row.key)) != Origin::Default;
            let own: Vec<_> = rows.into_iter().filter(|(row, _)| is_own(row)).collect();
            if !own.is_empty() {
                self.section_of(&format!("site.{name}"), &section, own);
            }
        }
        if site.rules != *self.top_rules {
            self.rules("site.rule", &site.rules);
        }
    }

    fn rows(&mut self, section: &str, rows: Shown) {
        for (row, value) in rows {
            let name = if section.is_empty() { row.key.to_owned() } else { format!("{section}.{}", row.key) };
            let origin = self.origin(row, &name, &value);
            self.line(row.key, &value, &origin);
        }
    }

    /// The origin of a value; for a table, the origin of each key.
    fn origin(&self, row: &Row, name: &str, value: &str) -> String {
        let whole = self.origins.of(name).to_string();
        if row.kind != Kind::Map || value == "{}" {
            return whole;
        }
        let parts = self.origins.under(&format!("{name}."));
        parts.iter().map(|(part, origin)| format!("{part}: {origin}")).collect::<Vec<_>>().join(", ")
    }

    fn line(&mut self, key: &str, value: &str, origin: &str) {
        let setting = format!("{key} = {value}");
        let _ = writeln!(self.text, "{setting:<48} # {origin}");
    }
}
