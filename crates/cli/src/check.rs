//! `howdah check`: the settings as they count, and whether a server could start with them: its logs, its addresses, the PHP
//! of each pool. Nothing is changed, no log or socket is made, and a server that runs is not disturbed.

use crate::{certificates, identity, php_hosts, sandbox, tls};
use howdah_budget::machine;
use howdah_config::{AccessTarget, Account, ListenAddr, Loaded, LogTarget, Settings};
use rustix::fs::{Access, access};
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, socket_with, sockopt};
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

/// How long the admin endpoint of a server that runs has to say so.
const ADMIN_PATIENCE: Duration = Duration::from_secs(2);

pub(crate) fn run(loaded: &Loaded) -> ExitCode {
    let settings = &loaded.settings;
    let tls = match tls::prepare(loaded) {
        Ok(tls) => tls,
        Err(errors) => {
            errors.iter().for_each(|error| eprintln!("{error}"));
            return ExitCode::FAILURE;
        }
    };
    let account = identity::account(settings).ok().flatten();
    if let Some(why) = certificates::trouble(&settings.acme, account.as_ref()) {
        eprintln!("{}: [acme] state: {why}", loaded.origins.of("acme.state"));
        return ExitCode::FAILURE;
    }
    print!("{}", loaded.show());
    println!("\n# Machine: {}", machine::here().describe());
    let mut errors = logs(settings, account.as_ref());
    let mut warnings = loaded.warnings();
    addresses(settings, &mut warnings, &mut errors);
    warnings.extend(tls.map(|tls| tls.warnings(account.as_ref())).unwrap_or_default());
    match php_hosts::report(settings) {
        Ok(report) => {
            print!("{report}");
            print!("{}", sandbox::reports(settings));
            let tried = php_hosts::try_to_start(settings);
            warnings.extend(tried.warnings);
            errors.extend(tried.errors);
        }
        Err(found) => errors.extend(found),
    }
    warnings.iter().for_each(|warning| eprintln!("howdah: warning: {warning}"));
    errors.iter().for_each(|error| eprintln!("howdah: {error}"));
    if errors.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Logs that could not be written.
fn logs(settings: &Settings, account: Option<&Account>) -> Vec<String> {
    let mut files: Vec<(String, &Path)> = Vec::new();
    if let LogTarget::File(path) = &settings.log.error {
        files.push(("log.error".to_owned(), path));
    }
    if let AccessTarget::File(path) = &settings.log.access {
        files.push(("log.access".to_owned(), path));
    }
    for site in &settings.sites {
        if let AccessTarget::File(path) = &site.log.access {
            files.push((format!("site {}: log.access", site.name), path));
        }
    }
    files.sort_by_key(|(_, path)| *path);
    files.dedup_by_key(|(_, path)| *path);
    // As root the server opens its logs before it becomes somebody else.
    let who = if account.is_some() { "" } else { " (checked as the user that runs this command)" };
    let trouble = |path: &Path| {
        if path.is_dir() {
            return Some(format!("{} is a directory", path.display()));
        }
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        if !parent.is_dir() {
            return Some(format!("there is no directory {}; make it", parent.display()));
        }
        let (what, needed) =
            if path.exists() { (path, Access::WRITE_OK) } else { (parent, Access::WRITE_OK | Access::EXEC_OK) };
        access(what, needed).err().map(|error| format!("{} cannot be written: {error}{who}", what.display()))
    };
    files.iter().filter_map(|(name, path)| Some(format!("{name}: {}", trouble(path)?))).collect()
}

/// Addresses that could not be listened on. Who has one that is in use may be what this server is to take the place of, and
/// directories in `/run` are made when a service starts: these are warnings.
fn addresses(settings: &Settings, warnings: &mut Vec<String>, errors: &mut Vec<String>) {
    let named = settings.listen.iter().map(|addr| ("listen", addr)).chain([("admin", &settings.admin)]);
    for (name, addr) in named {
        let tried = match addr {
            ListenAddr::Tcp(tcp) | ListenAddr::Https(tcp) => try_tcp(*tcp),
            ListenAddr::Unix(path) => try_unix(path),
        };
        match tried {
            Ok(()) => {}
            Err(Trouble::InUse) if runs(settings) => {}
            Err(Trouble::InUse) => warnings.push(format!(
                "{name}: another process listens on {addr}, and no server of these settings runs; stop that one first, or \
                 name another address"
            )),
            Err(Trouble::NoDirectory(directory)) => {
                let list = if directory.starts_with("/run") { &mut *warnings } else { &mut *errors };
                list.push(format!("{name}: cannot listen on {addr}: there is no directory {}; make it", directory.display()));
            }
            Err(Trouble::Other(why)) => errors.push(format!("{name}: cannot listen on {addr}: {why}")),
        }
    }
}

/// Why an address cannot be listened on.
enum Trouble {
    InUse,
    /// The socket's.
    NoDirectory(PathBuf),
    Other(String),
}

/// Binds the address and does not listen there, so nobody's connection comes here.
fn try_tcp(addr: SocketAddr) -> Result<(), Trouble> {
    let family = if addr.is_ipv6() { AddressFamily::INET6 } else { AddressFamily::INET };
    let bound = socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, None).and_then(|socket| {
        sockopt::set_socket_reuseaddr(&socket, true)?;
        bind(&socket, &addr)
    });
    bound.map_err(std::io::Error::from).map_err(|error| match error.kind() {
        ErrorKind::AddrInUse => Trouble::InUse,
        ErrorKind::PermissionDenied => {
            Trouble::Other(format!("{error}; ports below 1024 need root, or CAP_NET_BIND_SERVICE for the server"))
        }
        ErrorKind::AddrNotAvailable => Trouble::Other(format!("{error}; this machine does not have that address")),
        _ => Trouble::Other(error.to_string()),
    })
}

fn try_unix(path: &Path) -> Result<(), Trouble> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if !parent.is_dir() {
        return Err(Trouble::NoDirectory(parent.to_owned()));
    }
    if let Err(error) = access(parent, Access::WRITE_OK | Access::EXEC_OK) {
        return Err(Trouble::Other(format!("no socket can be made in {}: {error}", parent.display())));
    }
    match std::fs::symlink_metadata(path) {
        Ok(found) if !std::os::unix::fs::FileTypeExt::is_socket(&found.file_type()) => {
            Err(Trouble::Other("the file there is no socket; it is left alone".to_owned()))
        }
        // What a server that ended badly has left is replaced; one that runs is there.
        Ok(_) if UnixStream::connect(path).is_ok() => Err(Trouble::InUse),
        _ => Ok(()),
    }
}

/// True if a server responds where that of these settings would.
fn runs(settings: &Settings) -> bool {
    match &settings.admin {
        ListenAddr::Unix(path) => UnixStream::connect(path).is_ok(),
        ListenAddr::Tcp(addr) | ListenAddr::Https(addr) => {
            std::net::TcpStream::connect_timeout(addr, ADMIN_PATIENCE).is_ok()
        }
    }
}
