//! Prints settings as a `howdah.toml` that says the same, with the origin of each value beside it.

use std::fmt::Write as _;

use crate::kind::Kind;
use crate::load::Loaded;
use crate::origin::Origins;
use crate::settings::{DEFAULT_POOL, RouteKeys};
use crate::table::Row;

impl Loaded {
    /// The final settings as a `howdah.toml`, each with its origin as a comment.
    #[must_use]
    pub fn show(&self) -> String {
        let settings = &self.settings;
        let mut page = Page { text: String::new(), origins: &self.origins };
        let (default, others) = match settings.pools.split_first() {
            Some((default, others)) => (Some(default), others),
            None => (None, &[][..]),
        };
        page.rows("", settings.shown());
        if let Some(default) = default {
            page.rows("", default.shown());
            page.section("php", default.php.shown());
            page.section("sandbox", default.sandbox.shown());
        }
        page.section("http", settings.http.shown());
        page.section("static", settings.static_files.shown());
        page.section("compression", settings.compression.shown());
        page.section("log", settings.log.shown());
        for pool in others {
            debug_assert_ne!(pool.name, DEFAULT_POOL);
            let rows = pool.shown().into_iter().chain(pool.php.shown()).collect();
            page.section(&format!("pool.{}", pool.name), rows);
            page.section(&format!("pool.{}.sandbox", pool.name), pool.sandbox.shown());
        }
        // Those that are an address and nothing else are written out in their routes.
        for proxy in settings.proxies.iter().filter(|proxy| !proxy.name.contains(':')) {
            page.section(&format!("proxy.{}", proxy.name), proxy.shown());
        }
        for (at, route) in settings.routes.iter().enumerate() {
            page.text.push_str("\n[[route]]\n");
            let keys = RouteKeys {
                pattern: Some(route.pattern.clone()),
                pool: route.proxy.is_none().then(|| route.pool.clone()),
                proxy: route.proxy.clone(),
                workers: route.workers,
                weight: route.weight,
            };
            page.rows(&format!("route[{at}]"), keys.shown());
        }
        page.text
    }
}

struct Page<'a> {
    text: String,
    origins: &'a Origins,
}

impl Page<'_> {
    fn section(&mut self, name: &str, rows: Vec<(&'static Row, String)>) {
        let _ = writeln!(self.text, "\n[{name}]");
        self.rows(name, rows);
    }

    fn rows(&mut self, section: &str, rows: Vec<(&'static Row, String)>) {
        for (row, value) in rows {
            let name = if section.is_empty() { row.key.to_owned() } else { format!("{section}.{}", row.key) };
            let origin = self.origin(row, &name, &value);
            self.line(row.key, &value, &origin);
        }
    }

    /// The origin of a value; of a table, the origin of each name in it.
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
