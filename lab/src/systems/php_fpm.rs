//! PHP-FPM on a Unix socket, for every system with another server in front of it.

use std::path::PathBuf;

use anyhow::{Context, Result};

use super::{Running, Site, drop_to, newest_php};
use crate::cases::Setup;

/// Returns the newest PHP-FPM on this machine: its version and its program.
pub fn find() -> Option<(String, PathBuf)> {
    newest_php("/usr/sbin", "php-fpm", "")
}

/// Returns the configuration of PHP-FPM, with reasons.
pub fn tuning() -> Vec<String> {
    vec![
        "PHP-FPM: pm = static with as many children as the case gives workers; where a case lets the pool grow, pm = dynamic with \
         start_servers and min_spare_servers at its fewest"
            .into(),
        "PHP-FPM: listen.backlog holds all connections, so that none is refused".into(),
        "PHP-FPM on a Unix socket, Debian's php.ini and extensions, OPcache on, JIT only in cases that name it".into(),
    ]
}

/// Returns the number of children: the exact number if one is requested, else the case's workers.
pub fn children(site: &Site) -> u32 {
    site.processes.unwrap_or(site.workers)
}

/// Returns the settings for the number and the lifetime of children.
fn pool(site: &Site) -> String {
    let children = children(site);
    let min_workers = site.pool.min_workers.or((site.setup == Setup::Shipped).then_some(1));
    let mut lines = match min_workers {
        None => "pm = static\n".to_owned(),
        Some(min_workers) => format!(
            "pm = dynamic\npm.start_servers = {min_workers}\npm.min_spare_servers = {min_workers}\npm.max_spare_servers = {children}\n"
        ),
    };
    if let Some(most) = site.pool.max_requests {
        lines.push_str(&format!("pm.max_requests = {most}\n"));
    }
    lines
}

/// Starts it as a part of a system, and returns the path of its socket.
pub fn start(site: &Site, running: &mut Running) -> Result<PathBuf> {
    let (_, binary) = find().context("php-fpm is not installed")?;
    let socket = site.dir.join("fpm.sock");
    let account = drop_to().map_or_else(String::new, |user| {
        format!("user = {user}\ngroup = {user}\nlisten.owner = {user}\nlisten.group = {user}\n")
    });
    let config = site.write(
        "php-fpm.conf",
        &format!(
            "[global]\nerror_log = {dir}/php-fpm-error.log\ndaemonize = no\n\n[lab]\n{account}listen = {socket}\n\
             listen.backlog = {backlog}\n{pool}pm.max_children = {children}\ncatch_workers_output = yes\n",
            dir = site.dir.display(),
            socket = socket.display(),
            children = children(site),
            pool = pool(site),
            backlog = (2 * site.connections).max(511),
        ),
    )?;
    running.keep(&config)?;
    running.logs.push(site.dir.join("php-fpm-error.log"));
    running.spawn(&site.launch("php-fpm", binary, &["--nodaemonize", "--fpm-config", &config.to_string_lossy()]))?;
    Ok(socket)
}
