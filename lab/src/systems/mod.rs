//! The systems that the lab measures: one adapter each, behind one trait.
//!
//! An adapter finds its system, configures it and explains the configuration, starts it, and knows the role of each of
//! its processes. It does not measure. A started system is ready when it responds to a request for a page.

pub mod apache;
pub mod custom;
pub mod frankenphp;
pub mod front;
pub mod haproxy_fpm;
pub mod howdah;
pub mod nginx;
pub mod nginx_fpm;
pub mod nginx_howdah;
pub mod php_fpm;
pub mod swoole;
pub mod tailored;

use std::collections::BTreeMap;
use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::cases::{App, Case, Pool, Protocol, Setup};
use crate::certificate::Certificate;
use crate::guard::{Guarded, Launch};
use crate::interrupt::Interrupt;
use crate::jit;
use crate::load::{Target, client};
pub use crate::programs::{newest_php, program, version_line};
use crate::record::{Role, SystemStatus};
use front::FrontWorker;

/// Time limit until a system responds.
const READY_WITHIN: Duration = Duration::from_secs(30);

/// Time limit for a system to end after a signal.
const STOP_GRACE: Duration = Duration::from_secs(3);

/// The site that a system serves.
#[derive(Debug, Clone)]
pub struct Site {
    /// The kind of application.
    pub app: App,
    /// Document root.
    pub root: PathBuf,
    /// `true` if `index.php` handles paths that match no file.
    pub front_controller: bool,
    /// Script that boots once and then handles requests, if the application has one.
    pub worker_script: Option<PathBuf>,
    /// Script of a Swoole server, if the application has one.
    pub swoole_script: Option<PathBuf>,
    /// Script that boots once and then handles many requests at once in Howdah's async mode, if there is one.
    pub async_script: Option<PathBuf>,
    /// File that boots the application for snapshots of Howdah, if the application has no worker script.
    pub boot_file: Option<PathBuf>,
    /// Howdah's own recipe that boots the application, if that is measured.
    pub recipe: Option<&'static str>,
    /// Requirement of the front controller to run as a worker of FrankenPHP; none if it cannot.
    pub front_worker: Option<FrontWorker>,
    /// The path that will be requested.
    pub path: String,
    /// PHP workers.
    pub workers: u32,
    /// The exact number of processes or threads, also for systems that otherwise choose it themselves.
    pub processes: Option<u32>,
    /// Other requirements for the pool of workers.
    pub pool: Pool,
    pub setup: Setup,
    /// True if PHP compiles with its JIT.
    pub jit: bool,
    /// Connections that will be open at the same time.
    pub connections: u32,
    /// Its certificate for clients that use TLS.
    pub certificate: Option<Certificate>,
    /// Protocol of those clients over TLS.
    pub protocol: Protocol,
    /// Upstream server for all requests, which are then not handled locally.
    pub upstream: Option<SocketAddr>,
    /// Address to listen on.
    pub address: SocketAddr,
    /// Private directory of this start: configuration, sockets, logs.
    pub dir: PathBuf,
}

impl Site {
    /// Howdah's recipe, if it boots the application in worker mode too.
    pub fn worker_recipe(&self) -> Option<&'static str> {
        self.recipe.filter(|_| self.app == App::User)
    }

    /// Writes a configuration file into the private directory.
    pub fn write(&self, name: &str, content: &str) -> Result<PathBuf> {
        let path = self.dir.join(name);
        fs::write(&path, content).with_context(|| format!("cannot write {}", path.display()))?;
        Ok(path)
    }

    /// Returns a launch with this site's directory as working directory, `NAME.log` as log and the environment for the
    /// JIT.
    pub fn launch(&self, name: &str, program: impl Into<PathBuf>, arguments: &[&str]) -> Launch {
        Launch {
            program: program.into(),
            arguments: arguments.iter().map(|argument| (*argument).to_owned()).collect(),
            environment: if self.jit { jit::environment(&self.dir) } else { Vec::new() },
            directory: self.dir.clone(),
            log: self.dir.join(format!("{name}.log")),
        }
    }
}

/// A started system. Dropping it stops everything.
#[derive(Debug, Default)]
pub struct Running {
    /// Its guards, in the order of their start.
    pub processes: Vec<Guarded>,
    /// Configuration files: name and content.
    pub config_files: BTreeMap<String, String>,
    /// Log files that its parts write.
    pub logs: Vec<PathBuf>,
}

impl Running {
    /// Starts one more process of this system.
    pub fn spawn(&mut self, launch: &Launch) -> Result<()> {
        self.logs.push(launch.log.clone());
        self.processes.push(Guarded::start(launch)?);
        Ok(())
    }

    /// Keeps the content of a configuration file for the results.
    pub fn keep(&mut self, path: &Path) -> Result<()> {
        let name = path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        self.config_files.insert(name, fs::read_to_string(path)?);
        Ok(())
    }

    /// Returns the guards' process ids.
    pub fn roots(&self) -> Vec<u32> {
        self.processes.iter().map(Guarded::root).collect()
    }

    /// Returns the description of the first process that ended, if one did.
    pub fn ended(&self) -> Option<String> {
        self.processes.iter().find_map(|process| {
            let program = process.line.split(' ').find(|word| !word.contains('=')).unwrap_or("a process");
            process.exited().map(|how| format!("{program} ended {how}"))
        })
    }

    /// Returns the last lines of all logs.
    pub fn log_tail(&self, lines: usize) -> Vec<String> {
        let mut tail = Vec::new();
        for path in &self.logs {
            let text = fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
            let all: Vec<&str> = text.lines().collect();
            if all.is_empty() {
                continue;
            }
            tail.push(format!("{}:", path.display()));
            tail.extend(all[all.len().saturating_sub(lines)..].iter().map(|line| format!("  {line}")));
        }
        tail
    }

    /// Stops everything, last started first.
    pub fn stop(mut self) -> Result<()> {
        while let Some(mut process) = self.processes.pop() {
            process.stop(STOP_GRACE)?;
        }
        Ok(())
    }
}

/// Kinds of scripts that a system runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Script {
    /// Any script in the document root.
    Any,
    /// A script that boots once and then handles requests, or a front controller that can.
    Worker,
    /// A Swoole server.
    Swoole,
    /// A script that boots once and then handles many requests at once.
    Async,
    /// A script that boots once, or a recipe.
    WorkerOrRecipe,
    /// A script that boots once, a file that only boots, or a recipe.
    WorkerOrBoot,
}

impl Script {
    /// Returns the reason why an application cannot run in this way, if there is one.
    pub fn unsupported_reason(self, site: &Site) -> Option<&'static str> {
        match self {
            Self::Worker if site.worker_script.is_none() && site.front_worker.is_none() => Some(
                "the application has neither a script that boots once (worker.php in its document root) nor, if it is Symfony's, a \
                 runtime for FrankenPHP (runtime/frankenphp-symfony)",
            ),
            Self::WorkerOrRecipe if site.worker_script.is_none() && site.worker_recipe().is_none() => {
                Some("the application has no script that boots once (worker.php in its document root)")
            }
            Self::Swoole if site.swoole_script.is_none() => {
                Some("the application has no server script for Swoole (swoole.php next to its document root)")
            }
            Self::Async if site.async_script.is_none() => {
                Some("the application has no script for many requests at once (async.php next to its document root)")
            }
            Self::WorkerOrBoot if site.worker_script.is_none() && site.boot_file.is_none() && site.recipe.is_none() => {
                Some(
                    "the application has neither a script that boots once (worker.php in its document root) nor a boot file (boot.php next to it)",
                )
            }
            _ => None,
        }
    }
}

/// One system that can be measured.
pub trait System {
    /// Name on the command line.
    fn id(&self) -> String;

    /// Display name.
    fn title(&self) -> String;

    /// Looks for the system on this machine.
    fn find(&self) -> SystemStatus;

    /// Returns its configuration, with reasons.
    fn tuning(&self) -> Vec<String>;

    /// Returns the kind of script that an application must have for it.
    fn script(&self) -> Script {
        Script::Any
    }

    /// Returns the reason why it cannot serve a case, if there is one.
    fn refuses(&self, _case: &Case) -> Option<String> {
        None
    }

    /// Returns `true` if its adapter can configure TLS with this protocol.
    fn supports_protocol(&self, _over_tls: Protocol) -> bool {
        false
    }

    /// Returns `true` if its adapter can configure a proxy to another server.
    fn proxies(&self) -> bool {
        false
    }

    /// Returns `true` if its adapter applies the site's requirements for the pool, other than the number of workers.
    fn shapes_pool(&self) -> bool {
        false
    }

    fn path(&self, case: &Case) -> String {
        case.path.clone()
    }

    /// Returns the address, if it cannot be configured.
    fn fixed_address(&self) -> Option<SocketAddr> {
        None
    }

    /// Returns the role of a process with this name.
    fn role(&self, process: &str) -> Role;

    /// Starts it. The caller waits until it responds.
    fn start(&self, site: &Site) -> Result<Running>;
}

/// Returns every system that the lab has an adapter for.
pub fn builtin() -> Vec<Box<dyn System>> {
    let mut systems: Vec<Box<dyn System>> = vec![
        Box::new(nginx_fpm::NginxFpm),
        Box::new(apache::Apache),
        Box::new(frankenphp::FrankenPhp { worker: false }),
        Box::new(frankenphp::FrankenPhp { worker: true }),
        Box::new(swoole::Swoole { behind_nginx: false }),
        Box::new(swoole::Swoole { behind_nginx: true }),
    ];
    systems.extend(howdah::Howdah::builtin().into_iter().map(|howdah| Box::new(howdah) as Box<dyn System>));
    systems.push(Box::new(haproxy_fpm::HaproxyFpm));
    let behind_nginx = [howdah::Mode::Classic, howdah::Mode::Worker, howdah::Mode::Snapshot];
    systems.extend(behind_nginx.map(|mode| Box::new(nginx_howdah::NginxHowdah::new(mode)) as Box<dyn System>));
    systems
}

/// Returns the names of [`builtin`].
pub fn builtin_ids() -> Vec<String> {
    builtin().iter().map(|system| system.id()).collect()
}

/// Returns an address on the loopback interface without a listener.
pub fn free_address() -> Result<SocketAddr> {
    use rustix::net::{AddressFamily, SocketAddrV4, SocketFlags, SocketType, bind, getsockname, socket_with};
    // Bound but not listening: a process that is just being started briefly has a copy of the socket.
    let socket =
        socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None).context("no socket")?;
    bind(&socket, &SocketAddrV4::new(std::net::Ipv4Addr::LOCALHOST, 0)).context("no free port")?;
    Ok(SocketAddr::try_from(getsockname(&socket)?)?)
}

/// Fails if a listener already exists there: the lab would measure the wrong server.
pub fn require_free(address: SocketAddr) -> Result<()> {
    if TcpStream::connect_timeout(&address, Duration::from_millis(300)).is_ok() {
        bail!("{address} is taken: something already listens there. Stop it, or give the system another address");
    }
    Ok(())
}

/// Waits until the system responds with anything but "not yet" (502, 503).
pub fn wait_until_ready(running: &Running, target: &Target, interrupt: &Interrupt) -> Result<()> {
    let deadline = Instant::now() + READY_WITHIN;
    loop {
        interrupt.check()?;
        if let Some(how) = running.ended() {
            bail!("{how} before it answered");
        }
        let reason = match client::ask(target, Duration::from_secs(10)) {
            Ok((response, _)) if !matches!(response.status, 502 | 503) => return Ok(()),
            Ok((response, _)) => format!("it answers with status {}", response.status),
            Err(error) => format!("{error:#}"),
        };
        if Instant::now() > deadline {
            bail!("not ready within {} s: {reason}", READY_WITHIN.as_secs());
        }
        thread::sleep(Duration::from_millis(20));
    }
}

/// Returns the account that Debian's servers use when the lab runs as root.
pub fn drop_to() -> Option<&'static str> {
    rustix::process::geteuid().is_root().then_some("www-data")
}

/// Returns a status of [`SystemStatus::Found`] with these versions.
pub fn found(versions: impl IntoIterator<Item = (&'static str, Option<String>)>) -> SystemStatus {
    SystemStatus::Found {
        versions: versions
            .into_iter()
            .map(|(name, version)| (name.to_owned(), version.unwrap_or_else(|| "unknown version".into())))
            .collect(),
    }
}

/// Returns a status of [`SystemStatus::Missing`].
pub fn missing(what: impl Into<String>, how: impl Into<String>) -> SystemStatus {
    SystemStatus::Missing { what: what.into(), how: how.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_taken_port_is_named() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let error = require_free(address).unwrap_err().to_string();
        assert!(error.contains(&address.to_string()) && error.contains("taken"), "{error}");
        assert!(require_free(free_address().unwrap()).is_ok());
    }
}
