//! nginx in front of PHP-FPM on a Unix socket: the most common way to serve PHP.

use std::path::Path;

use anyhow::Result;

use super::{Running, Site, System, found, missing, nginx, php_fpm, program, version_line};
use crate::cases::{Protocol, Setup};
use crate::record::{Role, SystemStatus};

/// The adapter.
#[derive(Debug)]
pub struct NginxFpm;

/// Returns the upstream with persistent connections to PHP-FPM. Each nginx worker keeps its share of the children: more
/// would occupy children without requests.
fn kept(site: &Site, socket: &Path) -> (String, String) {
    let workers = std::thread::available_parallelism().map_or(1, |cores| u32::try_from(cores.get()).unwrap_or(1));
    let share = (php_fpm::children(site) / workers).max(1);
    (
        format!("    upstream fpm {{\n        server unix:{};\n        keepalive {share};\n    }}\n", socket.display()),
        "            fastcgi_keep_conn on;\n            fastcgi_pass fpm;\n".into(),
    )
}

impl System for NginxFpm {
    fn id(&self) -> String {
        "nginx-fpm".into()
    }

    fn title(&self) -> String {
        "nginx + PHP-FPM".into()
    }

    fn find(&self) -> SystemStatus {
        let fpm = php_fpm::find();
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
        notes.extend(php_fpm::tuning());
        notes.push(
            "no FastCGI keep-alive, except in set-ups for speed: each connection that nginx keeps idle occupies a child, and \
             the pool starves as soon as nginx's workers keep more connections than there are children"
                .into(),
        );
        notes
    }

    fn shapes_pool(&self) -> bool {
        true
    }

    fn supports_protocol(&self, over_tls: Protocol) -> bool {
        nginx::supports_protocol(over_tls)
    }

    fn proxies(&self) -> bool {
        true
    }

    fn role(&self, process: &str) -> Role {
        if process.starts_with("php-fpm") { Role::Php } else { Role::Front }
    }

    fn start(&self, site: &Site) -> Result<Running> {
        let mut running = Running::default();
        let socket = php_fpm::start(site, &mut running)?;
        if let Some(upstream) = site.upstream {
            let (upstream, server) = nginx::proxy_config(site, upstream);
            nginx::start(site, &mut running, &nginx::config(site, &upstream, &server))?;
            return Ok(running);
        }
        let (upstream, pass) = match site.setup {
            Setup::Tuned => kept(site, &socket),
            Setup::Lab | Setup::Shipped => {
                (String::new(), format!("            fastcgi_pass unix:{};\n", socket.display()))
            }
        };
        let server = nginx::scripts(site, &pass);
        nginx::start(site, &mut running, &nginx::config(site, &upstream, &server))?;
        Ok(running)
    }
}
