//! The temporary directory of a run: applications, configuration, sockets, logs.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::apps;
use crate::cases::{App, Case, Need, Transport};
use crate::certificate::Certificate;
use crate::guard::DIRECTORY_PREFIX;
use crate::interrupt::Interrupt;
use crate::jit;
use crate::load::{Target, Tls};
use crate::services::Services;
use crate::systems::{Site, front};

/// The prepared directory and the services in it.
#[derive(Debug)]
pub struct Stage {
    /// MariaDB and Redis.
    pub services: Services,
    /// Document roots, or the reason why there is none. An application that cannot be prepared fails only its own
    /// cases.
    roots: Vec<(App, Result<PathBuf, String>)>,
    /// The certificate of every system, if a case uses TLS.
    certificate: Option<Certificate>,
    starts: Cell<u32>,
    // Last field, so that the services are stopped before their directory is removed.
    dir: tempfile::TempDir,
}

impl Stage {
    /// Prepares everything that the cases need.
    pub fn prepare(cases: &[Case], user_app: Option<&Path>, interrupt: &Interrupt) -> Result<Self> {
        let user_root = user_app.map(document_root).transpose()?;
        let dir =
            tempfile::Builder::new().prefix(DIRECTORY_PREFIX).tempdir().context("cannot make a temporary directory")?;
        // Servers that drop privileges must still reach their files.
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755))?;
        let needs: BTreeSet<Need> = cases.iter().flat_map(|case| case.needs.iter().copied()).collect();
        let services = Services::start(&needs, dir.path(), interrupt)?;
        let tls = cases.iter().any(|case| case.transport != Transport::Plain);
        let certificate = tls.then(|| Certificate::make(&dir.path().join("tls"))).transpose()?;
        let mut roots = Vec::new();
        if let Some(root) = user_root {
            roots.push((App::User, Ok(root)));
        }
        for (app, name) in [
            (App::Scripts, "bench"),
            (App::Shop, "shop"),
            (App::Heavy, "heavy"),
            (App::Orders, "orders"),
            (App::WordPress, "wordpress"),
        ] {
            if cases.iter().any(|case| case.app == app) {
                interrupt.check()?;
                let root = apps::prepare(app, &dir.path().join(name), &services);
                roots.push((app, root.map_err(|error| format!("{error:#}"))));
            }
        }
        Ok(Self { services, roots, certificate, starts: Cell::new(0), dir })
    }

    /// Returns the site to serve for one case, in a fresh private directory.
    pub fn site(&self, case: &Case, address: SocketAddr) -> Result<Site> {
        let root = match self.roots.iter().find(|(app, _)| *app == case.app) {
            Some((_, Ok(root))) => root.clone(),
            Some((_, Err(reason))) => bail!("the application could not be prepared: {reason}"),
            None => bail!("{} has no application", case.id),
        };
        let number = self.starts.get() + 1;
        self.starts.set(number);
        let dir = self.dir.path().join(format!("run-{number}"));
        fs::create_dir_all(&dir)?;
        if case.jit {
            jit::prepare(&dir)?;
        }
        let is_wordpress = case.app == App::WordPress;
        if is_wordpress {
            apps::write_address(&root, &address.to_string())?;
        }
        let existing = |path: PathBuf| path.is_file().then_some(path);
        let is_user = case.app == App::User;
        let worker_script = existing(root.join("worker.php"));
        let boot_file = root.parent().and_then(|app| existing(app.join("boot.php")));
        // The application's scripts come first.
        let is_bare = is_user && worker_script.is_none() && boot_file.is_none();
        Ok(Site {
            app: case.app,
            front_controller: root.join("index.php").is_file(),
            front_worker: if is_bare { front::worker(&root) } else { None },
            worker_script,
            swoole_script: root.parent().and_then(|app| existing(app.join("swoole.php"))),
            async_script: root.parent().and_then(|app| existing(app.join("async.php"))),
            boot_file,
            recipe: if is_bare { front::recipe(&root) } else { is_wordpress.then_some("wordpress") },
            path: case.path.clone(),
            root,
            certificate: self.certificate.clone().filter(|_| case.transport != Transport::Plain),
            protocol: case.transport.protocol(),
            upstream: self.services.upstream.as_ref().map(|upstream| upstream.address).filter(|_| case.is_proxied()),
            workers: case.workers,
            processes: None,
            pool: case.pool.clone(),
            setup: case.setup,
            jit: case.jit,
            connections: case.connections,
            address,
            dir,
        })
    }

    /// Returns the destination and transport of a case's requests.
    pub fn target(&self, case: &Case, address: SocketAddr, path: String) -> Target {
        let tls = match (case.transport, &self.certificate) {
            (Transport::Tls(protocol, connections), Some(certificate)) => {
                Some(Tls { protocol, connections, authority: certificate.authority.clone() })
            }
            _ => None,
        };
        Target { address, path, accept_encoding: case.accept_encoding.clone(), tls }
    }

    /// Returns the application's script that calls its handler in a plain loop.
    pub fn loop_script(&self, case: &Case) -> Option<PathBuf> {
        let (_, root) = self.roots.iter().find(|(app, _)| *app == case.app)?;
        let script = root.as_ref().ok()?.parent()?.join("loop.php");
        script.is_file().then_some(script)
    }

    /// Removes the private directory of a finished start.
    pub fn discard(&self, site: &Site) {
        let _ = fs::remove_dir_all(&site.dir);
    }
}

/// Returns the document root of a user's application: its `public` directory, or itself.
fn document_root(app: &Path) -> Result<PathBuf> {
    let app = app.canonicalize().with_context(|| format!("cannot find --app {}", app.display()))?;
    if !app.is_dir() {
        bail!("--app {} is not a directory", app.display());
    }
    let public = app.join("public");
    Ok(if public.is_dir() { public } else { app })
}
