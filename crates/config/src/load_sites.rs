//! Reads sites and their pools, from `howdah.toml` and from site files.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::file::{File, OWN_POOL};
use crate::glob::Glob;
use crate::host::HostPattern;
use crate::load_rules::{self, Gathered};
use crate::origin::ConfigError;
use crate::settings::{DEFAULT_POOL, PhpSettings, PoolSettings, Settings};
use crate::settings_http::{CompressionSettings, HttpSettings, LogSettings, StaticSettings};
use crate::settings_mercure::MercureSettings;
use crate::settings_pusher::PusherSettings;
use crate::settings_sandbox::SandboxSettings;
use crate::settings_site::{SiteKeys, SiteSettings};
use crate::settings_tls::TlsSettings;
use crate::sites::own_row;
use crate::source::{Scope, Section, Source, entries, find};
use howdah_rules::tree::{Entry, Node, Tree};

/// Maximum number of site files; more indicate an error in a pattern.
const MAX_FILES: usize = 10_000;

/// Reads the files that match the patterns, each once, in the order of the patterns and then of the names.
pub(crate) fn read_files(main: &File, patterns: &[String], errors: &mut Vec<ConfigError>) -> Vec<File> {
    let mut paths: Vec<PathBuf> = Vec::new();
    for pattern in patterns {
        let mut found = BTreeSet::new();
        // `check_sites` reports invalid patterns.
        if let Ok(glob) = Glob::new(pattern, &main.dir) {
            glob.find(&mut found);
        }
        paths.extend(found.into_iter().filter(|path| !paths.contains(path)).collect::<Vec<_>>());
    }
    let error = |message| ConfigError { origin: None, setting: "sites".to_owned(), message };
    if paths.len() > MAX_FILES {
        errors.push(error(format!("{} files match; at most {MAX_FILES} are allowed", paths.len())));
        return Vec::new();
    }
    let mut files = Vec::new();
    for full in paths {
        // For errors: the path is shown relative to the main file's path as it was given.
        let beside = main.path.parent().unwrap_or(Path::new(""));
        let shown = full.strip_prefix(&main.dir).map_or_else(|_| full.clone(), |rest| beside.join(rest));
        match std::fs::read(&full) {
            Ok(content) => match File::parse(shown, &full, content, true) {
                Ok(file) => files.push(file),
                Err(wrong) => errors.extend(wrong),
            },
            Err(why) => errors.push(error(format!("cannot read {}: {why}", shown.display()))),
        }
    }
    files
}

/// A site as it is in a file.
#[derive(Clone, Copy)]
pub(crate) struct Written<'a> {
    pub(crate) file: &'a File,
    pub(crate) entries: &'a [Entry],
    /// The line of the site's header.
    pub(crate) line: usize,
}

impl<'a> Written<'a> {
    /// The name of the site, as far as it is known before checks.
    pub(crate) fn name(&self) -> String {
        let text = text_of;
        let first = |node: &Node| match &node.tree {
            Tree::List(hosts) => hosts.first().and_then(text),
            _ => text(node),
        };
        let host = |node: &Node| first(node).map(|host| HostPattern::new(&host).map_or(host, |host| host.to_string()));
        let name = find(self.entries, "name").and_then(|entry| text(&entry.node));
        let host = || find(self.entries, "hosts").and_then(|entry| host(&entry.node));
        name.or_else(host).unwrap_or_else(|| format!("line {}", self.line))
    }

    /// The site's entries in a section.
    fn section(&self, key: &str) -> &'a [Entry] {
        find(self.entries, key).map_or(&[], |entry| entries(&entry.node))
    }
}

/// The sites of a file: those with a header, or, in a site file without headers, the file itself.
pub(crate) fn sites_of(file: &File, is_main: bool) -> Vec<Written<'_>> {
    let top = entries(&file.root);
    match find(top, "site") {
        Some(Entry { node: Node { tree: Tree::List(sites), .. }, .. }) => {
            sites.iter().map(|site| Written { file, entries: entries(site), line: site.line }).collect()
        }
        Some(_) => Vec::new(),
        None if is_main => Vec::new(),
        None => vec![Written { file, entries: top, line: 1 }],
    }
}

/// Reads every pool except the default one.
pub(crate) fn read_pools<'a>(source: &mut Source<'a>, files: &[&'a File], sites: &[Written<'a>]) -> Vec<PoolSettings> {
    let mut found: Vec<(String, &'a File, &'a Entry)> = Vec::new();
    for file in files {
        // In a file that is a single site, a `pool` section has another key.
        let pools = find(entries(&file.root), "pool").map_or(&[][..], |entry| entries(&entry.node));
        found.extend(pools.iter().filter(|pool| pool.key != DEFAULT_POOL).map(|pool| (pool.key.clone(), *file, pool)));
    }
    for site in sites {
        if let Some(own) = find(site.entries, OWN_POOL) {
            found.push((site.name(), site.file, own));
        }
    }
    let mut pools: Vec<PoolSettings> = Vec::new();
    for (at, (name, file, entry)) in found.iter().enumerate() {
        if !matches!(entry.node.tree, Tree::Table(_)) {
            continue;
        }
        let first = found[..at].iter().find(|(other, ..)| other == name);
        if first.is_some() || name == DEFAULT_POOL {
            let place = first.map_or_else(|| "the top level".to_owned(), |(_, f, e)| f.line(e.line).to_string());
            let message = format!("{place} already has a pool of this name");
            source.error(Some(file.line(entry.line)), &format!("pool.{name}"), message);
            continue;
        }
        pools.push(read_pool(source, name, file, entries(&entry.node)));
    }
    pools
}

fn read_pool(source: &mut Source<'_>, name: &str, file: &File, own: &[Entry]) -> PoolSettings {
    let own_sandbox = find(own, "sandbox").map_or(&[][..], |entry| entries(&entry.node));
    let sandbox = Section { file, name: format!("pool.{name}.sandbox"), entries: own_sandbox };
    let section = Section { file, name: format!("pool.{name}"), entries: own };
    let mut pool = PoolSettings {
        name: name.to_owned(),
        sandbox: SandboxSettings::read(source, Scope::Over(&sandbox)),
        php: PhpSettings::read(source, Scope::Over(&section)),
        ..PoolSettings::read(source, Scope::Over(&section))
    };
    // Patterns inherited from the top level are relative to the top level's directory.
    if find(own, "watch").is_some() {
        make_absolute(&mut pool.watch, &file.dir);
    }
    pool
}

/// Makes file patterns absolute, relative to `dir`.
pub(crate) fn make_absolute(patterns: &mut [String], dir: &Path) {
    for pattern in patterns {
        *pattern = dir.join(&*pattern).to_string_lossy().into_owned();
    }
}

/// Reads every site, with the top level's settings as defaults.
pub(crate) fn read_sites<'a>(
    source: &mut Source<'a>,
    sites: &[Written<'a>],
    top: &Settings,
    gathered: &mut Gathered,
) -> Vec<SiteSettings> {
    let mut taken: BTreeMap<String, &Written<'a>> = BTreeMap::new();
    let mut found = Vec::new();
    for site in sites {
        let mut name = site.name();
        if let Some(other) = taken.get(&name) {
            let place = other.file.line(other.line);
            let message = format!("the site at {place} is called \"{name}\" too; give one of them another `name`");
            source.error(Some(site.file.line(site.line)), "site", message);
            // A unique name, so that further errors refer to the right site.
            name = format!("{name} ({})", found.len() + 1);
        }
        taken.insert(name.clone(), site);
        found.push(read_site(source, site, name, top, gathered));
    }
    found
}

/// The text of a node, if it is a text and not empty.
fn text_of(node: &Node) -> Option<String> {
    match &node.tree {
        Tree::Text(text) if !text.is_empty() => Some(text.clone()),
        _ => None,
    }
}

fn read_site<'a>(
    source: &mut Source<'a>,
    site: &Written<'a>,
    name: String,
    top: &Settings,
    gathered: &mut Gathered,
) -> SiteSettings {
    let file = site.file;
    let section = |entries, part: &str| Section { file, name: format!("site.{name}{part}"), entries };
    let own = section(site.entries, "");
    let is_empty = |hosts: &Entry| match &hosts.node.tree {
        Tree::List(list) => list.is_empty(),
        _ => false,
    };
    if find(site.entries, "hosts").is_none_or(is_empty) {
        let message = "needs at least one host; for example: hosts = [\"shop.example\"], or hosts = \"default\"";
        source.error(Some(file.line(site.line)), &format!("{}.hosts", own.name), message.to_owned());
    }
    let keys = SiteKeys::read(source, Scope::Alone(&own));
    let own_pool = find(site.entries, OWN_POOL).map(|_| site.name());
    let mut found = SiteSettings {
        hosts: keys.hosts,
        listen: Vec::new(),
        pool: own_pool.or(keys.pool).unwrap_or_else(|| DEFAULT_POOL.to_owned()),
        app: source.take_over(&own, own_row("app"), &top.app),
        server_name: source.take_over(&own, own_row("server_name"), &top.server_name),
        root: source.take_over(&own, own_row("root"), &top.root),
        root_links: source.take_over(&own, own_row("root_links"), &top.root_links),
        index: source.take_over(&own, own_row("index"), &top.index),
        front_controller: source.take_over(&own, own_row("front_controller"), &top.front_controller),
        htaccess: source.take_over(&own, own_row("htaccess"), &top.htaccess),
        origin: file.line(site.line),
        name: name.clone(),
        ..top.top_level_site()
    };
    let app = find(site.entries, "app").and(found.app.name());
    let written = load_rules::Written { file: Some(file), own: site.entries, section: &format!("{}.", own.name) };
    if let Some(rules) = load_rules::read(source, written, app, &top.pools, gathered) {
        found.rules = rules;
    }
    let part = |key: &str| section(site.section(key), &format!(".{key}"));
    found.http = HttpSettings::read_over(&top.http, source, &part("http"));
    found.static_files = StaticSettings::read_over(&top.static_files, source, &part("static"));
    found.compression = CompressionSettings::read_over(&top.compression, source, &part("compression"));
    found.log = LogSettings::read_over(&top.log, source, &part("log"));
    // Certificates of the top level are selected by their names, for all sites.
    let base = TlsSettings { certificates: Vec::new(), ..top.tls.clone() };
    found.tls = TlsSettings::read_over(&base, source, &part("tls"));
    found.mercure = MercureSettings::read_over(&top.mercure, source, &part("mercure"));
    found.pusher = PusherSettings::read_over(&top.pusher, source, &part("pusher"));
    found
}
