//! HAProxy in front of PHP-FPM: FastCGI without a web server between them. It serves no files.

use anyhow::{Context, Result};

use super::{Running, Site, System, drop_to, found, missing, php_fpm, program, version_line};
use crate::cases::{Case, Setup};
use crate::record::{Role, SystemStatus};

/// The adapter.
#[derive(Debug)]
pub struct HaproxyFpm;

/// Compressed media types, the same as in nginx.
const TYPES: &str = "text/html text/plain text/css text/xml application/json application/javascript application/xml \
                     application/rss+xml image/svg+xml";

impl System for HaproxyFpm {
    fn id(&self) -> String {
        "haproxy-fpm".into()
    }

    fn title(&self) -> String {
        "HAProxy + PHP-FPM".into()
    }

    fn find(&self) -> SystemStatus {
        let how = "apt-get install haproxy php-fpm php-mysql php-redis";
        match (program("haproxy"), php_fpm::find()) {
            (Some(haproxy), Some((_, fpm))) => {
                found([("HAProxy", version_line(haproxy, &["-v"])), ("PHP-FPM", version_line(fpm, &["-v"]))])
            }
            (None, _) => missing("haproxy", how),
            (_, None) => missing("php-fpm", how),
        }
    }

    fn tuning(&self) -> Vec<String> {
        let mut notes = php_fpm::tuning();
        notes.extend([
            "HAProxy: one thread per core, as it comes; what comes above the number of children waits in PHP-FPM's backlog, as behind nginx".into(),
            "no FastCGI keep-alive: an idle connection occupies a child, and a new one then waits for HAProxy to close it, for seconds; in \
             set-ups for speed connections stay open, half as many in use and half as many idle as there are children"
                .into(),
            "HAProxy: compression of text formats with gzip, except in set-ups as shipped, which compress nothing".into(),
            "HAProxy: no log, as it comes where no log server is named".into(),
        ]);
        notes
    }

    fn refuses(&self, case: &Case) -> Option<String> {
        let file = case.path.split('?').next().unwrap_or_default();
        let is_file = file.rsplit('/').next().is_some_and(|name| name.contains('.') && !name.ends_with(".php"));
        is_file.then(|| "HAProxy serves no files".into())
    }

    fn shapes_pool(&self) -> bool {
        true
    }

    fn role(&self, process: &str) -> Role {
        if process.starts_with("php-fpm") { Role::Php } else { Role::Front }
    }

    fn start(&self, site: &Site) -> Result<Running> {
        let mut running = Running::default();
        let socket = php_fpm::start(site, &mut running)?;
        let path = site.write("haproxy.cfg", &config(site, &socket.display().to_string()))?;
        running.keep(&path)?;
        let binary = program("haproxy").context("haproxy is not installed")?;
        running.spawn(&site.launch("haproxy", binary, &["-db", "-f", &path.to_string_lossy()]))?;
        Ok(running)
    }
}

fn config(site: &Site, socket: &str) -> String {
    let account = drop_to().map_or_else(String::new, |user| format!("    user {user}\n    group {user}\n"));
    // The path stays as requested by the client: applications route by it. Only the script is set.
    let (front, script) = if site.front_controller {
        let file = site.root.join("index.php");
        (
            "    http-request set-var(txn.front) bool(true) unless { path_end .php } or { path_sub .php/ }\n",
            format!(
                "    set-param SCRIPT_NAME /index.php if {{ var(txn.front) -m found }}\n    \
                 set-param SCRIPT_FILENAME {} if {{ var(txn.front) -m found }}\n",
                file.display()
            ),
        )
    } else {
        ("", String::new())
    };
    let compression = match site.setup {
        Setup::Shipped => String::new(),
        Setup::Lab | Setup::Tuned => format!("    compression algo gzip\n    compression type {TYPES}\n"),
    };
    let children = php_fpm::children(site);
    let (keep, limits) = match site.setup {
        Setup::Tuned => {
            let half = (children / 2).max(1);
            ("", format!(" maxconn {half} pool-max-conn {half}"))
        }
        Setup::Lab | Setup::Shipped => ("    no option keep-conn\n", String::new()),
    };
    format!(
        "global
{account}    maxconn {most}
defaults
    mode http
    timeout connect 10s
    timeout client 300s
    timeout server 300s
    timeout queue 300s
    http-reuse always
fcgi-app php
    docroot {root}
    index index.php
    path-info ^(/.+\\.php)(/.*)?$
{keep}{script}frontend web
    bind {address}
    default_backend fpm
backend fpm
{front}{compression}    use-fcgi-app php
    server fpm unix@{socket} proto fcgi{limits}
",
        most = (3 * site.connections).max(1024),
        root = site.root.display(),
        address = site.address,
    )
}
