//! Changes of a reload: compares the settings of a running server with newly loaded ones, and finds changes that need a
//! restart.

use crate::load::Loaded;
use crate::origin::{Origin, Origins};
use crate::row::{Row, Shown};
use crate::settings::{DEFAULT_POOL, PoolSettings, Settings};
use crate::settings_acme::AcmeSettings;
use crate::settings_proxy::ProxySettings;
use crate::settings_site::SiteSettings;
use crate::strict::all_rows;
use std::collections::BTreeSet;
use std::fmt;

/// Settings that need a restart while HTTP/3 is on: its endpoints keep the TLS settings that they were opened with.
const OF_HTTP3: &[&str] = &["tls.min_version", "tls.client_auth", "tls.client_ca"];

/// One change of a reload, for the operator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The subject: `pool shop`, `site www.example.org`, `address 127.0.0.1:8080`, or a setting's name.
    pub what: String,
    pub how: String,
    /// The change takes effect only after a restart.
    pub waits: bool,
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.what, self.how)?;
        if self.waits {
            f.write_str(" (needs a restart or `howdah upgrade`, which loses no request; until then it stays as it was)")
        } else {
            Ok(())
        }
    }
}

/// A setting whose value differs.
struct Differs {
    name: String,
    how: String,
}

/// Compares the running server's settings with newly loaded ones. Changes that need a restart are undone in `new`, so
/// that it can be applied as it is.
pub fn changes(old: &Settings, new: &mut Loaded) -> Vec<Change> {
    let mut changes = Vec::new();
    let settings = &new.settings;
    let whole = differing_sections(old, settings, &new.origins);
    let with_http3 = old.tls.http3 && old.listen.iter().any(|addr| matches!(addr, crate::ListenAddr::Https(_)));
    let waits = |name: &str| {
        needs_restart(name)
            || (name.starts_with("acme.") && name != "acme.names" && old.acme.is_used())
            || name.starts_with("telemetry.")
            || (with_http3 && OF_HTTP3.contains(&name))
    };
    let shown = whole.iter().filter(|differs| !matches!(&*differs.name, "listen" | "sites"));
    changes.extend(shown.map(|differs| Change {
        what: differs.name.clone(),
        how: differs.how.clone(),
        waits: waits(&differs.name),
    }));
    // Secrets look the same when shown, so their values are compared.
    for (name, is_other) in
        [("admin_token", old.admin_token != settings.admin_token), ("share", old.share != settings.share)]
    {
        if is_other && !changes.iter().any(|change: &Change| change.what == name) {
            changes.push(Change { what: name.to_owned(), how: "changed".to_owned(), waits: true });
        }
    }
    let said = |name: &str| Change { what: name.to_owned(), how: "changed".to_owned(), waits: false };
    if settings.sites.is_empty() || old.sites.is_empty() {
        changes.extend((old.rules != settings.rules).then(|| said("rules")));
    }
    let addresses = |settings: &Settings| settings.listen.iter().map(ToString::to_string).collect::<BTreeSet<_>>();
    let (before, after) = (addresses(old), addresses(settings));
    let address = |addr: &String, how: &str| Change { what: format!("address {addr}"), how: how.into(), waits: false };
    changes.extend(after.difference(&before).map(|addr| address(addr, "opened")));
    changes.extend(before.difference(&after).map(|addr| address(addr, "closed")));
    let differing: Vec<&str> = whole.iter().map(|differs| &*differs.name).collect();
    pools(old, settings, &mut changes);
    proxies(&old.proxies, &settings.proxies, &mut changes);
    sites(old, settings, &differing, &mut changes);
    let kept: Vec<String> = changes.iter().filter(|change| change.waits).map(|change| change.what.clone()).collect();
    keep(old, new, &kept);
    changes
}

/// `true` if the server process reads this setting only at its start.
fn needs_restart(name: &str) -> bool {
    all_rows().any(|row| row.restart && row.name() == name)
}

/// Changed settings of the server as a whole.
fn differing_sections(old: &Settings, new: &Settings, origins: &Origins) -> Vec<Differs> {
    let mut all = differing("", old.shown(), new.shown());
    all.extend(differing_parts(old.sections(), new.sections()));
    // Computed values follow from other settings, or from the machine's current state.
    let rows = [Settings::ROWS, crate::HttpSettings::ROWS, AcmeSettings::ROWS].into_iter().flatten();
    let computed: Vec<String> = rows.filter(|row| row.computed).map(Row::name).collect();
    all.retain(|Differs { name, .. }| {
        !computed.contains(name) || name == "root" || origins.of(name) != Origin::Default
    });
    all
}

/// The differences of sections, which both lists have in the same order.
fn differing_parts<const N: usize>(before: [(&str, Shown); N], after: [(&str, Shown); N]) -> Vec<Differs> {
    let pairs = before.into_iter().zip(after);
    pairs.flat_map(|((section, before), (_, after))| differing(section, before, after)).collect()
}

fn differing(section: &str, before: Shown, after: Shown) -> Vec<Differs> {
    let pairs = before.into_iter().zip(after).filter(|((_, before), (_, after))| before != after);
    let pairs = pairs.map(|((row, before), (_, after))| {
        let name = if section.is_empty() { row.key.to_owned() } else { format!("{section}.{}", row.key) };
        Differs { how: how(&before, &after), name }
    });
    pairs.collect()
}

/// Formats a change. Long values would hide it, and tables may contain secrets.
fn how(before: &str, after: &str) -> String {
    const MAX_VALUE_LEN: usize = 80;
    let is_table = |text: &str| text.starts_with('{');
    if is_table(before) || is_table(after) || before.len().max(after.len()) > MAX_VALUE_LEN {
        return "changed".to_owned();
    }
    format!("{before} -> {after}")
}

fn pools(old: &Settings, new: &Settings, changes: &mut Vec<Change>) {
    let mut put = |name: &str, how: String| changes.push(Change { what: format!("pool {name}"), how, waits: false });
    let of_pool = |before: &PoolSettings, after: &PoolSettings| {
        let mut all = differing("", before.shown(), after.shown());
        all.extend(differing("php", before.php.shown(), after.php.shown()));
        all.extend(differing("sandbox", before.sandbox.shown(), after.sandbox.shown()));
        all
    };
    for pool in &new.pools {
        let Some(before) = old.pool(&pool.name) else {
            put(&pool.name, "added".to_owned());
            continue;
        };
        let mut differ = of_pool(before, pool).into_iter().map(|differs| format!("{} {}", differs.name, differs.how));
        let mut text = differ.next().unwrap_or_default();
        differ.for_each(|more| text = format!("{text}, {more}"));
        // The pools may differ in values that are not shown.
        let is_same = before == pool;
        put(
            &pool.name,
            if !text.is_empty() {
                text
            } else if is_same {
                "new workers".into()
            } else {
                "changed".into()
            },
        );
    }
    for pool in old.pools.iter().filter(|pool| new.pool(&pool.name).is_none()) {
        debug_assert_ne!(pool.name, DEFAULT_POOL);
        put(&pool.name, "removed".to_owned());
    }
}

fn proxies(old: &[ProxySettings], new: &[ProxySettings], changes: &mut Vec<Change>) {
    let mut put = |name: &str, how: &str| {
        changes.push(Change { what: format!("proxy {name}"), how: how.to_owned(), waits: false });
    };
    for proxy in new {
        match old.iter().find(|before| before.name == proxy.name) {
            None => put(&proxy.name, "added"),
            Some(before) if before != proxy => put(&proxy.name, "changed"),
            Some(_) => {}
        }
    }
    old.iter()
        .filter(|before| !new.iter().any(|proxy| proxy.name == before.name))
        .for_each(|before| put(&before.name, "removed"));
}

/// Compares sites. `whole` are the changed top-level settings, which sites inherit.
fn sites(old: &Settings, new: &Settings, whole: &[&str], changes: &mut Vec<Change>) {
    let mut put = |name: &str, how: String| changes.push(Change { what: format!("site {name}"), how, waits: false });
    for site in &new.sites {
        let Some(before) = old.sites.iter().find(|before| before.name == site.name) else {
            put(&site.name, "added".to_owned());
            continue;
        };
        let differ: Vec<String> = of_site(before, site)
            .into_iter()
            .filter(|differs| !whole.contains(&&*differs.name))
            .map(|differs| format!("{} {}", differs.name, differs.how))
            .collect();
        if !differ.is_empty() {
            put(&site.name, differ.join(", "));
        }
    }
    for before in old.sites.iter().filter(|before| !new.sites.iter().any(|site| site.name == before.name)) {
        put(&before.name, "removed".to_owned());
    }
}

fn of_site(old: &SiteSettings, new: &SiteSettings) -> Vec<Differs> {
    let pairs = old.values().into_iter().zip(new.values()).filter(|(before, after)| before.1 != after.1);
    let mut all: Vec<Differs> =
        pairs.map(|(before, after)| Differs { name: before.0.to_owned(), how: how(&before.1, &after.1) }).collect();
    let mut said = |name: &str| all.push(Differs { name: name.to_owned(), how: "changed".to_owned() });
    if old.rules != new.rules {
        said("rules");
    }
    all.extend(differing_parts(old.sections(), new.sections()));
    // Computed from the machine's current state, or read only at the start.
    all.retain(|differs| {
        let name = &*differs.name;
        !needs_restart(name) && name != "http.max_connections"
    });
    all
}

/// Restores the values of settings in `waiting`, and computed values that were not set.
fn keep(old: &Settings, new: &mut Loaded, waiting: &[String]) {
    let Loaded { settings, origins, .. } = new;
    let stays = |row: &Row| {
        let name = row.name();
        waiting.contains(&name) || (row.restart && origins.of(&name) == Origin::Default)
    };
    settings.keep(old, &stays);
    settings.http.keep(&old.http, &stays);
    settings.log.keep(&old.log, &stays);
    settings.tls.keep(&old.tls, &stays);
    // A server that has begun to obtain certificates keeps its authority and directory.
    if old.acme.is_used() {
        let names = std::mem::take(&mut settings.acme.names);
        settings.acme = AcmeSettings { names, ..old.acme.clone() };
    }
    settings.telemetry.clone_from(&old.telemetry);
    for site in &mut settings.sites {
        (site.http.memory, site.http.spool) = (settings.http.memory, settings.http.spool);
        if origins.of(&format!("site.{}.log.format", site.name)) == Origin::Default {
            site.log.format = settings.log.format;
        }
    }
}

#[cfg(test)]
#[path = "changes_tests.rs"]
mod tests;
