//! `howdah check`: prints the effective settings, and checks whether a server could start with them: logs, addresses,
//! the PHP of each pool. It creates no log, listens on no address, and does not disturb a running server.

use crate::commands::sandbox;
use crate::control::client;
use crate::output::{self, complain};
use crate::server::checks::{self, Depth};
use crate::server::detected;
use crate::server::fd_store::FdStore;
use crate::server::identity;
use crate::server::php_hosts;
use crate::server::socket_files;
use howdah_budget::machine;
use howdah_config::{
    AccessTarget, Account, AdminAddress, ConfigError, Environment, ListenAddr, Loaded, LogService, LogTarget,
    MissingDirectory, ServeFlags, Settings, SocketPlace,
};
use howdah_tls::Store;
use rustix::fs::{Access, access};
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, socket_with, sockopt};
use std::collections::HashSet;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

/// Maximum time for a running server to report its addresses.
const ADMIN_TIMEOUT: Duration = Duration::from_secs(5);

/// Collected findings.
#[derive(Default)]
struct Findings {
    errors: Vec<String>,
    warnings: Vec<String>,
    /// Print one line, and errors and warnings: the journal should not get every setting at each start of the service.
    is_short: bool,
}

impl Findings {
    /// Prints a part of the report.
    fn print(&mut self, text: &str) {
        if !self.is_short {
            self.errors.extend(output::print(text).err().map(|error| format!("{error:#}")));
        }
    }
}

/// Flags of `serve`. A file given instead of the document root is the configuration, as in the commands of other
/// servers.
pub(crate) fn flags(mut flags: ServeFlags) -> ServeFlags {
    let root = flags.values.get("root").and_then(|roots| roots.first()).map(PathBuf::from);
    if root.is_some_and(|root| root.is_file()) && flags.config.is_none() {
        flags.config = flags.take_root();
    }
    flags
}

/// `wrong` are the mistakes in the settings themselves. The other checks run anyway, so that everything is reported at
/// once.
pub(crate) fn run(loaded: &Loaded, wrong: &[ConfigError]) -> ExitCode {
    let settings = &loaded.settings;
    let account = identity::account(settings).ok().flatten();
    let mut found = Findings { is_short: output::is_journal(), ..Findings::default() };
    found.errors.extend(wrong.iter().map(ToString::to_string));
    if wrong.is_empty() {
        let (machine, sites) = (machine::here().describe(), detected::of_sites(loaded));
        found.print(&format!("{}\n# Machine: {machine}\n{sites}", loaded.show()));
    }
    match checks::check(loaded, Store::new(), Depth::WithPhp) {
        Ok(checked) => {
            if wrong.is_empty() {
                let users = identity::report(settings);
                found.print(&format!("{}{}{users}", checked.hosts, sandbox::reports(settings)));
            }
            found.warnings.extend(checked.warnings);
            let variables = howdah_config::unknown_variables(&Environment::of_process().env);
            // Slips are among the warnings above.
            found.warnings.extend(variables.iter().filter(|variable| !variable.is_slip()).map(ToString::to_string));
            found.warnings.extend(loaded.hidden_from_service());
            php_hosts::try_to_start(settings, &mut found.warnings, &mut found.errors);
        }
        // Programs that do not run need no further test.
        Err(errors) => found.errors.extend(errors),
    }
    found.errors.extend(logs(settings, account.as_ref()));
    if !wrong.iter().any(|error| matches!(&*error.setting, "listen" | "admin")) {
        addresses(settings, &mut found);
    }
    let mut said = HashSet::new();
    found.errors.retain(|error| said.insert(error.clone()));
    found.warnings.iter().for_each(|warning| complain(format_args!("howdah: warning: {warning}")));
    for (at, error) in found.errors.iter().enumerate() {
        // Mistakes in settings begin with their location.
        let prefix = if at < wrong.len() { "" } else { "howdah: " };
        complain(format_args!("{prefix}{}", error.strip_prefix("howdah: ").unwrap_or(error)));
    }
    if !found.errors.is_empty() {
        return ExitCode::FAILURE;
    }
    if found.is_short {
        let file = loaded.file.as_deref().map_or_else(|| "the settings".to_owned(), |file| file.display().to_string());
        let _ = output::print(format!("checked {file}: no errors\n"));
    }
    ExitCode::SUCCESS
}

/// Returns the logs that cannot be written.
fn logs(settings: &Settings, account: Option<&Account>) -> Vec<String> {
    let mut files: Vec<(String, &Path)> = Vec::new();
    let mut services: Vec<(String, &LogService)> = Vec::new();
    let noted = settings.pools.iter().filter(|pool| pool.slow_log_after.is_some());
    let of_pools = noted.map(|pool| (format!("pool {}: slow_log", pool.name), &pool.slow_log));
    for (name, target) in of_pools.chain([("log.error".to_owned(), &settings.log.error)]) {
        match target {
            LogTarget::Stderr => {}
            LogTarget::File(path) => files.push((name, path)),
            LogTarget::Service(service) => services.push((name, service)),
        }
    }
    let of_sites = settings.sites.iter().map(|site| (format!("site {}: log.access", site.name), &site.log.access));
    for (name, target) in of_sites.chain([("log.access".to_owned(), &settings.log.access)]) {
        match target {
            AccessTarget::Off | AccessTarget::Stdout | AccessTarget::Stderr => {}
            AccessTarget::File(path) => files.push((name, path)),
            AccessTarget::Service(service) => services.push((name, service)),
        }
    }
    files.sort_by_key(|(_, path)| *path);
    files.dedup_by_key(|(_, path)| *path);
    // As root, the server opens its logs before it switches users.
    let who = if account.is_some() { "" } else { " (checked as the user that runs this command)" };
    let trouble = |path: &Path| {
        if path.is_dir() {
            return Some(format!("{} is a directory", path.display()));
        }
        let parent = match MissingDirectory::check(path) {
            Ok(parent) => parent,
            Err(missing) => return Some(missing.to_string()),
        };
        let (what, needed) =
            if path.exists() { (path, Access::WRITE_OK) } else { (parent, Access::WRITE_OK | Access::EXEC_OK) };
        access(what, needed).err().map(|error| format!("{} cannot be written: {error}{who}", what.display()))
    };
    let of_files = files.iter().filter_map(|(name, path)| Some(format!("{name}: {}", trouble(path)?)));
    let of_services = services.iter().filter_map(|(name, service)| {
        let (LogService::Journald(path) | LogService::SyslogUnix(path)) = service else { return None };
        let reached = UnixDatagram::unbound().and_then(|socket| socket.connect(path));
        Some(format!("{name}: cannot reach {service}: {}; is it running?", reached.err()?))
    });
    of_files.chain(of_services).collect()
}

/// Checks that the settings' addresses can be bound. Addresses of a running server with these settings are skipped, and
/// sockets that systemd keeps for the server are the server's. Only warnings: a used address if no server runs (the
/// server to be replaced may have it), a missing directory in `/run` (created when the service starts), and an address
/// that this user may not bind.
fn addresses(settings: &Settings, found: &mut Findings) {
    let http3 = settings.listen.iter().filter_map(|addr| match addr {
        ListenAddr::Https(udp) if settings.tls.http3 => Some(*udp),
        _ => None,
    });
    let tried: Vec<(&str, &ListenAddr, Result<(), BindProblem>)> = [("admin", &settings.admin)]
        .into_iter()
        .chain(settings.listen.iter().map(|addr| ("listen", addr)))
        .map(|(name, addr)| {
            let tried = match addr.place() {
                SocketPlace::Tcp(tcp) => try_internet(tcp, SocketType::STREAM),
                SocketPlace::Unix(path) => try_unix(path),
            };
            (name, addr, tried)
        })
        .collect();
    let is_used = tried.iter().any(|(.., tried)| matches!(tried, Err(BindProblem::InUse)));
    let running = if is_used { running(settings) } else { RunningServer::No };
    let mut kept = if is_used && matches!(running, RunningServer::No) { FdStore::now() } else { FdStore::default() };
    for (name, addr, tried) in tried {
        let Err(trouble) = tried else { continue };
        match (trouble, &running) {
            (BindProblem::InUse, RunningServer::On(own))
                if own.iter().any(|own| place(own) == place(&addr.to_string())) => {}
            // The running server did not report its addresses, so this may be one of them.
            (BindProblem::InUse, RunningServer::Silent) => {}
            (BindProblem::InUse, RunningServer::On(_)) => {
                found.errors.push(format!(
                    "{name}: cannot listen on {addr}: another process than the running server uses that address"
                ));
            }
            (BindProblem::InUse, RunningServer::No) if kept.has(addr) => {}
            (BindProblem::InUse, RunningServer::No) => found.warnings.push(format!(
                "{name}: another process listens on {addr}, and no server with these settings is running: stop that \
                 process, or choose another address"
            )),
            (BindProblem::NoDirectory(missing), _) if socket_files::is_made_at_start(&missing) => {}
            (BindProblem::NoDirectory(missing), _) => {
                let list = if missing.path().starts_with("/run") { &mut found.warnings } else { &mut found.errors };
                list.push(format!("{name}: cannot listen on {addr}: {missing}"));
            }
            // The service may have more permissions than this command's user.
            (BindProblem::Denied(why), _) => found.warnings.push(format!("{name}: cannot listen on {addr}: {why}")),
            (BindProblem::Other(why), _) => found.errors.push(format!("{name}: cannot listen on {addr}: {why}")),
        }
    }
    // Only without a running server: with one, the port may or may not be its HTTP/3 endpoint.
    for udp in http3.filter(|_| matches!(running, RunningServer::No)) {
        if let Err(BindProblem::InUse) = try_internet(udp, SocketType::DGRAM)
            && !kept.has(&ListenAddr::Https(udp))
        {
            found.warnings.push(format!("listen: another process uses UDP port {} of {udp}", udp.port()));
        }
    }
}

/// The socket of an address, without its protocol.
fn place(addr: &str) -> &str {
    addr.strip_prefix("https://").or_else(|| addr.strip_prefix("fastcgi:")).unwrap_or(addr)
}

/// Reasons why an address cannot be bound.
enum BindProblem {
    InUse,
    NoDirectory(MissingDirectory),
    Denied(String),
    Other(String),
}

/// Binds the address without listening, so that no client connects.
fn try_internet(addr: SocketAddr, kind: SocketType) -> Result<(), BindProblem> {
    let family = if addr.is_ipv6() { AddressFamily::INET6 } else { AddressFamily::INET };
    let bound = socket_with(family, kind, SocketFlags::CLOEXEC, None).and_then(|socket| {
        // For TCP, ignore old connections that are still closing. For UDP the option would allow two sockets to share
        // the address.
        sockopt::set_socket_reuseaddr(&socket, kind == SocketType::STREAM)?;
        bind(&socket, &addr)
    });
    bound.map_err(std::io::Error::from).map_err(|error| match error.kind() {
        ErrorKind::AddrInUse => BindProblem::InUse,
        ErrorKind::PermissionDenied => {
            BindProblem::Denied(format!("{error}; ports below 1024 need root, or CAP_NET_BIND_SERVICE for the server"))
        }
        ErrorKind::AddrNotAvailable => BindProblem::Other(format!("{error}; this machine does not have that address")),
        _ => BindProblem::Other(error.to_string()),
    })
}

fn try_unix(path: &Path) -> Result<(), BindProblem> {
    let parent = MissingDirectory::check(path).map_err(BindProblem::NoDirectory)?;
    if let Err(error) = access(parent, Access::WRITE_OK | Access::EXEC_OK) {
        return Err(BindProblem::Other(format!("cannot create a socket in {}: {error}", parent.display())));
    }
    match std::fs::symlink_metadata(path) {
        Ok(found) if !std::os::unix::fs::FileTypeExt::is_socket(&found.file_type()) => Err(BindProblem::Other(
            "the file there is not a socket, so it is not replaced: remove it, or choose another path".to_owned(),
        )),
        // The server replaces the file of a crashed server; a file with a listener is in use.
        Ok(_) if UnixStream::connect(path).is_ok() => Err(BindProblem::InUse),
        _ => Ok(()),
    }
}

/// Server found at the admin address of these settings.
enum RunningServer {
    No,
    /// Running on these addresses.
    On(Vec<String>),
    /// Running, but it does not report its addresses.
    Silent,
}

fn running(settings: &Settings) -> RunningServer {
    let there = match settings.admin.place() {
        SocketPlace::Unix(path) => UnixStream::connect(path).is_ok(),
        SocketPlace::Tcp(addr) => std::net::TcpStream::connect_timeout(&addr, ADMIN_TIMEOUT).is_ok(),
    };
    if !there {
        return RunningServer::No;
    }
    let admin = AdminAddress { addr: settings.admin.clone(), token: settings.admin_token.clone() };
    let listens = client::ask_within(&admin, "GET", "/status", ADMIN_TIMEOUT).ok().and_then(|(code, body)| {
        let status: serde_json::Value = serde_json::from_str(&body).ok().filter(|_| code == 200)?;
        let listens = status["listen"].as_array()?.iter().filter_map(|addr| addr.as_str());
        Some(listens.map(str::to_owned).chain([settings.admin.to_string()]).collect())
    });
    listens.map_or(RunningServer::Silent, RunningServer::On)
}
