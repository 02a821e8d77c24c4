//! Apache httpd with mod_php: the reference for `.htaccess` files.

use crate::client::{Conn, Target};
use crate::process::{PATIENCE, eventually, signal, wait_for_exit};
use crate::site::Port;
use rustix::process::Signal;
use std::fmt::Write as _;
use std::fs;
use std::net::TcpStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

const PROGRAM: &str = "/usr/sbin/apache2";
const MODULES: &str = "/usr/lib/apache2/modules";
const LOADED: [&str; 20] = [
    "mpm_prefork",
    "authz_core",
    "authz_host",
    "authz_user",
    "authn_core",
    "authn_file",
    "auth_basic",
    "access_compat",
    "alias",
    "dir",
    "env",
    "filter",
    "deflate",
    "mime",
    "negotiation",
    "setenvif",
    "rewrite",
    "headers",
    "expires",
    "autoindex",
];

/// A running Apache. Dropping it ends Apache.
pub struct Apache {
    process: Child,
    port: Port,
    directory: TempDir,
}

impl Apache {
    /// Starts Apache with these sites, each a host and its document root. `None` if Apache or its PHP module is not
    /// installed.
    ///
    /// # Panics
    /// Apache does not listen.
    pub fn start(sites: &[(&str, &Path)]) -> Option<Self> {
        let versions = ["8.5", "8.4", "8.3", "8.2"].iter().map(|version| format!("{MODULES}/libphp{version}.so"));
        let php = versions.map(PathBuf::from).find(|path| path.exists() && Path::new(PROGRAM).exists())?;
        let directory = tempfile::Builder::new().prefix("howdah-apache-").tempdir().unwrap_or_else(|e| panic!("{e}"));
        let port = Port::hold();
        let (file, log) = (directory.path().join("apache.conf"), directory.path().join("error.log"));
        fs::write(&file, configuration(directory.path(), sites, &php, port.number)).unwrap_or_else(|e| panic!("{e}"));
        let output = fs::File::create(directory.path().join("output")).unwrap_or_else(|e| panic!("{e}"));
        let errors = output.try_clone().unwrap_or_else(|e| panic!("{e}"));
        let mut command = Command::new("setpriv");
        // Apache's first process replaces a worker that crashes, and ends all of its process group.
        command.args(["--pdeathsig", "TERM", "--", PROGRAM, "-D", "FOREGROUND", "-f"]).arg(&file).process_group(0);
        command.env_remove("APACHE_RUN_DIR");
        let process = command.stdin(Stdio::null()).stdout(output).stderr(errors).spawn();
        let process = process.unwrap_or_else(|e| panic!("cannot start {PROGRAM}: {e}"));
        let mut apache = Self { process, port, directory };
        let mut listens = false;
        let _ = eventually(PATIENCE, || {
            listens = TcpStream::connect(("127.0.0.1", apache.port.number)).is_ok();
            listens || apache.process.try_wait().is_ok_and(|ended| ended.is_some())
        });
        let said = |path: &Path| fs::read_to_string(path).unwrap_or_default();
        assert!(listens, "Apache does not listen: {}{}", said(&log), said(&apache.directory.path().join("output")));
        Some(apache)
    }

    pub fn port(&self) -> u16 {
        self.port.number
    }

    /// A new connection. Apache serves one at a time.
    pub fn conn(&self) -> Conn {
        Conn::open(&Target::Tcp(([127, 0, 0, 1], self.port.number).into()))
    }

    /// The log's messages about an `.htaccess` file that Apache cannot process.
    pub fn complaints(&self) -> String {
        let text = fs::read_to_string(self.directory.path().join("error.log")).unwrap_or_default();
        text.lines().filter(|line| line.contains("/.htaccess: ")).fold(String::new(), |mut all, line| {
            let _ = writeln!(all, "Apache's log: {line}");
            all
        })
    }
}

impl Drop for Apache {
    fn drop(&mut self) {
        signal(self.process.id(), Signal::TERM);
        if wait_for_exit(&mut self.process, PATIENCE).is_none() {
            signal(self.process.id(), Signal::KILL);
            let _ = self.process.wait();
        }
    }
}

fn configuration(top: &Path, sites: &[(&str, &Path)], php: &Path, port: u16) -> String {
    let modules: String = LOADED.iter().fold(String::new(), |mut all, name| {
        let _ = writeln!(all, "LoadModule {name}_module {MODULES}/mod_{name}.so");
        all
    });
    let hosts: String = sites.iter().fold(String::new(), |mut all, (name, root)| {
        let root = root.display();
        let _ = write!(
            all,
            "<VirtualHost *:{port}>
    ServerName {name}:{port}
    DocumentRoot {root}
    <Directory {root}>
        Require all granted
        AllowOverride All
        Options FollowSymLinks
        DirectoryIndex index.php index.html
    </Directory>
</VirtualHost>
"
        );
        all
    });
    let account = if rustix::process::geteuid().is_root() { "User www-data\nGroup www-data" } else { "" };
    let (dir, php) = (top.display(), php.display());
    let trace = std::env::var("HOWDAH_REWRITE_LOG").unwrap_or_else(|_| "warn".to_owned());
    format!(
        "{modules}LoadModule php_module {php}
ServerRoot {dir}
DefaultRuntimeDir {dir}
PidFile {dir}/apache.pid
ErrorLog {dir}/error.log
LogLevel warn rewrite:{trace}
ServerName localhost
Listen 127.0.0.1:{port}
{account}
StartServers 4
MinSpareServers 3
MaxSpareServers 8
MaxKeepAliveRequests 0
KeepAliveTimeout 600
TypesConfig /etc/mime.types
<FilesMatch \"^\\.ht\">
    Require all denied
</FilesMatch>
AddType application/x-httpd-php .php
# Ignores files of others, such as /tmp/.htaccess.
<Directory />
    AllowOverride None
</Directory>
{hosts}"
    )
}
