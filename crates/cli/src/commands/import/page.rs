//! The `howdah.toml` under construction: top-level keys, sites, and the report. Used by all importers.

use super::directive::Directive;
use super::report::{Report, refuses};
use super::site::{Keys, Rule, Site, commas, section_of};
use std::fmt::Write as _;

/// A complete `howdah.toml`.
#[derive(Debug, Default, Clone)]
pub(super) struct Page {
    pub(super) listen: Vec<String>,
    /// Keys at the top level.
    pub(super) keys: Keys,
    /// `[NAME]` with its keys.
    sections: Vec<(String, Keys)>,
    /// Top-level rule, if there are no sites.
    pub(super) rule: Rule,
    /// Further rules of the top level.
    pub(super) rules: Vec<Rule>,
    pub(super) sites: Vec<Site>,
    pub(super) report: Report,
}

impl Page {
    pub(super) fn section(&mut self, name: &str) -> &mut Keys {
        section_of(&mut self.sections, name)
    }

    /// For a block that refuses some clients on a condition without a counterpart: refuses all, since ignoring it would
    /// open what it protects. Returns `false`, and writes nothing, if the block refuses no client.
    pub(super) fn close(&mut self, block: &Directive, why: &str, base: &Rule, site: &mut Site) -> bool {
        let closes = refuses(block);
        if closes {
            site.rules.push(base.closed(block));
            self.report.closed(block, why);
        }
        closes
    }

    /// Text of the file. Its first line names the original configuration format.
    pub(super) fn finish(mut self, origin: &str) -> String {
        let mut text = format!("# From {origin}. `howdah check` shows what it means.\n{}\n", self.report.warning());
        for addr in self.sites.iter().flat_map(|site| &site.listen) {
            if !self.listen.contains(addr) {
                self.listen.push(addr.clone());
            }
        }
        // `[::]:80` accepts IPv4 connections too.
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
        std::iter::once(&self.rule).chain(&self.rules).for_each(|rule| text.push_str(&rule.text("rule")));
        sites.iter().for_each(|site| text.push_str(&site.text()));
        text + &self.report.comments()
    }

    /// Names each site's pool after its first host. If a site has no host, its pool becomes a top-level pool.
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

/// For a site that only redirects or forwards to other servers: its root must exist, but none of its files is sent.
fn without_files(site: &mut Site) {
    site.keys.write("root", "\"/usr/share\"   # the last rule keeps its files private");
    let mut rule = Rule::default();
    rule.keys.write("status", "404");
    site.rules.push(rule);
}

/// Merges sites with the same hosts: other servers have one virtual host per port, this server one site for all.
fn merged(sites: Vec<Site>) -> Vec<Site> {
    let mut all: Vec<Site> = Vec::new();
    for mut site in sites {
        let shares = |other: &&mut Site| {
            other.hosts.iter().any(|host| site.hosts.contains(host))
                || (other.hosts.is_empty() && site.hosts.is_empty())
        };
        match all.iter_mut().find(shares) {
            Some(other) => {
                // Keep the site with TLS.
                if is_tls(&site) && !is_tls(other) {
                    std::mem::swap(&mut site, other);
                }
                take(other, site);
            }
            None => all.push(site),
        }
    }
    all
}

fn is_tls(site: &Site) -> bool {
    site.listen.iter().any(|addr| addr.starts_with("https://"))
}

/// Takes over hosts, addresses, and redirects. The redirects then apply only to requests without TLS.
fn take(site: &mut Site, other: Site) {
    let only_plain = is_tls(site) && !is_tls(&other);
    site.is_default |= other.is_default;
    site.listen.extend(other.listen);
    let hosts = other.hosts.into_iter().filter(|host| !site.hosts.contains(host)).collect::<Vec<_>>();
    site.hosts.extend(hosts);
    let mut redirects: Vec<_> = other.rules.into_iter().filter(|rule| rule.keys.has("redirect")).collect();
    for rule in &mut redirects {
        if only_plain {
            rule.when.write("https", "false");
        }
    }
    site.rules.splice(0..0, redirects);
}
