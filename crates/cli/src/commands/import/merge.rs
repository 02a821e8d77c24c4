//! Merges sites with the same hosts: other servers have one virtual host per port, this server one site for all.

use super::site::Site;

pub(super) fn merged(sites: Vec<Site>) -> Vec<Site> {
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
