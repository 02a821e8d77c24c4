//! A site: its settings, prepared for the phases. Built once, read by all threads.

use crate::blocking_threads::BlockingThreads;
use crate::compress::Compressor;
use crate::https::Https;
use crate::listings::Listings;
use crate::live::SiteLive;
use crate::mercure::Mercure;
use crate::preferred_pool::PreferredPool;
use crate::pusher::Pusher;
use crate::releases::Releases;
use crate::sendfile::SendfileDirectories;
use crate::server::Server;
use crate::static_files::StaticFiles;
use crate::withheld::Withheld;
use howdah_config::{ByteSize, HttpSettings, PoolSettings, RootLinks, Settings, SiteSettings};
use howdah_htaccess::Htaccess;
use howdah_observe::{AccessLog, RequestMetrics};
use howdah_pool::LiveSink;
use howdah_pool::process::environment;
use howdah_rules::{Action, Place};
use http::{HeaderName, HeaderValue};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Limits on requests, from the settings.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Maximum length of the request target in bytes.
    pub max_uri: usize,
    /// Maximum size of all header lines in bytes, as in HTTP/1.
    pub max_header: usize,
    /// Maximum request body in bytes, if the settings limit it.
    pub max_body: Option<u64>,
}

impl Limits {
    /// The limits of the settings.
    pub fn new(settings: &HttpSettings) -> Self {
        Self {
            max_uri: settings.max_uri.as_usize(),
            max_header: settings.max_header_bytes.as_usize(),
            max_body: settings.max_body.map(ByteSize::bytes),
        }
    }
}

/// Everything about a site that the phases need and that does not change between requests.
#[derive(Debug)]
pub struct Site {
    /// State shared by all sites.
    pub server: Arc<Server>,
    /// Position among the sites.
    pub number: usize,
    /// Number of this release. It increases when the root's link leads to another directory (`root_links`).
    pub release: u32,
    releases: Option<Releases<Self>>,
    pub settings: SiteSettings,
    /// The document root as PHP sees it (`DOCUMENT_ROOT`): absolute, without a slash at its end, links resolved only
    /// with `releases`.
    pub root: PathBuf,
    /// The position in the settings of the pool that runs its scripts.
    pub(crate) pool: usize,
    /// A recipe's pool that runs one script instead of `pool`.
    pub(crate) preferred: Option<PreferredPool>,
    /// Paths of the status pages of this site's pools, with the pool's position in the settings.
    pool_pages: Vec<(String, usize)>,
    /// Directives of `.htaccess` files below the root, if they are followed.
    pub htaccess: Option<Htaccess>,
    /// The environment variables that all pools of this site have in common, for `PassEnv` in `.htaccess` files.
    pub environment: BTreeMap<OsString, OsString>,
    /// Receives scripts' orders, if the site has WebSocket connections or a Mercure hub.
    pub(crate) live: Option<Arc<dyn LiveSink>>,
    /// Limits on requests.
    pub limits: Limits,
    /// Redirect of clients without TLS, and `Alt-Svc`.
    pub https: Https,
    /// Files that are never sent.
    pub withheld: Arc<Withheld>,
    /// Static files of the root.
    pub static_files: StaticFiles,
    /// Listings of directories without an index file.
    pub(crate) listings: Listings,
    pub(crate) blocking: BlockingThreads,
    /// Static files of directories that rules name.
    places: Vec<(PathBuf, StaticFiles)>,
    /// Keys and permissions of its Mercure hub, if it has one.
    pub(crate) mercure: Option<Mercure>,
    /// Its Pusher application, if it has one.
    pub(crate) pusher: Option<Arc<Pusher>>,
    /// Files that scripts may have the server send.
    pub handed_over: SendfileDirectories,
    /// Compresses response bodies.
    pub compressor: Compressor,
    /// Request metrics: index 0 for requests without a route, then one entry per route.
    pub requests: Vec<Arc<RequestMetrics>>,
    /// The access log, if one is kept.
    pub access_log: Option<Arc<AccessLog>>,
    /// Value of the `Server` header.
    pub server_header: Option<HeaderValue>,
    /// Name of the response header with the request's id.
    pub request_id_header: Option<HeaderName>,
}

impl Site {
    /// Returns this site with the link's current target as its root. On an error it logs and keeps the old one.
    fn release(&self, root: PathBuf) -> Option<Self> {
        let settings = SiteSettings { root, root_links: RootLinks::Keep, ..self.settings.clone() };
        let name = settings.name.clone();
        match Self::new(&self.server, settings, self.number, self.access_log.clone()) {
            Ok(next) => {
                tracing::info!(site = name, root = %next.root.display(), "document root changed");
                Some(Self { release: self.release.wrapping_add(1), ..next })
            }
            Err(why) => {
                tracing::error!(site = name, "cannot switch to the new release, keeping the old one: {why}");
                None
            }
        }
    }

    /// Returns the current release of this site, for a new request.
    pub(crate) fn current_release(self: &Arc<Self>) -> Arc<Self> {
        match &self.releases {
            None => self.clone(),
            Some(releases) => releases.now(self, Self::release),
        }
    }

    /// Builds a site from its settings. An error names the setting and the problem.
    pub(crate) fn new(
        server: &Arc<Server>,
        settings: SiteSettings,
        number: usize,
        access_log: Option<Arc<AccessLog>>,
    ) -> Result<Self, String> {
        let root = std::path::absolute(&settings.root)
            .map_err(|error| format!("root: cannot make {} absolute: {error}", settings.root.display()))?;
        match std::fs::metadata(&root) {
            Ok(meta) if meta.is_dir() => {}
            Ok(_) => return Err(format!("root: {} is not a directory", root.display())),
            Err(error) => return Err(format!("root: cannot open {}: {error}", root.display())),
        }
        let releases = (settings.root_links == RootLinks::Request).then(|| Releases::new(&root));
        let root = match &releases {
            Some(_) => root.canonicalize().map_err(|error| format!("root: {}: {error}", root.display()))?,
            None => root,
        };
        let server_header = settings.http.server_header.as_deref().filter(|name| !name.is_empty());
        let server_header = server_header
            .map(|value| HeaderValue::from_str(value).map_err(|_| "http.server_header: not a header value".to_owned()))
            .transpose()?;
        let request_id_header = settings.http.request_id_header.as_deref().filter(|name| !name.is_empty());
        let request_id_header = request_id_header
            .map(|name| name.parse().map_err(|_| format!("http.request_id_header: {name} is not a header name")))
            .transpose()?;
        let withheld = Arc::new(Withheld::new(&server.settings, &settings.static_files, server.private.clone()));
        let public = public_directories(&settings, &root);
        let pools = &server.settings.pools;
        // Names were checked when the settings were loaded.
        let position = |name: &str| pools.iter().position(|pool| pool.name == name).unwrap_or(0);
        Ok(Self {
            number,
            release: 0,
            releases,
            // Collecting the components drops a slash at the end and `.` components.
            root: root.components().collect(),
            pool: position(&settings.pool),
            preferred: PreferredPool::of(&settings, pools, position(&settings.pool)),
            pool_pages: pool_pages(pools, &settings),
            htaccess: settings.htaccess.then(|| Htaccess::new(".htaccess")),
            environment: if settings.htaccess { environment(&server.settings, &settings) } else { BTreeMap::new() },
            live: SiteLive::of(server, &settings),
            limits: Limits::new(&settings.http),
            https: Https::new(&server.settings),
            static_files: StaticFiles::with_links(
                root.clone(),
                &settings.static_files,
                public.clone(),
                withheld.clone(),
            )
            .map_err(|error| format!("static: {error}"))?,
            listings: Listings::default(),
            blocking: BlockingThreads::default(),
            places: places(&settings, &public, &withheld)?,
            mercure: Mercure::new(&settings.mercure)?,
            pusher: Pusher::new(server, &settings)?,
            handed_over: SendfileDirectories::new(&settings.static_files, &withheld)?,
            withheld,
            compressor: Compressor::with_cache(&settings.compression, server.compressed.clone()),
            requests: [""]
                .into_iter()
                .chain(settings.rules.routes().iter().map(|route| &*route.name))
                .map(|route| server.metrics.requests.of(&settings.name, route))
                .collect(),
            access_log,
            server_header,
            request_id_header,
            server: server.clone(),
            settings,
        })
    }

    /// Returns the static files below a directory that a rule names. If the rule names a file, those of its directory.
    pub fn files_of(&self, place: &Place) -> &StaticFiles {
        let found = self.places.iter().find(|(directory, _)| *directory == place.directory);
        found.map_or(&self.static_files, |(_, files)| files)
    }

    /// Returns the position of a pool in the settings. Pool names were checked when the settings were loaded.
    pub(crate) fn pool_named(&self, name: &str) -> usize {
        self.server.settings.pools.iter().position(|pool| pool.name == name).unwrap_or(self.pool)
    }

    /// The position of the pool whose status page is at this path, if there is one.
    pub fn pool_page(&self, path: &[u8]) -> Option<usize> {
        self.pool_pages.iter().find(|(own, _)| own.as_bytes() == path).map(|(_, pool)| *pool)
    }
}

/// Returns the environment variables that all pools of a site have with the same value. When `.htaccess` files are
/// evaluated, the pool that will run the script is not known yet, and no pool may get a variable of another pool.
fn environment(all: &Settings, site: &SiteSettings) -> BTreeMap<OsString, OsString> {
    let mut pools = all.pools.iter().filter(|pool| site.uses(&pool.name)).map(|pool| {
        let env: Vec<_> = pool.php.env.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
        let mut environment = environment::of_php(std::env::vars_os(), pool.php.clear_env, &env);
        // A pool with its own user gets that user's `HOME` and `USER`, not the server's.
        if pool.php.user.is_some() || all.user.is_some() {
            environment.retain(|name, _| {
                (name != "HOME" && name != "USER") || pool.php.env.iter().any(|(own, _)| name == own.as_str())
            });
        }
        environment
    });
    let mut common = pools.next().unwrap_or_default();
    for other in pools {
        common.retain(|name, value| other.get(name) == Some(value));
    }
    common
}

/// Returns the status paths of the pools that a site uses. Its own pool comes first, so it wins if paths are equal.
fn pool_pages(pools: &[PoolSettings], site: &SiteSettings) -> Vec<(String, usize)> {
    let mut used: Vec<(usize, &PoolSettings)> =
        pools.iter().enumerate().filter(|(_, pool)| site.uses(&pool.name)).collect();
    used.sort_by_key(|(_, pool)| pool.name != site.pool);
    used.into_iter().filter_map(|(at, pool)| Some((pool.status_path.clone()?, at))).collect()
}

/// Opens the static files below every directory that rules name.
fn places(
    settings: &SiteSettings,
    public: &[PathBuf],
    withheld: &Arc<Withheld>,
) -> Result<Vec<(PathBuf, StaticFiles)>, String> {
    let mut places: Vec<(PathBuf, StaticFiles)> = Vec::new();
    for action in settings.rules.rules().iter().flat_map(|rule| &rule.actions) {
        let Action::Place(place) = action else { continue };
        if places.iter().any(|(directory, _)| *directory == place.directory) {
            continue;
        }
        let directory = if place.directory.is_dir() { Some(&*place.directory) } else { place.directory.parent() };
        let directory = directory.unwrap_or(&place.directory);
        let files = StaticFiles::with_links(directory, &settings.static_files, public.to_vec(), withheld.clone());
        let files = files.map_err(|error| format!("rule: cannot open {}: {error}", directory.display()))?;
        places.push((place.directory.clone(), files));
    }
    Ok(places)
}

/// Returns the directories into which rules allow all links, for the root and for each directory that rules name.
fn public_directories(settings: &SiteSettings, root: &Path) -> Vec<PathBuf> {
    let actions = || settings.rules.rules().iter().flat_map(|rule| &rule.actions);
    let places = actions().filter_map(|action| match action {
        Action::Place(place) => Some(&*place.directory),
        _ => None,
    });
    let bases: Vec<&Path> = std::iter::once(root).chain(places).collect();
    let directories = actions().filter_map(|action| match action {
        Action::Links(directories) => Some(directories),
        _ => None,
    });
    directories.flatten().flat_map(|directory| bases.iter().map(move |base| base.join(directory))).collect()
}
