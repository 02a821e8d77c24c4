//! Finds the admin address of a running server: in the command's settings, or, if these have none, by searching.

use std::io::ErrorKind;
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::address::{ListenAddr, SocketPlace};
use crate::cli::ControlFlags;
use crate::origin::{ConfigError, ConfigErrors, Origin};
use crate::secret::Secret;
use crate::settings::Settings;
use crate::settings_file::{FILE_NAME, read_file};
use crate::source::{Environment, Scope, Source};

/// Maximum time to connect to an address.
const CONNECT_TIMEOUT: Duration = Duration::from_millis(500);

/// The admin endpoint of a running server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdminAddress {
    /// Address of the endpoint.
    pub addr: ListenAddr,
    /// Token that requests must carry.
    pub token: Option<Secret>,
}

/// Finds the server for `howdah status`, `reload` and `stop`: from flags, environment or `howdah.toml`. If these name
/// none, it is the only server that responds among the default server, those with settings in `/etc/howdah`, and those
/// with a socket in the usual directories.
///
/// # Errors
/// Errors in the relevant settings, or several responding servers.
pub fn find_admin(flags: &ControlFlags) -> Result<AdminAddress, ConfigErrors> {
    find_admin_in(flags, &Environment::of_process())
}

fn find_admin_in(flags: &ControlFlags, environment: &Environment) -> Result<AdminAddress, ConfigErrors> {
    let file = read_file(flags.serve.config.as_deref(), environment)?;
    let mut source = Source::new(file.as_ref(), &flags.serve.values, environment, Vec::new());
    let settings = Settings::read(&mut source, Scope::Top);
    source.errors.retain(|error| matches!(error.setting.as_str(), "admin" | "admin_token" | "listen"));
    if !source.errors.is_empty() {
        return Err(ConfigErrors(source.errors));
    }
    if source.origins.of("admin") != Origin::Default {
        return Ok(AdminAddress { addr: settings.admin, token: settings.admin_token });
    }
    let paths: Vec<PathBuf> = admin_dirs(environment).map(|dir| dir.join(admin_name(&settings.listen))).collect();
    let at = |path: &PathBuf| AdminAddress { addr: ListenAddr::Unix(path.clone()), token: None };
    let there = paths.iter().find(|path| path.exists()).map(at);
    if file.is_some() || source.origins.of("listen") != Origin::Default || there.as_ref().is_some_and(responds) {
        return Ok(there.unwrap_or_else(|| at(paths.first().unwrap_or(&PathBuf::new()))));
    }
    let installed = installed(environment);
    let mut found: Vec<Candidate> = installed.iter().cloned().chain(with_sockets(environment)).collect();
    let mut seen: Vec<ListenAddr> = Vec::new();
    found.retain(|(_, admin)| {
        let is_new = !seen.contains(&admin.addr);
        seen.push(admin.addr.clone());
        is_new && responds(admin)
    });
    match &found[..] {
        [(_, one)] => Ok(one.clone()),
        // The error names the packaged server's address.
        [] => Ok(installed
            .into_iter()
            .next()
            .map(|(_, admin)| admin)
            .or(there)
            .unwrap_or_else(|| at(paths.first().unwrap_or(&PathBuf::new())))),
        several => {
            let names: Vec<&str> = several.iter().map(|(flag, _)| flag.as_str()).collect();
            let message = format!("several servers are running; choose one: {}", names.join(", or "));
            Err(ConfigErrors(vec![ConfigError { origin: None, setting: String::new(), message }]))
        }
    }
}

/// A server that may be running, with the flag that selects it.
type Candidate = (String, AdminAddress);

/// Servers with settings where packages install them; `howdah.toml` comes first.
fn installed(environment: &Environment) -> Vec<Candidate> {
    let Some(dir) = &environment.settings_dir else { return Vec::new() };
    let mut files: Vec<PathBuf> = names_in(dir, |name| name.ends_with(".toml"));
    files.sort_by_key(|path| (!path.ends_with(FILE_NAME), path.clone()));
    let admin = |path: &PathBuf| {
        let file = read_file(Some(path), environment).ok()??;
        let none = std::collections::BTreeMap::new();
        let mut source = Source::new(Some(&file), &none, environment, Vec::new());
        let settings = Settings::read(&mut source, Scope::Top);
        let addr = match source.origins.of("admin") {
            Origin::Default => ListenAddr::Unix(PathBuf::from("/run").join(admin_name(&settings.listen))),
            _ => settings.admin,
        };
        Some((format!("--config {}", path.display()), AdminAddress { addr, token: settings.admin_token }))
    };
    files.iter().filter_map(admin).collect()
}

/// Servers with sockets in the default directories.
fn with_sockets(environment: &Environment) -> Vec<Candidate> {
    let sockets = admin_dirs(environment)
        .flat_map(|dir| names_in(&dir, |name| name.starts_with("howdah-") && name.ends_with(".sock")));
    let admin = |path: PathBuf| AdminAddress { addr: ListenAddr::Unix(path), token: None };
    sockets.map(|path| (format!("--admin unix:{}", path.display()), admin(path))).collect()
}

fn names_in(dir: &Path, fits: impl Fn(&str) -> bool) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> =
        entries.filter(|entry| entry.file_name().to_str().is_some_and(&fits)).map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

/// `true` if a server listens there, even if this user may not connect.
fn responds(admin: &AdminAddress) -> bool {
    match admin.addr.place() {
        SocketPlace::Unix(path) => match UnixStream::connect(path) {
            Ok(_) => true,
            Err(error) => error.kind() == ErrorKind::PermissionDenied,
        },
        SocketPlace::Tcp(addr) => TcpStream::connect_timeout(&addr, CONNECT_TIMEOUT).is_ok(),
    }
}

/// The directories in which a server's admin socket may be, best first.
pub(crate) fn admin_dirs(environment: &Environment) -> impl Iterator<Item = PathBuf> + use<> {
    let runtime = environment.env.get("XDG_RUNTIME_DIR").filter(|dir| !dir.is_empty()).map(PathBuf::from);
    let temp =
        environment.env.get("TMPDIR").filter(|dir| !dir.is_empty()).map_or_else(std::env::temp_dir, PathBuf::from);
    runtime.into_iter().chain(environment.run_dir.clone()).chain([temp])
}

/// The name of a server's admin socket, derived from its first listen address.
pub(crate) fn admin_name(listen: &[ListenAddr]) -> String {
    let address = listen.first().cloned().unwrap_or_default().to_string();
    let name: String = address.chars().map(|c| if c.is_ascii_alphanumeric() || c == '.' { c } else { '-' }).collect();
    // A socket's path is limited to slightly more than a hundred bytes.
    let name = name.trim_matches('-');
    format!("howdah-{}.sock", &name[name.len().saturating_sub(60)..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_admin_socket_is_named_after_the_first_address() {
        let name = |text: &str| admin_name(&[text.parse().unwrap()]);
        assert_eq!(name("127.0.0.1:8080"), "howdah-127.0.0.1-8080.sock");
        assert_eq!(name("[::1]:80"), "howdah-1--80.sock");
        assert_eq!(name("unix:/run/a/b.sock"), "howdah-unix--run-a-b.sock.sock");
        assert!(name(&format!("unix:/{}", "x".repeat(300))).len() < 80);
    }

    #[test]
    fn a_running_server_is_found_where_its_socket_is() {
        let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let environment = Environment {
            current_dir: one.path().to_path_buf(),
            env: [("XDG_RUNTIME_DIR", one.path()), ("TMPDIR", two.path())]
                .map(|(name, dir)| (name.to_owned(), dir.to_str().unwrap().to_owned()))
                .into(),
            ..Environment::default()
        };
        let mut flags = ControlFlags::default();
        flags.serve.set("listen", "127.0.0.1:1");
        let found = find_admin_in(&flags, &environment).unwrap().addr;
        assert_eq!(found, ListenAddr::Unix(one.path().join("howdah-127.0.0.1-1.sock")));
        std::fs::write(two.path().join("howdah-127.0.0.1-1.sock"), "").unwrap();
        let found = find_admin_in(&flags, &environment).unwrap().addr;
        assert_eq!(found, ListenAddr::Unix(two.path().join("howdah-127.0.0.1-1.sock")));
        flags.serve.set("admin", "127.0.0.1:2");
        assert_eq!(find_admin_in(&flags, &environment).unwrap().addr, "127.0.0.1:2".parse().unwrap());
    }

    #[test]
    fn without_settings_the_only_running_server_is_found() {
        let (dir, etc) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let environment = Environment {
            current_dir: dir.path().to_path_buf(),
            env: ["XDG_RUNTIME_DIR", "TMPDIR"]
                .map(|name| (name.to_owned(), dir.path().to_str().unwrap().to_owned()))
                .into(),
            settings_dir: Some(etc.path().to_path_buf()),
            ..Environment::default()
        };
        let find = || find_admin_in(&ControlFlags::default(), &environment).map(|found| found.addr.to_string());
        let packaged = etc.path().join("admin.sock");
        let text = format!("admin = \"unix:{}\"\n", packaged.display());
        std::fs::write(etc.path().join("howdah.toml"), text).unwrap();
        // None is running: the result is the packaged server.
        assert_eq!(find().unwrap(), format!("unix:{}", packaged.display()));
        // Another server, found only by its socket.
        let other = dir.path().join("howdah-127.0.0.1-9000.sock");
        let _other = std::os::unix::net::UnixListener::bind(&other).unwrap();
        assert_eq!(find().unwrap(), format!("unix:{}", other.display()));
        let _packaged = std::os::unix::net::UnixListener::bind(&packaged).unwrap();
        let said = find().unwrap_err().to_string();
        let (config, admin) = (etc.path().join("howdah.toml"), other.display());
        assert!(said.contains(&format!("--config {}, or --admin unix:{admin}", config.display())), "{said}");
        // The default server takes precedence.
        let default = dir.path().join("howdah-127.0.0.1-8080.sock");
        let _default = std::os::unix::net::UnixListener::bind(&default).unwrap();
        assert_eq!(find().unwrap(), format!("unix:{}", default.display()));
    }
}
