//! A private Apache with mod_php, a virtual host for each case.

use crate::{Outcome, Request};
use std::collections::BTreeSet;
use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const PROGRAM: &str = "/usr/sbin/apache2";
const MODULES: &str = "/usr/lib/apache2/modules";

/// Says what ran and what it saw, a line for each thing.
pub(crate) const SCRIPT: &str = r#"<?php
header_remove('X-Powered-By');
echo "script=", $_SERVER['SCRIPT_NAME'], "\n";
echo "info=", $_SERVER['PATH_INFO'] ?? '', "\n";
echo "query=", $_SERVER['QUERY_STRING'] ?? '', "\n";
echo "uri=", $_SERVER['REQUEST_URI'], "\n";
echo "redirect-status=", $_SERVER['REDIRECT_STATUS'] ?? '', "\n";
ksort($_SERVER);
foreach ($_SERVER as $name => $value) {
    if (preg_match('/^((REDIRECT_)*(E_|HTTP_AUTH)|HTTP_X_|REMOTE_USER)/', $name)) echo "$name=$value\n";
}
foreach (['memory_limit', 'arg_separator.output', 'display_errors', 'auto_prepend_file', 'max_input_vars'] as $name) {
    echo "ini-$name=", ini_get($name), "\n";
}
"#;

pub(crate) struct Apache {
    process: Child,
    pub(crate) port: u16,
    log: PathBuf,
}

fn php_module() -> Option<PathBuf> {
    let versions = ["8.5", "8.4", "8.3", "8.2"].iter().map(|version| format!("{MODULES}/libphp{version}.so"));
    versions.map(PathBuf::from).find(|path| path.exists())
}

impl Apache {
    /// `None` if it is not installed.
    pub(crate) fn start(top: &Path, sites: &[(&str, &Path)]) -> Option<Self> {
        let php = php_module().filter(|_| Path::new(PROGRAM).exists())?;
        // A test beside this one may take the port: then another is tried.
        (0..20).find_map(|_| Self::try_start(top, sites, &php)).or_else(|| panic!("apache2 does not start"))
    }

    fn try_start(top: &Path, sites: &[(&str, &Path)], php: &Path) -> Option<Self> {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let (config, log) = (top.join("apache.conf"), top.join("apache.log"));
        fs::write(&config, configuration(top, sites, php, port)).unwrap();
        let output = fs::File::create(top.join("apache.out")).unwrap();
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "TERM", "--", PROGRAM, "-X", "-f"]).arg(&config).process_group(0);
        command.env_remove("APACHE_RUN_DIR").stdin(Stdio::null()).stdout(output.try_clone().unwrap()).stderr(output);
        let mut apache = Self { process: command.spawn().unwrap(), port, log };
        let began = Instant::now();
        while began.elapsed() < Duration::from_secs(60) {
            if apache.process.try_wait().unwrap().is_some() {
                eprintln!("{}", fs::read_to_string(top.join("apache.out")).unwrap_or_default());
                return None;
            }
            if TcpStream::connect(("127.0.0.1", port)).is_ok() {
                return Some(apache);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        panic!("apache2 is not ready after a minute");
    }

    pub(crate) fn log(&self) -> String {
        let text = fs::read_to_string(&self.log).unwrap_or_default();
        let alerts: BTreeSet<&str> =
            text.lines().filter_map(|line| line.split_once("/.htaccess: ")).map(|it| it.1).collect();
        alerts.into_iter().map(|alert| format!("Apache's log: {alert}\n")).collect()
    }

    pub(crate) fn ask(&self, host: &str, request: &Request, compare: &[String]) -> Outcome {
        let mut socket = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        let mut text =
            format!("{} {} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n", request.method, request.target);
        for (name, value) in &request.headers {
            text += &format!("{name}: {value}\r\n");
        }
        socket.write_all((text + "\r\n").as_bytes()).unwrap();
        let mut bytes = Vec::new();
        socket.read_to_end(&mut bytes).unwrap();
        outcome(&String::from_utf8_lossy(&bytes), compare)
    }
}

/// What is compared of a response.
fn outcome(text: &str, compare: &[String]) -> Outcome {
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((text, ""));
    let mut made = Outcome::new();
    let status = head.split(' ').nth(1).unwrap_or_default();
    made.insert("status".to_owned(), status.to_owned());
    for line in head.lines().skip(1) {
        let Some((name, value)) = line.split_once(": ") else { continue };
        let name = name.to_ascii_lowercase();
        if name == "location" || name.starts_with("x-") || compare.contains(&name) {
            let joined = made.entry(name).or_default();
            if !joined.is_empty() {
                joined.push_str(", ");
            }
            joined.push_str(value);
        }
    }
    if status != "200" {
        // The page of an error has a type of its own.
        made.remove("content-type");
    }
    if body.contains("script=/") {
        for (name, value) in body.lines().filter_map(|line| line.split_once('=')) {
            made.insert(name.trim().to_owned(), value.to_owned());
        }
    } else if !body.contains("<!DOCTYPE HTML PUBLIC") {
        made.insert("body".to_owned(), body.trim().to_owned());
    }
    made
}

impl Drop for Apache {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn configuration(top: &Path, sites: &[(&str, &Path)], php: &Path, port: u16) -> String {
    let modules = [
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
    let load = |name: &&str| format!("LoadModule {name}_module {MODULES}/mod_{name}.so\n");
    let modules: String = modules.iter().map(load).collect();
    let dir = top.display();
    let account = if rustix_is_root() { "User www-data\nGroup www-data\n" } else { "" };
    let hosts: String = sites
        .iter()
        .map(|(name, root)| {
            let root = root.display();
            format!("<VirtualHost *:{port}>\nServerName {name}.test\nDocumentRoot {root}\n</VirtualHost>\n")
        })
        .collect();
    make_readable(top);
    format!(
        "{modules}LoadModule php_module {php}
ServerRoot {dir}
DefaultRuntimeDir {dir}
PidFile {dir}/apache.pid
ErrorLog {dir}/apache.log
LogLevel warn rewrite:{trace}
ServerName localhost
Listen 127.0.0.1:{port}
{account}TypesConfig /etc/mime.types
<Directory {dir}>
    Require all granted
    AllowOverride All
    Options FollowSymLinks
    DirectoryIndex index.php index.html
</Directory>
<FilesMatch \"^\\.ht\">
    Require all denied
</FilesMatch>
AddType application/x-httpd-php .php
{hosts}",
        php = php.display(),
        trace = std::env::var("HOWDAH_REWRITE_LOG").unwrap_or_else(|_| "warn".to_owned()),
    )
}

fn rustix_is_root() -> bool {
    let output = Command::new("id").arg("-u").output().unwrap();
    output.stdout == b"0\n"
}

/// Apache's workers are another user.
fn make_readable(top: &Path) {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(top, fs::Permissions::from_mode(0o755)).unwrap();
}
