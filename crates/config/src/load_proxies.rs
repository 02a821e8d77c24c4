//! Reads upstream servers: `[proxy.NAME]`, and addresses used in rules.

use crate::settings_proxy::ProxySettings;
use crate::source::{Scope, Section, Source};
use howdah_rules::tree::Tree;

/// Reads the sections, which are allowed only in `howdah.toml`.
pub(crate) fn read(source: &mut Source<'_>) -> Vec<ProxySettings> {
    let Some(file) = source.file else { return Vec::new() };
    let mut proxies = Vec::new();
    for entry in source.section("proxy") {
        if let Tree::Table(own) = &entry.node.tree {
            let section = Section { file, name: format!("proxy.{}", entry.key), entries: own };
            let read = ProxySettings::read(source, Scope::Alone(&section));
            proxies.push(ProxySettings { name: entry.key.clone(), ..read });
        }
    }
    proxies
}

/// The name of a rule's proxy. An address instead of a name defines a proxy, which all rules with that address share.
pub(crate) fn named(text: String, proxies: &mut Vec<ProxySettings>) -> String {
    let Ok(address) = text.parse() else { return text };
    let proxy = ProxySettings::to(address);
    let name = proxy.name.clone();
    if proxies.iter().all(|known| known.name != name) {
        proxies.push(proxy);
    }
    name
}
