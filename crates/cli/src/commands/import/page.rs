//! The `howdah.toml` in the making: the server's keys, its sites, and the report. All importers write with it.

use super::merge::merged;
use super::report::Report;
use super::site::{Keys, Rule, Site, commas, section_of};
use std::fmt::Write as _;

/// A whole `howdah.toml`.
#[derive(Debug, Default, Clone)]
pub(super) struct Page {
    pub(super) listen: Vec<String>,
    /// Keys at the top level.
    pub(super) keys: Keys,
    /// `[NAME]` with its keys.
    sections: Vec<(String, Keys)>,
    /// A rule of the server, where there are no sites.
    pub(super) rule: Rule,
    pub(super) sites: Vec<Site>,
    pub(super) report: Report,
}

impl Page {
    pub(super) fn section(&mut self, name: &str) -> &mut Keys {
        section_of(&mut self.sections, name)
    }

    /// The text of the file, which begins with the kind of configuration that it comes from.
    pub(super) fn finish(mut self, origin: &str) -> String {
        let mut text = format!("# From {origin}. `howdah check` shows what it means.\n\n");
        for addr in self.sites.iter().flat_map(|site| &site.listen) {
            if !self.listen.contains(addr) {
                self.listen.push(addr.clone());
            }
        }
        // `[::]:80` takes IPv4 connections, too.
        let all = self.listen.clone();
        self.listen.retain(|addr| {
            let rest = addr.strip_prefix("https://").unwrap_or(addr);
            let wider = format!("{}[::]{rest}", &addr[..addr.len() - rest.len()]);
            !rest.starts_with(':') || !all.contains(&wider)
        });
        if !self.listen.is_empty() {
            let _ = writeln!(text, "listen = [{}]", commas(&self.listen));
        }
        text.push_str(&self.keys.lines());
        let mut sites = merged(std::mem::take(&mut self.sites));
        sites.iter_mut().filter(|site| !site.keys.has("root")).for_each(without_files);
        self.name_pools(&mut sites);
        for (name, keys) in self.sections.iter().filter(|(_, keys)| !keys.is_empty()) {
            let _ = write!(text, "\n[{name}]\n{}", keys.lines());
        }
        text.push_str(&self.rule.text("rule"));
        sites.iter().for_each(|site| text.push_str(&site.text()));
        text + &self.report.comments()
    }

    /// A site's pool has the name of its first host. Without one it becomes a pool of the server.
    fn name_pools(&mut self, sites: &mut [Site]) {
        for (at, site) in sites.iter_mut().enumerate().filter(|(_, site)| site.hosts.is_empty()) {
            let Some(place) = site.sections.iter().position(|(name, _)| name == "pool") else { continue };
            let (name, (_, keys)) = (format!("site{at}"), site.sections.remove(place));
            self.sections.push((format!("pool.{name}"), keys));
            let mut rule = Rule::default();
            rule.keys.set("pool", &name);
            site.rules.insert(0, rule);
        }
    }
}

/// A site that only redirects or has other servers: its root must exist, and nothing of it is sent.
fn without_files(site: &mut Site) {
    site.keys.write("root", "\"/usr/share\"   # the last rule keeps its files private");
    let mut rule = Rule::default();
    rule.keys.write("status", "404");
    site.rules.push(rule);
}
