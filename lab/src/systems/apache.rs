//! Apache with mod_php: prefork processes that speak HTTP and run PHP.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::{Running, Site, System, drop_to, found, missing, newest_php, program, version_line};
use crate::cases::{Case, Protocol, Setup};
use crate::record::{Role, SystemStatus};

/// The adapter.
#[derive(Debug)]
pub struct Apache;

const MODULES: &str = "/usr/lib/apache2/modules";

/// More processes than this are no realistic set-up.
const MAX_PROCESSES: u32 = 256;

fn php_module() -> Option<(String, PathBuf)> {
    newest_php(MODULES, "libphp", ".so")
}

impl System for Apache {
    fn id(&self) -> String {
        "apache".into()
    }

    fn title(&self) -> String {
        "Apache + mod_php".into()
    }

    fn find(&self) -> SystemStatus {
        match (program("apache2"), php_module()) {
            (Some(apache), Some((php, _))) => {
                let version = version_line(apache, &["-v"]).map(|line| line.replace("Server version: ", ""));
                found([("Apache", version), ("mod_php", Some(php))])
            }
            (None, _) => missing("apache2", "apt-get install apache2 libapache2-mod-php"),
            (_, None) => missing("mod_php", "apt-get install libapache2-mod-php"),
        }
    }

    fn tuning(&self) -> Vec<String> {
        vec![
            "Apache: prefork, because Debian's mod_php is not thread-safe".into(),
            "Apache: a process serves one kept-alive connection at a time, so there are as many processes as connections \
             and two more; with fewer, connections would wait for each other's keep-alive to time out"
                .into(),
            "Apache: MaxKeepAliveRequests 0, access log off, .htaccess not read, sendfile on".into(),
            "Apache: mod_deflate with Debian's list of types and zlib's default level".into(),
            "mod_php: Debian's php.ini and extensions, OPcache on, JIT only in cases that name it".into(),
        ]
    }

    fn refuses(&self, case: &Case) -> Option<String> {
        (case.connections > MAX_PROCESSES).then(|| {
            format!("prefork needs a process for each kept-alive connection; the lab starts at most {MAX_PROCESSES}")
        })
    }

    /// Apache's HTTP/2 does not work with prefork.
    fn supports_protocol(&self, over_tls: Protocol) -> bool {
        over_tls == Protocol::Http1 && Path::new(MODULES).join("mod_ssl.so").exists()
    }

    fn role(&self, _process: &str) -> Role {
        Role::Both
    }

    fn start(&self, site: &Site) -> Result<Running> {
        let (_, php) = php_module().context("mod_php is not installed")?;
        let mut running = Running::default();
        let path = site.write("apache2.conf", &config(site, &php))?;
        running.keep(&path)?;
        running.logs.push(site.dir.join("apache-error.log"));
        let binary = program("apache2").context("apache2 is not installed")?;
        running.spawn(&site.launch("apache2", binary, &["-f", &path.to_string_lossy(), "-D", "FOREGROUND"]))?;
        Ok(running)
    }
}

fn config(site: &Site, php: &Path) -> String {
    let modules = [
        "mpm_prefork",
        "authz_core",
        "authz_host",
        "alias",
        "dir",
        "env",
        "filter",
        "deflate",
        "mime",
        "negotiation",
        "setenvif",
    ]
    .iter()
    .chain(site.certificate.iter().flat_map(|_| ["socache_shmcb", "ssl"].iter()))
    .filter(|name| Path::new(MODULES).join(format!("mod_{name}.so")).exists())
    .map(|name| format!("LoadModule {name}_module {MODULES}/mod_{name}.so\n"))
    .collect::<String>();
    let account = drop_to().map_or_else(String::new, |user| format!("User {user}\nGroup {user}\n"));
    let fallback = if site.front_controller { "    FallbackResource /index.php\n" } else { "" };
    let tls = site.certificate.as_ref().map_or_else(String::new, |certificate| {
        format!(
            "SSLEngine on\nSSLSessionCache shmcb:{}/ssl(512000)\nSSLProtocol all -SSLv3 -TLSv1 -TLSv1.1\nSSLCertificateFile {}\nSSLCertificateKeyFile {}\n",
            site.dir.display(),
            certificate.chain.display(),
            certificate.key.display()
        )
    });
    format!(
        "{modules}LoadModule php_module {php}
ServerRoot {dir}
DefaultRuntimeDir {dir}
PidFile {dir}/apache2.pid
ErrorLog {dir}/apache-error.log
LogLevel warn
ServerName localhost
Listen {address}
{log}{tls}{account}StartServers {processes}
MinSpareServers {processes}
MaxSpareServers {processes}
ServerLimit {processes}
MaxRequestWorkers {processes}
MaxConnectionsPerChild 0
KeepAlive On
MaxKeepAliveRequests 0
KeepAliveTimeout 5
Timeout 300
EnableSendfile On
TypesConfig /etc/mime.types
DocumentRoot {root}
<Directory {root}>
    Require all granted
    AllowOverride None
    Options FollowSymLinks
    DirectoryIndex index.php index.html
{fallback}</Directory>
<FilesMatch \".+\\.ph(?:ar|p|tml)$\">
    SetHandler application/x-httpd-php
</FilesMatch>
AddOutputFilterByType DEFLATE text/html text/plain text/xml text/css text/javascript application/javascript
AddOutputFilterByType DEFLATE application/rss+xml application/xml application/json image/svg+xml
",
        php = php.display(),
        dir = site.dir.display(),
        address = site.address,
        processes = site.processes.unwrap_or_else(|| site.workers.max(site.connections + 2)),
        log = match site.setup {
            Setup::Shipped => format!(
                "LogFormat \"%h %l %u %t \\\"%r\\\" %>s %O \\\"%{{Referer}}i\\\" \\\"%{{User-Agent}}i\\\"\" combined\nCustomLog {}/access.log combined\n",
                site.dir.display()
            ),
            Setup::Lab | Setup::Tuned => String::new(),
        },
        root = site.root.display(),
    )
}
