//! Swoole's HTTP server, alone and with nginx in front.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};

use super::{Running, Script, Site, System, found, free_address, missing, nginx, program};
use crate::record::{Role, SystemStatus};

/// The adapter.
#[derive(Debug)]
pub struct Swoole {
    /// `true` if nginx speaks to the clients and serves files.
    pub behind_nginx: bool,
}

/// Returns the arguments that load the extension `$SWOOLE_SO`, if php.ini does not load it.
fn extension_arguments() -> Vec<String> {
    match std::env::var("SWOOLE_SO") {
        Ok(path) => vec!["-d".into(), format!("extension={path}")],
        Err(_) => Vec::new(),
    }
}

fn version() -> Option<(PathBuf, String)> {
    let php = program("php")?;
    let output =
        Command::new(&php).args(extension_arguments()).args(["-r", "echo phpversion('swoole');"]).output().ok()?;
    let version = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    (!version.is_empty() && version.starts_with(|c: char| c.is_ascii_digit())).then_some((php, version))
}

/// One process per core: each serves many requests at once.
fn cores() -> u32 {
    std::thread::available_parallelism().map_or(1, |cores| u32::try_from(cores.get()).unwrap_or(1))
}

const HOW: &str = "apt-get install php-dev php-pear libbrotli-dev zlib1g-dev libssl-dev && pecl install swoole, then put \
                   extension=swoole.so into a file of /etc/php/*/cli/conf.d, or set SWOOLE_SO to the path of swoole.so";

impl System for Swoole {
    fn id(&self) -> String {
        if self.behind_nginx { "nginx-swoole".into() } else { "swoole".into() }
    }

    fn title(&self) -> String {
        if self.behind_nginx { "nginx + Swoole".into() } else { "Swoole".into() }
    }

    fn find(&self) -> SystemStatus {
        let Some((php, version)) = version() else { return missing("the PHP extension swoole", HOW) };
        if self.behind_nginx && program("nginx").is_none() {
            return missing("nginx", "apt-get install nginx-light");
        }
        let mut versions = vec![("Swoole", Some(version)), ("PHP", super::version_line(php, &["-v"]))];
        if self.behind_nginx {
            versions.push(("nginx", nginx::version()));
        }
        found(versions)
    }

    fn tuning(&self) -> Vec<String> {
        let mut notes = vec![
            "Swoole: one worker process per core, because each serves many requests at once in coroutines; the number of \
             workers of a case does not apply to it"
                .into(),
            "Swoole: coroutine hooks for everything, its PDOPool of 100 MariaDB connections and its RedisPool of 100 divided among its \
             workers, OPcache on for the CLI"
                .into(),
        ];
        if self.behind_nginx {
            notes.extend(nginx::tuning());
            notes.push("nginx: kept-alive connections to Swoole; nginx serves files and compresses".into());
        } else {
            notes.push(
                "Swoole: http_compression on (it compresses responses of any type) from 1024 bytes on, static handler on".into(),
            );
        }
        notes
    }

    fn script(&self) -> Script {
        Script::Swoole
    }

    fn role(&self, process: &str) -> Role {
        match (self.behind_nginx, process.starts_with("nginx")) {
            (true, true) => Role::Front,
            (true, false) => Role::Php,
            (false, _) => Role::Both,
        }
    }

    fn start(&self, site: &Site) -> Result<Running> {
        let (php, _) = version().context("swoole is not there")?;
        let script = site.swoole_script.as_ref().context("this application has no Swoole script")?;
        let address = if self.behind_nginx { free_address()? } else { site.address };
        let mut arguments = extension_arguments();
        arguments.extend(["-d".into(), "opcache.enable_cli=1".into(), script.display().to_string()]);
        let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let mut launch = site.launch("swoole", php, &words);
        launch.environment.extend([
            ("LAB_HOST".into(), address.ip().to_string()),
            ("LAB_PORT".into(), address.port().to_string()),
            ("LAB_WORKERS".into(), site.processes.unwrap_or_else(cores).to_string()),
            ("LAB_ROOT".into(), site.root.display().to_string()),
            ("LAB_COMPRESSION".into(), u8::from(!self.behind_nginx).to_string()),
            ("LAB_LOG".into(), site.dir.join("swoole-server.log").display().to_string()),
        ]);
        let mut running = Running::default();
        running.keep(script)?;
        running.logs.push(site.dir.join("swoole-server.log"));
        running.spawn(&launch)?;
        if self.behind_nginx {
            let upstream =
                format!("    upstream swoole {{\n        server {address};\n        keepalive 64;\n    }}\n");
            let server = "        location / {
            try_files $uri @swoole;
        }
        location ~ \\.php$ {
            try_files /nonexistent @swoole;
        }
        location @swoole {
            proxy_pass http://swoole;
            proxy_http_version 1.1;
            proxy_set_header Connection \"\";
            proxy_set_header Host $host;
        }
";
            nginx::start(site, &mut running, &nginx::config(site, &upstream, server))?;
        }
        Ok(running)
    }
}
