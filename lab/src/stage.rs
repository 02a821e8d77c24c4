//! The temporary directory in which everything happens: applications, configuration, sockets, logs.

use std::collections::BTreeSet;
use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::cases::{App, Case, Need, catalogue};
use crate::guard::DIRECTORY_PREFIX;
use crate::interrupt::Interrupt;
use crate::services::Services;
use crate::systems::Site;

/// The lab's own scripts: name below the application's directory, and content.
const BENCH: &[(&str, &str)] = &[
    ("public/hello.php", include_str!("../apps/bench/hello.php")),
    ("public/html.php", include_str!("../apps/bench/html.php")),
    ("public/pdf.php", include_str!("../apps/bench/pdf.php")),
    ("public/random.php", include_str!("../apps/bench/random.php")),
    ("public/fibonacci.php", include_str!("../apps/bench/fibonacci.php")),
    ("public/usleep.php", include_str!("../apps/bench/usleep.php")),
    ("public/mysql-key.php", include_str!("../apps/bench/mysql-key.php")),
    ("public/mysql-rows.php", include_str!("../apps/bench/mysql-rows.php")),
    ("public/complex.php", include_str!("../apps/bench/complex.php")),
    ("public/probe.php", include_str!("../apps/bench/probe.php")),
    ("public/worker.php", include_str!("../apps/bench/worker.php")),
    ("swoole.php", include_str!("../apps/bench/swoole.php")),
];

/// The prepared directory and the services in it.
#[derive(Debug)]
pub struct Stage {
    /// MariaDB and Redis.
    pub services: Services,
    dir: tempfile::TempDir,
    user_app: Option<PathBuf>,
    starts: std::cell::Cell<u32>,
}

impl Stage {
    /// Prepares everything that the cases need.
    pub fn prepare(cases: &[Case], user_app: Option<&Path>, interrupt: &Interrupt) -> Result<Self> {
        let dir =
            tempfile::Builder::new().prefix(DIRECTORY_PREFIX).tempdir().context("cannot make a temporary directory")?;
        // Servers that drop privileges must still reach their files.
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755))?;
        let user_app = user_app.map(document_root).transpose()?;
        let needs: BTreeSet<Need> = cases.iter().flat_map(|case| case.needs.iter().copied()).collect();
        let services = Services::start(&needs, dir.path(), interrupt)?;
        let stage = Self { services, dir, user_app, starts: std::cell::Cell::new(0) };
        let apps: Vec<App> = cases.iter().map(|case| case.app).collect();
        if apps.contains(&App::Scripts) {
            stage.write_bench()?;
        }
        Ok(stage)
    }

    fn write_bench(&self) -> Result<()> {
        let app = self.dir.path().join("bench");
        fs::create_dir_all(app.join("public"))?;
        for (name, content) in BENCH {
            fs::write(app.join(name), content)?;
        }
        fs::write(app.join("public/photo.jpg"), catalogue::static_file())?;
        fs::write(app.join("environment.php"), self.environment())?;
        Ok(())
    }

    /// The sockets of the services, as a PHP file that returns an array.
    fn environment(&self) -> String {
        let path = |socket: Option<&PathBuf>| socket.map_or_else(String::new, |path| path.display().to_string());
        format!(
            "<?php\nreturn ['mysql' => '{}', 'redis' => '{}'];\n",
            path(self.services.mariadb.as_ref().map(|service| &service.socket)),
            path(self.services.redis.as_ref().map(|service| &service.socket)),
        )
    }

    /// What a system is asked to serve for one case, in a fresh private directory.
    pub fn site(&self, case: &Case, address: SocketAddr) -> Result<Site> {
        let number = self.starts.get() + 1;
        self.starts.set(number);
        let dir = self.dir.path().join(format!("run-{number}"));
        fs::create_dir_all(&dir)?;
        let app = match case.app {
            App::Scripts => self.dir.path().join("bench"),
            App::User => PathBuf::new(),
            App::Shop => bail!("{} is not available in this version of the lab", case.id),
            App::WordPress => bail!("{} is not available in this version of the lab", case.id),
        };
        let root = match (&self.user_app, case.app) {
            (Some(root), App::User) => root.clone(),
            _ => app.join("public"),
        };
        let existing = |path: PathBuf| path.is_file().then_some(path);
        Ok(Site {
            app: case.app,
            front_controller: root.join("index.php").is_file(),
            worker_script: existing(root.join("worker.php")),
            swoole_script: existing(app.join("swoole.php")),
            root,
            workers: case.workers,
            connections: case.connections,
            address,
            dir,
        })
    }

    /// Removes the private directory of a start that is over.
    pub fn discard(&self, site: &Site) {
        let _ = fs::remove_dir_all(&site.dir);
    }
}

/// The document root of a user's application: its `public` directory, or itself.
fn document_root(app: &Path) -> Result<PathBuf> {
    let app = app.canonicalize().with_context(|| format!("cannot find --app {}", app.display()))?;
    if !app.is_dir() {
        bail!("--app {} is not a directory", app.display());
    }
    let public = app.join("public");
    Ok(if public.is_dir() { public } else { app })
}
