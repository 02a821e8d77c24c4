//! nginx with PHP-FPM behind a Unix socket: the most common way to serve PHP.

use anyhow::{Context, Result};

use super::{Running, Site, System, drop_to, found, missing, newest_php, nginx, program, version_line};
use crate::cases::Protocol;
use crate::record::{Role, SystemStatus};

/// The adapter.
#[derive(Debug)]
pub struct NginxFpm;

fn fpm() -> Option<(String, std::path::PathBuf)> {
    newest_php("/usr/sbin", "php-fpm", "")
}

/// Lines for how many children there are, and how long each lives.
fn pool(site: &Site) -> String {
    let mut lines = match site.pool.fewest {
        None => "pm = static\n".to_owned(),
        Some(fewest) => format!(
            "pm = dynamic\npm.start_servers = {fewest}\npm.min_spare_servers = {fewest}\npm.max_spare_servers = {}\n",
            site.workers
        ),
    };
    if let Some(most) = site.pool.max_requests {
        lines.push_str(&format!("pm.max_requests = {most}\n"));
    }
    lines
}

impl System for NginxFpm {
    fn id(&self) -> String {
        "nginx-fpm".into()
    }

    fn title(&self) -> String {
        "nginx + PHP-FPM".into()
    }

    fn find(&self) -> SystemStatus {
        let fpm = fpm();
        match (program("nginx"), &fpm) {
            (Some(_), Some((_, binary))) => {
                found([("nginx", nginx::version()), ("PHP-FPM", version_line(binary, &["-v"]))])
            }
            (nginx, fpm) => {
                let absent: Vec<&str> = [("nginx", nginx.is_none()), ("php-fpm", fpm.is_none())]
                    .iter()
                    .filter(|(_, no)| *no)
                    .map(|(n, _)| *n)
                    .collect();
                missing(absent.join(" and "), "apt-get install nginx-light php-fpm php-mysql php-redis")
            }
        }
    }

    fn tuning(&self) -> Vec<String> {
        let mut notes = nginx::tuning();
        notes.extend([
            "PHP-FPM: pm = static with as many children as the case gives workers; where a case lets the pool grow, pm = dynamic with \
             start_servers and min_spare_servers at its fewest"
                .into(),
            "no FastCGI keep-alive: with it, each connection that nginx keeps idle occupies a child, and the pool starves \
             as soon as nginx's workers keep more connections than there are children"
                .into(),
            "PHP-FPM: listen.backlog holds all connections, so that none is refused".into(),
            "PHP-FPM on a Unix socket, Debian's php.ini and extensions, OPcache on, JIT only in cases that name it".into(),
        ]);
        notes
    }

    fn shapes_pool(&self) -> bool {
        true
    }

    fn speaks(&self, over_tls: Protocol) -> bool {
        nginx::speaks(over_tls)
    }

    fn proxies(&self) -> bool {
        true
    }

    fn role(&self, process: &str) -> Role {
        if process.starts_with("php-fpm") { Role::Php } else { Role::Front }
    }

    fn start(&self, site: &Site) -> Result<Running> {
        let (_, binary) = fpm().context("php-fpm is not installed")?;
        let mut running = Running::default();
        let socket = site.dir.join("fpm.sock");
        let account = drop_to().map_or_else(String::new, |user| {
            format!("user = {user}\ngroup = {user}\nlisten.owner = {user}\nlisten.group = {user}\n")
        });
        let config = site.write(
            "php-fpm.conf",
            &format!(
                "[global]\nerror_log = {dir}/php-fpm-error.log\ndaemonize = no\n\n[lab]\n{account}listen = {socket}\n\
                 listen.backlog = {backlog}\n{pool}pm.max_children = {workers}\ncatch_workers_output = yes\n",
                dir = site.dir.display(),
                socket = socket.display(),
                workers = site.workers,
                pool = pool(site),
                backlog = (2 * site.connections).max(511),
            ),
        )?;
        running.keep(&config)?;
        running.logs.push(site.dir.join("php-fpm-error.log"));
        running.spawn(&site.launch(
            "php-fpm",
            binary,
            &["--nodaemonize", "--fpm-config", &config.to_string_lossy()],
        ))?;

        let fallback = if site.front_controller { "/index.php?$query_string" } else { "=404" };
        if let Some(upstream) = site.upstream {
            let (upstream, server) = nginx::handing_on(site, upstream);
            nginx::start(site, &mut running, &nginx::config(site, &upstream, &server))?;
            return Ok(running);
        }
        let server = format!(
            "        location / {{
            try_files $uri $uri/ {fallback};
        }}
        location ~ \\.php(/|$) {{
            fastcgi_split_path_info ^(.+?\\.php)(/.*)$;
            try_files $fastcgi_script_name =404;
            set $path_info $fastcgi_path_info;
            include /etc/nginx/fastcgi.conf;
            fastcgi_param PATH_INFO $path_info;
            fastcgi_pass unix:{};
        }}
",
            socket.display()
        );
        nginx::start(site, &mut running, &nginx::config(site, "", &server))?;
        Ok(running)
    }
}
