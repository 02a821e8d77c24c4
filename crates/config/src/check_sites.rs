//! Checks sites: hosts, roots and pools, and the settings of files and responses.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::address::ListenAddr;
use crate::check_mercure;
use crate::choice::SandboxProfile;
use crate::glob::Glob;
use crate::hidden;
use crate::host::HostPattern;
use crate::origin::Origin;
use crate::settings::Settings;
use crate::settings_site::SiteSettings;
use crate::source::Source;
use howdah_rules::keys::nearest;

/// Reports errors in sites, including the top level as a site.
pub(crate) fn check(settings: &Settings, source: &mut Source<'_>) {
    for pattern in &settings.site_patterns {
        if let Err(why) = Glob::new(pattern, Path::new("/")) {
            source.object("sites", format!("\"{pattern}\" {why}"));
        }
    }
    let top = settings.top_level_site();
    if settings.sites.is_empty() {
        root(&top, source);
    }
    site(settings, &top, source);
    for own in &settings.sites {
        own_root(own, source);
        site(settings, own, source);
    }
    hosts(&settings.sites, source);
    names(&settings.sites, source);
    writable_code(settings, source);
}

impl SiteSettings {
    fn is_top_level(&self) -> bool {
        self.origin == Origin::Default
    }

    /// The full name of one of the site's settings, as in `Origins`.
    fn name_of(&self, key: &str) -> String {
        if self.is_top_level() { key.to_owned() } else { format!("site.{}.{key}", self.name) }
    }

    /// `true` if the site, or the top level for it, sets this key.
    pub(crate) fn says(&self, key: &str, source: &Source<'_>) -> bool {
        [&*self.name_of(key), key].iter().any(|name| source.origins.of(name) != Origin::Default)
    }

    /// Reports an error in one of the site's settings, at the site's value or at the inherited one.
    pub(crate) fn object(&self, key: &str, message: String, source: &mut Source<'_>) {
        let own = self.name_of(key);
        if source.origins.of(&own) != Origin::Default {
            source.object(&own, message);
        } else if source.origins.of(key) != Origin::Default {
            source.object(key, message);
        } else {
            let origin = Some(self.origin.clone()).filter(|origin| *origin != Origin::Default);
            source.error(origin, &own, message);
        }
    }
}

fn own_root(site: &SiteSettings, source: &mut Source<'_>) {
    if site.says("root", source) {
        root(site, source);
    } else {
        site.object("root", "is required; for example: root = \"/srv/shop/public\"".to_owned(), source);
    }
}

fn root(site: &SiteSettings, source: &mut Source<'_>) {
    let root = &site.root;
    if root == Path::new("/") && site.is_top_level() && source.origins.of("root") == Origin::Default {
        let message = "no root was given and the current directory is /; name the directory to serve";
        site.object("root", message.to_owned(), source);
    } else if !root.is_dir() {
        let what = if root.exists() {
            "is not a directory".to_owned()
        } else {
            format!("does not exist{}", hidden::reason(root))
        };
        site.object("root", format!("{} {what}", root.display()), source);
    } else if std::fs::metadata(root.join(".")).is_err_and(|error| error.kind() == ErrorKind::PermissionDenied) {
        site.object("root", format!("the user that runs this command may not enter {}", root.display()), source);
    }
}

fn site(settings: &Settings, site: &SiteSettings, source: &mut Source<'_>) {
    if let Some(front) = &site.front_controller
        && (front.starts_with('/') || front.split('/').any(|part| part == ".."))
    {
        let message = format!("\"{front}\" must be a path under the root, such as \"index.php\"");
        site.object("front_controller", message, source);
    }
    if let Some(bad) = site.index.iter().find(|name| name.is_empty() || name.contains('/')) {
        site.object("index", format!("\"{bad}\" is not a file name"), source);
    }
    if let Some(name) = &site.server_name
        && !matches!(HostPattern::new(name), Some(HostPattern::Exact(_)))
    {
        site.object(
            "server_name",
            format!("\"{name}\" is not a host without a port, such as \"www.example.org\""),
            source,
        );
    }
    pools(settings, site, source);
    fields(site, source);
    tls(settings, site, source);
    handed_over(site, source);
    check_mercure::check(site, source);
}

fn pools(settings: &Settings, site: &SiteSettings, source: &mut Source<'_>) {
    let names: Vec<&str> = settings.pools.iter().map(|pool| pool.name.as_str()).collect();
    let pool = site.pool.as_str();
    if !names.contains(&pool) {
        let advice = match nearest(pool, names.iter().copied()) {
            Some(near) => format!("; did you mean \"{near}\"?"),
            None => format!("; there is {}", names.join(", ")),
        };
        site.object("pool", format!("there is no pool \"{pool}\"{advice}"), source);
    }
}

/// Checks that a site's certificates have a TLS address, and hosts that an authority can verify.
fn tls(settings: &Settings, site: &SiteSettings, source: &mut Source<'_>) {
    if site.is_top_level() {
        return;
    }
    let is_said = |key: &str, source: &Source<'_>| source.origins.of(&site.name_of(key)) != Origin::Default;
    let key = ["tls.certificates", "tls.auto"].into_iter().find(|key| is_said(key, source));
    if let Some(key) = key
        && !settings.listen.iter().any(|addr| matches!(addr, ListenAddr::Https(_)))
    {
        let message = "no address of `listen` begins with https://, so it would not be used";
        site.object(key, message.to_owned(), source);
    }
    if !site.tls.auto || !is_said("tls.auto", source) {
        return;
    }
    if !site.tls.certificates.is_empty() {
        let message =
            "cannot be combined with `certificates`: the site's certificate either is in files or is obtained";
        site.object("tls.auto", message.to_owned(), source);
    } else if site.certifiable_hosts().next().is_none() {
        let message =
            "no certificate can be obtained automatically for any of its hosts: name each host, or set `certificates`";
        site.object("tls.auto", message.to_owned(), source);
    }
}

fn fields(site: &SiteSettings, source: &mut Source<'_>) {
    if let Some(name) = &site.http.request_id_header
        && !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    {
        let message = format!("\"{name}\" is not a field name, such as \"X-Request-Id\"");
        site.object("http.request_id_header", message, source);
    }
    if let Some(value) = &site.http.server_header
        && !value.bytes().all(|byte| (b' '..=b'~').contains(&byte))
    {
        site.object("http.server_header", "must be printable ASCII".to_owned(), source);
    }
}

/// Checks directories whose files only scripts may hand out.
fn handed_over(site: &SiteSettings, source: &mut Source<'_>) {
    let files = &site.static_files;
    for (prefix, directory) in &files.x_accel_redirect {
        if !prefix.starts_with('/') || !prefix.ends_with('/') {
            let message = format!("\"{prefix}\" must begin and end with a slash, such as \"/protected/\"");
            site.object("static.x_accel_redirect", message, source);
        }
        private_directory(site, "static.x_accel_redirect", Path::new(directory), source);
    }
    for directory in &files.x_sendfile {
        private_directory(site, "static.x_sendfile", directory, source);
    }
}

fn private_directory(site: &SiteSettings, key: &str, directory: &Path, source: &mut Source<'_>) {
    if !directory.is_absolute() {
        site.object(key, format!("{} must be an absolute path", directory.display()), source);
    } else if !directory.is_dir() {
        site.object(key, format!("there is no directory {}", directory.display()), source);
    } else if let (Ok(real), Ok(root)) = (directory.canonicalize(), site.root.canonicalize())
        && (real.starts_with(&root) || root.starts_with(&real))
    {
        let message = format!("{} and the root overlap: clients could request its files", directory.display());
        site.object(key, message, source);
    }
}

/// Checks that each host is in one site only; otherwise a request would be ambiguous.
fn hosts(sites: &[SiteSettings], source: &mut Source<'_>) {
    let mut known: BTreeMap<&HostPattern, &SiteSettings> = BTreeMap::new();
    for site in sites {
        for host in &site.hosts {
            if let Some(other) = known.insert(host, site) {
                let place = source.origins.of(&other.name_of("hosts"));
                let message = if std::ptr::eq(other, site) {
                    format!("\"{host}\" is listed twice")
                } else {
                    format!("\"{host}\" is a host of the site \"{}\" too, {place}", other.name)
                };
                site.object("hosts", message, source);
            }
        }
    }
}

fn names(sites: &[SiteSettings], source: &mut Source<'_>) {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
    for site in
        sites.iter().filter(|site| source.origins.of(&site.name_of("name")) != Origin::Default).collect::<Vec<_>>()
    {
        // The duplicate name was already reported; remove the number it was given.
        let name = site.name.split(" (").next().unwrap_or_default();
        if name.len() > 100 || !name.bytes().all(fits) {
            site.object("name", "must consist of at most 100 letters, digits, -, _ and dots".to_owned(), source);
        }
    }
}

/// Checks that code is not writable for requests: a writable directory must not contain a root or the script.
fn writable_code(settings: &Settings, source: &mut Source<'_>) {
    for pool in settings.pools.iter().filter(|pool| pool.sandbox.profile != SandboxProfile::Off) {
        let mut code: Vec<&PathBuf> =
            settings.sites.iter().filter(|site| site.uses(&pool.name)).map(|site| &site.root).collect();
        if settings.sites.is_empty() {
            code.push(&settings.root);
        }
        code.extend(pool.script.iter().chain(&pool.boot));
        for (key, paths) in [("write", &pool.sandbox.write), ("write_code", &pool.sandbox.write_code)] {
            let above = |path: &&PathBuf| code.iter().any(|code| code.starts_with(path));
            if let Some(path) = paths.iter().find(above) {
                let message = format!(
                    "{} contains the code that requests run: list writable directories below it instead",
                    path.display()
                );
                source.object(&pool.name_of(&format!("sandbox.{key}")), message);
            }
        }
    }
}
