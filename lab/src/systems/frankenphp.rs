//! FrankenPHP, in classic and in worker mode.

use std::path::PathBuf;

use anyhow::{Context, Result};

use super::front::FrontWorker;
use super::{Running, Script, Site, System, found, missing, program, version_line};
use crate::cases::Protocol;
use crate::record::{Role, SystemStatus};

/// The adapter.
#[derive(Debug)]
pub struct FrankenPhp {
    /// Worker mode instead of classic mode.
    pub worker: bool,
}

/// Returns `$FRANKENPHP`, else the program in `PATH`.
fn binary() -> Option<PathBuf> {
    match std::env::var_os("FRANKENPHP") {
        Some(path) => Some(PathBuf::from(path)).filter(|path| path.is_file()),
        None => program("frankenphp"),
    }
}

const HOW: &str = "download the release binary for this architecture from https://github.com/php/frankenphp/releases, make it \
                   executable and put it into PATH as frankenphp (or set FRANKENPHP to its path). Or build it: configure PHP with \
                   --enable-embed --enable-zts --disable-zend-signals --enable-opcache, install it, then with Go and xcaddy: \
                   CGO_ENABLED=1 CGO_CFLAGS=$(php-config --includes) CGO_LDFLAGS=\"$(php-config --ldflags) $(php-config --libs)\" \
                   xcaddy build --with github.com/dunglas/frankenphp/caddy --output frankenphp";

/// Returns the worker of a site for the Caddyfile: its worker script, else its front controller if that can be one.
fn worker_block(site: &Site) -> String {
    let (script, further) = match (&site.worker_script, site.front_worker) {
        (Some(script), _) => (script.clone(), "            match *.php /api/*\n".to_owned()),
        (None, Some(FrontWorker::Alone)) => (site.root.join("index.php"), String::new()),
        (None, Some(FrontWorker::With(runtime))) => {
            (site.root.join("index.php"), format!("            env APP_RUNTIME {runtime}\n"))
        }
        (None, None) => return String::new(),
    };
    let (script, workers) = (script.display(), site.workers);
    format!("        worker {{\n            file {script}\n            num {workers}\n{further}        }}\n")
}

impl System for FrankenPhp {
    fn id(&self) -> String {
        if self.worker { "frankenphp-worker".into() } else { "frankenphp-classic".into() }
    }

    fn title(&self) -> String {
        if self.worker { "FrankenPHP worker".into() } else { "FrankenPHP classic".into() }
    }

    fn find(&self) -> SystemStatus {
        match binary() {
            Some(binary) => found([("FrankenPHP", version_line(binary, &["version"]))]),
            None => missing("frankenphp", HOW),
        }
    }

    fn tuning(&self) -> Vec<String> {
        let mut notes = vec![
            "FrankenPHP: as many PHP threads as the case gives workers".into(),
            "Caddy: encode zstd gzip (the lab asks for gzip), no access log, no admin endpoint, TLS in cases that are about it".into(),
            "PHP: a separate thread-safe (ZTS) build, whose version may differ from that of Debian's PHP".into(),
        ];
        if self.worker {
            notes.push(
                "worker mode: the script boots once per thread and keeps its connections to MariaDB and Redis. An \
                 application of Symfony without one: its front controller, with the runtime for FrankenPHP that is installed"
                    .into(),
            );
        }
        notes
    }

    fn script(&self) -> Script {
        if self.worker { Script::Worker } else { Script::Any }
    }

    fn supports_protocol(&self, _over_tls: Protocol) -> bool {
        true
    }

    fn role(&self, _process: &str) -> Role {
        Role::Both
    }

    fn start(&self, site: &Site) -> Result<Running> {
        let binary = binary().context("frankenphp is not there")?;
        let worker = if self.worker { worker_block(site) } else { String::new() };
        // FrankenPHP needs at least one thread more than its workers.
        let threads = site.workers + u32::from(!worker.is_empty());
        let config = site.write(
            "Caddyfile",
            &format!(
                "{{\n    admin off\n    auto_https off\n    persist_config off\n    frankenphp {{\n        num_threads {threads}\n    }}\n}}\n{scheme}://{address} {{\n{tls}    encode zstd gzip\n    root * {root}\n    php_server {{\n{worker}    }}\n}}\n",
                scheme = if site.certificate.is_some() { "https" } else { "http" },
                tls = site.certificate.as_ref().map_or_else(String::new, |certificate| format!(
                    "    tls {} {}\n",
                    certificate.chain.display(),
                    certificate.key.display()
                )),
                address = site.address,
                root = site.root.display(),
            ),
        )?;
        let mut running = Running::default();
        running.keep(&config)?;
        let path = config.to_string_lossy().into_owned();
        let mut launch = site.launch("frankenphp", binary, &["run", "--adapter", "caddyfile", "--config", &path]);
        launch.environment.extend([
            ("XDG_DATA_HOME".into(), site.dir.join("data").display().to_string()),
            ("XDG_CONFIG_HOME".into(), site.dir.join("config").display().to_string()),
        ]);
        running.spawn(&launch)?;
        Ok(running)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_front_controller_is_a_worker_where_there_is_no_script_for_that() {
        let site = |script: Option<&str>, front_worker| Site {
            worker_script: script.map(PathBuf::from),
            front_worker,
            ..crate::systems::howdah::tests::site("/srv".as_ref(), false, false)
        };
        let block = |site: Site| worker_block(&site).split_whitespace().collect::<Vec<_>>().join(" ");
        let runtime = "Runtime\\FrankenPhpSymfony\\Runtime";
        assert_eq!(
            block(site(Some("/srv/worker.php"), Some(FrontWorker::Alone))),
            "worker { file /srv/worker.php num 4 match *.php /api/* }"
        );
        assert_eq!(
            block(site(None, Some(FrontWorker::With(runtime)))),
            format!("worker {{ file /srv/index.php num 4 env APP_RUNTIME {runtime} }}")
        );
        assert_eq!(block(site(None, Some(FrontWorker::Alone))), "worker { file /srv/index.php num 4 }");
        assert_eq!(block(site(None, None)), "");
    }
}
