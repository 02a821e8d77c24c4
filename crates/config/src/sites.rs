//! The sites of the settings: the top level as a site, all sites, and the site that a pool belongs to.

use std::collections::BTreeSet;
use std::path::Path;

use crate::address::ListenAddr;
use crate::host::HostPattern;
use crate::origin::Origin;
use crate::recipe_pool::RecipePool;
use crate::row::Row;
use crate::settings::{DEFAULT_POOL, PoolSettings, Settings};
use crate::settings_site::SiteSettings;
use howdah_rules::Action;

/// The row of a top-level key that sites may set too.
pub(crate) fn own_row(key: &str) -> Option<&'static Row> {
    Settings::ROWS.iter().find(|row| row.key == key)
}

/// The site name of the top level if there is no `[[site]]`.
pub const ONLY_SITE: &str = "default";

impl Settings {
    /// The top level as a site for every host.
    pub fn top_level_site(&self) -> SiteSettings {
        SiteSettings {
            name: ONLY_SITE.to_owned(),
            hosts: vec![HostPattern::Any],
            listen: Vec::new(),
            pool: DEFAULT_POOL.to_owned(),
            app: self.app.clone(),
            booted: self.booted.clone(),
            server_name: self.server_name.clone(),
            root: self.root.clone(),
            root_links: self.root_links,
            index: self.index.clone(),
            front_controller: self.front_controller.clone(),
            htaccess: self.htaccess,
            rules: self.rules.clone(),
            http: self.http.clone(),
            static_files: self.static_files.clone(),
            compression: self.compression.clone(),
            log: self.log.clone(),
            tls: self.tls.clone(),
            mercure: self.mercure.clone(),
            pusher: self.pusher.clone(),
            origin: Origin::Default,
        }
    }

    /// `true` if only web servers connect over FastCGI; they serve static files themselves.
    pub fn only_web_servers(&self) -> bool {
        !self.listen.is_empty() && self.listen.iter().all(ListenAddr::is_fastcgi)
    }

    /// `true` if a rule allows requests to upgrade the connection.
    pub fn may_upgrade(&self) -> bool {
        let has_websocket = |site: &SiteSettings| {
            let mut actions = site.rules.rules().iter().flat_map(|rule| &rule.actions);
            actions.any(|action| matches!(action, Action::WebSocket(_)))
        };
        let has_pusher = |site: &SiteSettings| site.pusher.app.is_some();
        !self.proxies.is_empty() || self.all_sites().iter().any(|site| has_websocket(site) || has_pusher(site))
    }

    /// Every site; the top level itself if there is no `[[site]]`. Never empty. In development no site serves every
    /// host: otherwise a page in the developer's browser could point its name to this machine and read source code.
    pub fn all_sites(&self) -> Vec<SiteSettings> {
        let mut sites = if self.sites.is_empty() { vec![self.top_level_site()] } else { self.sites.clone() };
        if self.development {
            let named: Vec<HostPattern> = sites.iter().flat_map(|site| site.hosts.clone()).collect();
            let known = self.known_hosts().filter(|host| !named.contains(host)).collect::<Vec<_>>();
            for site in sites.iter_mut().filter(|site| site.hosts.contains(&HostPattern::Any)) {
                site.hosts.retain(|host| *host != HostPattern::Any);
                site.hosts.extend(known.iter().cloned());
            }
        }
        sites
    }

    /// Hosts that always mean this machine, and hosts in settings outside of sites.
    fn known_hosts(&self) -> impl Iterator<Item = HostPattern> {
        let addresses = self.listen.iter().filter_map(|addr| match addr {
            ListenAddr::Tcp(addr) | ListenAddr::Https(addr) => Some(addr.ip().to_string()),
            ListenAddr::Unix(_) | ListenAddr::FastCgiTcp(_) | ListenAddr::FastCgiUnix(_) => None,
        });
        let usual = ["localhost", "*.localhost", "127.0.0.1", "::1"].map(str::to_owned);
        let named = self.server_name.iter().chain(&self.acme.names).cloned();
        let all: BTreeSet<String> = usual.into_iter().chain(addresses).chain(named).collect();
        all.into_iter().filter_map(|host| HostPattern::new(&host)).filter(|host| *host != HostPattern::Any)
    }

    /// The settings with this site at the top level, as the only one.
    pub fn of_one_site(&self, site: &SiteSettings) -> Self {
        // The site's pool becomes the default pool. The current default pool, which another site may use, is renamed.
        let renamed = |name: &str| match name {
            _ if name == site.pool => DEFAULT_POOL.to_owned(),
            DEFAULT_POOL => "others".to_owned(),
            other => other.to_owned(),
        };
        let boots = |pool: &PoolSettings| site.booted.as_ref().is_some_and(|booted| booted.pool == pool.name);
        let mut pools: Vec<PoolSettings> = self
            .pools
            .iter()
            .filter(|pool| site.uses(&pool.name) || boots(pool))
            .map(|pool| PoolSettings {
                name: renamed(&pool.name),
                compare_with: pool.compare_with.as_deref().map(renamed),
                ..pool.clone()
            })
            .collect();
        pools.sort_by_key(|pool| pool.name != DEFAULT_POOL);
        let host = site.hosts.iter().find_map(|host| match host {
            HostPattern::Exact(name) => Some(name.clone()),
            HostPattern::Below(_) | HostPattern::Any => None,
        });
        Self {
            pools,
            sites: Vec::new(),
            site_files: Vec::new(),
            root: site.root.clone(),
            root_links: site.root_links,
            index: site.index.clone(),
            front_controller: site.front_controller.clone(),
            app: site.app.clone(),
            booted: site.booted.clone(),
            server_name: site.server_name.clone().or(host),
            htaccess: site.htaccess,
            rules: site.rules.with_pools(renamed),
            http: site.http.clone(),
            static_files: site.static_files.clone(),
            compression: site.compression.clone(),
            mercure: site.mercure.clone(),
            pusher: site.pusher.clone(),
            ..self.clone()
        }
    }

    /// The site for a pool's warm-up and script: the site whose application the pool boots, else the first site with
    /// this pool as its own, else the first with a route to the pool, else the first. `None` if there is only the top
    /// level.
    pub fn site_of(&self, pool: &PoolSettings) -> Option<&SiteSettings> {
        let boots = |site: &&SiteSettings| site.booted.as_ref().is_some_and(|booted| booted.pool == pool.name);
        let own = |site: &&SiteSettings| site.pool == pool.name;
        let mut sites = self.sites.iter();
        let nearest = sites.clone().find(boots).or_else(|| sites.clone().find(own));
        nearest.or_else(|| sites.clone().find(|site| site.uses(&pool.name))).or_else(|| sites.next())
    }

    /// The recipe's boot in this pool, if there is one.
    pub fn booted_by(&self, pool: &PoolSettings) -> Option<&RecipePool> {
        let all = self.sites.iter().map(|site| &site.booted).chain([&self.booted]);
        all.flatten().find(|booted| booted.pool == pool.name)
    }

    /// The root of the site that `site_of` returns.
    pub fn root_of(&self, pool: &PoolSettings) -> &Path {
        self.site_of(pool).map_or(&self.root, |site| &site.root)
    }

    /// The roots of the other sites whose scripts the pool runs.
    pub fn further_roots_of(&self, pool: &PoolSettings) -> Vec<&Path> {
        let first = self.root_of(pool);
        let users = self.sites.iter().filter(|site| site.uses(&pool.name)).map(|site| site.root.as_path());
        users.filter(|root| *root != first).collect()
    }
}
