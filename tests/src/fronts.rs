//! Web servers other than nginx that forward requests for scripts over FastCGI.

use crate::client::{Conn, Target};
use crate::process::{PATIENCE, eventually, signal, wait_for_exit};
use crate::site::Port;
use rustix::process::Signal;
use std::fs;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

const APACHE: [&str; 7] = ["mpm_event", "authz_core", "dir", "mime", "rewrite", "proxy", "proxy_fcgi"];
/// Caddy, below the build directory.
pub const CADDY: &str = "web-servers/caddy";
/// Additional Apache modules for arbitrary virtual hosts.
const APACHE_FURTHER: [&str; 10] = [
    "authz_host",
    "authz_user",
    "authn_core",
    "authn_file",
    "auth_basic",
    "alias",
    "headers",
    "expires",
    "env",
    "setenvif",
];

/// A program below the build directory that `scripts/unpack-package.sh` unpacks. Tests that need it are skipped if it is
/// missing.
pub fn unpacked(file: &str) -> Option<PathBuf> {
    let target = std::env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../target"), PathBuf::from);
    let file = target.join(file);
    file.exists().then(|| file.canonicalize().unwrap_or_else(|e| panic!("{e}")))
}

/// A running web server. Dropping it ends the server.
pub struct Front {
    process: Child,
    port: Port,
    _directory: TempDir,
}

impl Front {
    /// Apache with mod_proxy_fcgi, in front of the server on a socket. `/pretty/…` is rewritten to `/dump.php/…`.
    pub fn apache(root: &Path, socket: &Path) -> Self {
        let (root, socket) = (root.display(), socket.display());
        Self::apache_with(|_| {
            format!(
                "DocumentRoot {root}\nDirectoryIndex index.php\n<Directory {root}>\nRequire all granted\nRewriteEngine on\n\
                 RewriteRule ^pretty/(.*)$ dump.php/$1 [L]\n</Directory>\n\
                 <FilesMatch \"\\.php$\">\nSetHandler \"proxy:unix:{socket}|fcgi://localhost\"\n</FilesMatch>\n"
            )
        })
    }

    /// Apache with the virtual hosts that `hosts` returns for its port.
    pub fn apache_with(hosts: impl FnOnce(u16) -> String) -> Self {
        let names = APACHE.iter().chain(&APACHE_FURTHER);
        let modules: String =
            names.map(|name| format!("LoadModule {name}_module /usr/lib/apache2/modules/mod_{name}.so\n")).collect();
        let user = if rustix::process::geteuid().is_root() { "User www-data\nGroup www-data" } else { "" };
        Self::start("/usr/sbin/apache2", &["-D", "FOREGROUND", "-f"], |dir, port| {
            let (dir, hosts) = (dir.display(), hosts(port));
            format!(
                "ServerRoot {dir}\nDefaultRuntimeDir {dir}\nPidFile {dir}/pid\nErrorLog {dir}/error.log\n{modules}{user}\n\
                 ServerName localhost\nListen 127.0.0.1:{port}\nTypesConfig /etc/mime.types\n\
                 # Ignores files of others, such as /tmp/.htaccess.\n<Directory />\nAllowOverride None\n</Directory>\n{hosts}"
            )
        })
    }

    /// HAProxy with an `fcgi-app`, which keeps connections open.
    pub fn haproxy(root: &Path, socket: &Path) -> Self {
        let (root, socket) = (root.display(), socket.display());
        Self::start("/usr/sbin/haproxy", &["-db", "-f"], |_, port| {
            format!(
                "defaults\n mode http\n timeout connect 10s\n timeout client 60s\n timeout server 60s\n\
                 fcgi-app php\n docroot {root}\n index index.php\n path-info ^(/.+\\.php)(/.*)?$\n\
                 frontend f\n bind 127.0.0.1:{port}\n default_backend php\n\
                 backend php\n use-fcgi-app php\n server s {socket} proto fcgi\n"
            )
        })
    }

    /// lighttpd with mod_fastcgi. `/pretty/…` is rewritten to `/dump.php/…`.
    pub fn lighttpd(root: &Path, socket: &Path) -> Self {
        let (root, socket) = (root.display(), socket.display());
        Self::start("/usr/sbin/lighttpd", &["-D", "-f"], |dir, port| {
            let dir = dir.display();
            format!(
                "server.modules = (\"mod_rewrite\", \"mod_fastcgi\")\nserver.document-root = \"{root}\"\n\
                 server.bind = \"127.0.0.1\"\nindex-file.names = (\"index.php\")\nserver.port = {port}\nserver.errorlog = \"{dir}/error.log\"\n\
                 server.upload-dirs = (\"{dir}\")\n\
                 url.rewrite-once = (\"^/pretty/(.*)$\" => \"/dump.php/$1\")\n\
                 fastcgi.server = (\".php\" => ((\"socket\" => \"{socket}\")))\n"
            )
        })
    }

    /// Caddy with its `php_fastcgi`. `/pretty/…` is rewritten to `/dump.php/…`.
    ///
    /// # Panics
    /// Caddy is not unpacked.
    pub fn caddy(root: &Path, socket: &Path) -> Self {
        let (root, socket) = (root.display(), socket.display());
        Self::caddy_with(|port| {
            format!(
                ":{port} {{\n\troot * {root}\n\t@pretty path_regexp pretty ^/pretty/(.*)$\n\
                 \trewrite @pretty /dump.php/{{re.pretty.1}}\n\tphp_fastcgi unix/{socket}\n}}\n"
            )
        })
    }

    /// Caddy with the sites that `sites` returns for its port.
    ///
    /// # Panics
    /// Caddy is not unpacked.
    pub fn caddy_with(sites: impl FnOnce(u16) -> String) -> Self {
        let program = unpacked(CADDY).unwrap_or_else(|| panic!("no {CADDY}"));
        let arguments = ["run", "--adapter", "caddyfile", "--config"];
        Self::start(&program.display().to_string(), &arguments, |_, port| {
            format!("{{\n\tadmin off\n\tauto_https off\n}}\n{}", sites(port))
        })
    }

    fn start(program: &str, arguments: &[&str], configuration: impl FnOnce(&Path, u16) -> String) -> Self {
        let directory = tempfile::Builder::new().prefix("howdah-front-").tempdir().unwrap_or_else(|e| panic!("{e}"));
        let port = Port::hold();
        let file = directory.path().join("front.conf");
        fs::write(&file, configuration(directory.path(), port.number)).unwrap_or_else(|e| panic!("{e}"));
        let output = fs::File::create(directory.path().join("output")).unwrap_or_else(|e| panic!("{e}"));
        let errors = output.try_clone().unwrap_or_else(|e| panic!("{e}"));
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "TERM", "--", program]).args(arguments).arg(&file).env_remove("APACHE_RUN_DIR");
        // Caddy's own files.
        command.env("HOME", directory.path());
        let process = command.stdin(Stdio::null()).stdout(output).stderr(errors).spawn();
        let process = process.unwrap_or_else(|e| panic!("cannot start {program}: {e}"));
        let front = Self { process, port, _directory: directory };
        let listens = eventually(PATIENCE, || TcpStream::connect(("127.0.0.1", front.port.number)).is_ok());
        let said = fs::read_to_string(file.with_file_name("output")).unwrap_or_default();
        assert!(listens, "{program} does not listen: {said}");
        front
    }

    pub fn port(&self) -> u16 {
        self.port.number
    }

    pub fn conn(&self) -> Conn {
        Conn::open(&Target::Tcp(([127, 0, 0, 1], self.port.number).into()))
    }
}

impl Drop for Front {
    fn drop(&mut self) {
        signal(self.process.id(), Signal::TERM);
        if wait_for_exit(&mut self.process, PATIENCE).is_none() {
            signal(self.process.id(), Signal::KILL);
            let _ = self.process.wait();
        }
    }
}
