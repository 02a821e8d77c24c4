//! Notifications to the service manager, in systemd's protocol (sd_notify(3)): the server is ready, reloads, stops, is
//! alive, has a new main process after an upgrade, and stores sockets for the next process. Without `NOTIFY_SOCKET`
//! none are sent.
//!
//! Sending never blocks. The supervision loop (`Service::ping_watchdog`) repeats notifications that did not fit into the
//! socket's queue. It also sends the watchdog notifications, so a hanging loop is noticed.

use crate::server::own_program::TAKES_OVER;
use howdah_config::SocketPlace;
use howdah_protocol::listener::ListenerHandle;
use parking_lot::Mutex;
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrUnix, sendmsg_addr};
use rustix::pipe::{PipeFlags, pipe_with};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ffi::OsString;
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe::Receiver;

/// Maximum time that a replaced process waits for the service manager to process its notifications.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(5);

/// Interval at which unsent notifications are repeated.
const RETRY_INTERVAL: Duration = Duration::from_millis(200);

/// Maximum number of queued messages; beyond it the oldest are dropped.
const MAX_WAITING: usize = 64;

/// Prefix of the names of stored sockets.
const KEPT_PREFIX: &str = "howdah-";

/// The connection to the service manager. `Default` has none.
#[derive(Debug, Default)]
pub(crate) struct Service {
    manager: Option<Manager>,
}

#[derive(Debug)]
struct Manager {
    socket: UnixDatagram,
    to: SocketAddr,
    /// Interval of watchdog notifications; `None` without a watchdog.
    alive: Option<Duration>,
    notify_state: Mutex<NotifyState>,
}

#[derive(Debug, Default)]
struct NotifyState {
    waiting: VecDeque<Message>,
    /// Names of the sockets that the service manager stores.
    kept: BTreeSet<String>,
    /// `true` if another process notifies for the service.
    quiet: bool,
}

#[derive(Debug)]
struct Message {
    text: String,
    /// The attached socket.
    socket: Option<Arc<ListenerHandle>>,
}

/// Environment variables of the service manager.
struct NotifyEnvironment {
    socket: Option<OsString>,
    watchdog_us: Option<OsString>,
    watchdog_pid: Option<OsString>,
    takes_over: bool,
    /// Names of the stored sockets that this process was started with.
    kept: BTreeSet<String>,
}

impl Service {
    /// The service manager in this process's environment.
    pub(crate) fn of_this_process() -> Self {
        let environment = NotifyEnvironment {
            socket: std::env::var_os("NOTIFY_SOCKET").filter(|path| !path.is_empty()),
            watchdog_us: std::env::var_os("WATCHDOG_USEC"),
            watchdog_pid: std::env::var_os("WATCHDOG_PID"),
            takes_over: std::env::var_os(TAKES_OVER).is_some(),
            kept: passed_names().filter(|name| is_kept(name)).collect(),
        };
        match Manager::named(&environment) {
            Ok(manager) => Self { manager },
            Err(why) => {
                tracing::warn!("systemd notifications are disabled: NOTIFY_SOCKET: {why}");
                Self::default()
            }
        }
    }

    /// Reports that the pools boot, and extends the service manager's start timeout.
    pub(crate) fn starting(&self) {
        self.say("EXTEND_TIMEOUT_USEC=60000000\nSTATUS=PHP boots");
    }

    /// Reports that the server is ready, with this status text.
    pub(crate) fn ready(&self, status: &str) {
        self.say(&format!("READY=1\nSTATUS={}", line(status)));
    }

    /// Reports that a reload has begun; `ready` reports its end.
    pub(crate) fn reloading(&self) {
        // systemd uses the time to tell several reloads apart.
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
        let now = Duration::new(now.tv_sec.unsigned_abs(), u32::try_from(now.tv_nsec).unwrap_or(0)).as_micros();
        self.say(&format!("RELOADING=1\nMONOTONIC_USEC={now}\nSTATUS=reloading"));
    }

    /// Reports that the server stops.
    pub(crate) fn stopping(&self) {
        self.say("STOPPING=1\nSTATUS=stopping: finishing running requests");
    }

    /// Stores these sockets with the service manager (`FDSTORE=1`), and removes earlier ones that are not among them.
    /// If this process ends, the next one is started with them, and clients that connect meanwhile wait instead of
    /// being refused. Unix sockets are not stored but bound anew: their file is removed with the process.
    pub(crate) fn keep(&self, sockets: &[Arc<ListenerHandle>]) {
        let Some(manager) = &self.manager else { return };
        let named: BTreeMap<String, &Arc<ListenerHandle>> =
            sockets.iter().filter_map(|socket| Some((kept_name(socket)?, socket))).collect();
        let mut notify_state = manager.notify_state.lock();
        let gone: Vec<String> = notify_state.kept.iter().filter(|name| !named.contains_key(*name)).cloned().collect();
        for name in gone {
            notify_state.add(format!("FDSTOREREMOVE=1\nFDNAME={name}"), None);
            notify_state.kept.remove(&name);
        }
        for (name, socket) in named {
            if let Some(quic) = socket.quic() {
                quic.outlives_process();
            }
            if !notify_state.kept.contains(&name) {
                notify_state.add(format!("FDSTORE=1\nFDNAME={name}"), Some(socket.clone()));
                notify_state.kept.insert(name);
            }
        }
        manager.send(&mut notify_state);
    }

    /// Reports that another process is the main process now. This one sends no more notifications.
    pub(crate) fn replaced_by(&self, pid: u32) {
        // The new process gets a full watchdog interval before its first sign of life.
        self.say(&format!("MAINPID={pid}\nREADY=1\nWATCHDOG=1\nSTATUS=process {pid} has taken over"));
        if let Some(manager) = &self.manager {
            manager.notify_state.lock().quiet = true;
        }
    }

    /// Waits, for a limited time, until the service manager has processed all notifications. A process that exits
    /// before that would be noticed before its successor is known.
    pub(crate) async fn heard(&self) {
        if let Some(manager) = &self.manager
            && tokio::time::timeout(FLUSH_TIMEOUT, manager.heard()).await.is_err()
        {
            tracing::warn!(
                "the service manager did not acknowledge the new main process within {FLUSH_TIMEOUT:?}: exiting anyway"
            );
        }
    }

    fn say(&self, message: &str) {
        let Some(manager) = &self.manager else { return };
        let mut notify_state = manager.notify_state.lock();
        notify_state.add(message.to_owned(), None);
        manager.send(&mut notify_state);
    }

    /// Repeats unsent notifications and notifies the watchdog. Polled as long as the server serves; never returns.
    pub(crate) async fn ping_watchdog(&self) {
        let Some(manager) = &self.manager else { return std::future::pending().await };
        let period = manager.alive.unwrap_or(Duration::from_secs(3600));
        // Not immediately: the predecessor has yet to name this process to the service manager.
        let mut alive = tokio::time::interval_at(tokio::time::Instant::now() + period, period);
        alive.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            let waits = !manager.notify_state.lock().waiting.is_empty();
            tokio::select! {
                _ = alive.tick() => {
                    if manager.alive.is_some() && !manager.notify_state.lock().quiet {
                        // A sign of life without room is not a loss: the queue holds other notifications, or the socket
                        // has no reader.
                        let _ = manager.socket.send_to_addr(b"WATCHDOG=1", &manager.to);
                    }
                }
                () = tokio::time::sleep(RETRY_INTERVAL), if waits => manager.send(&mut manager.notify_state.lock()),
            }
        }
    }
}

impl NotifyState {
    fn add(&mut self, text: String, socket: Option<Arc<ListenerHandle>>) {
        if self.quiet {
            return;
        }
        if self.waiting.len() == MAX_WAITING {
            self.waiting.pop_front();
        }
        self.waiting.push_back(Message { text, socket });
    }
}

impl Manager {
    fn named(environment: &NotifyEnvironment) -> io::Result<Option<Self>> {
        let Some(path) = &environment.socket else { return Ok(None) };
        let to = match path.as_bytes() {
            [b'@', name @ ..] => SocketAddr::from_abstract_name(name)?,
            [b'/', ..] => SocketAddr::from_pathname(path)?,
            _ => return Err(io::Error::other("neither a path nor an abstract name")),
        };
        let socket = UnixDatagram::unbound()?;
        socket.set_nonblocking(true)?;
        let notify_state = NotifyState { kept: environment.kept.clone(), ..NotifyState::default() };
        Ok(Some(Self { socket, to, alive: environment.watchdog(), notify_state: Mutex::new(notify_state) }))
    }

    /// Sends a pipe, as sd_notify_barrier(3) does: the service manager closes it once it has processed all earlier
    /// messages.
    async fn heard(&self) {
        let Ok((ours, theirs)) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK) else { return };
        loop {
            {
                let mut notify_state = self.notify_state.lock();
                self.send(&mut notify_state);
                if notify_state.waiting.is_empty() {
                    match self.send_with("BARRIER=1", theirs.as_fd()) {
                        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                        Err(_) => return,
                        Ok(()) => break,
                    }
                }
            }
            tokio::time::sleep(RETRY_INTERVAL).await;
        }
        drop(theirs);
        if let Ok(mut pipe) = Receiver::from_owned_fd(ours) {
            let _ = pipe.read(&mut [0]).await;
        }
    }

    fn send_with(&self, text: &str, fd: BorrowedFd<'_>) -> io::Result<()> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        let fds = [fd];
        ancillary.push(SendAncillaryMessage::ScmRights(&fds));
        let text = [IoSlice::new(text.as_bytes())];
        let to = match (self.to.as_abstract_name(), self.to.as_pathname()) {
            (Some(name), _) => SocketAddrUnix::new_abstract_name(name)?,
            (None, path) => SocketAddrUnix::new(path.unwrap_or_else(|| Path::new("")))?,
        };
        sendmsg_addr(&self.socket, &to, &text, &mut ancillary, SendFlags::DONTWAIT)?;
        Ok(())
    }

    fn send(&self, notify_state: &mut NotifyState) {
        while let Some(message) = notify_state.waiting.front() {
            let sent = match &message.socket {
                Some(socket) => self.send_with(&message.text, socket.as_fd()),
                None => self.socket.send_to_addr(message.text.as_bytes(), &self.to).map(drop),
            };
            match sent {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) => tracing::debug!("cannot notify the service manager: {error}"),
                Ok(()) => {}
            }
            notify_state.waiting.pop_front();
        }
    }
}

impl NotifyEnvironment {
    /// Interval of watchdog notifications: half the watchdog timeout (sd_watchdog_enabled(3)).
    fn watchdog(&self) -> Option<Duration> {
        let number = |text: &Option<OsString>| text.as_ref()?.to_str()?.parse::<u64>().ok();
        // A successor inherits its predecessor's `WATCHDOG_PID`.
        let other = self.watchdog_pid.is_some() && number(&self.watchdog_pid) != Some(u64::from(std::process::id()));
        let patience = number(&self.watchdog_us).filter(|us| *us > 0 && (self.takes_over || !other))?;
        Some(Duration::from_micros(patience) / 2)
    }
}

/// Returns the sockets that systemd passed to this process, with their names (sd_listen_fds(3)). Called before anything
/// else opens descriptors. The variables stay set; `howdah_pool` removes them from the environment of processes that it
/// starts.
pub(crate) fn passed_sockets() -> io::Result<Vec<(OwnedFd, String)>> {
    let text = |name: &str| std::env::var(name).unwrap_or_default();
    if !are_passed() {
        return Ok(Vec::new());
    }
    let count = text("LISTEN_FDS");
    let wrong = |_| io::Error::other(format!("{count:?} is not a number of sockets"));
    let sockets = howdah_transport::listen_fds::take(count.parse().map_err(wrong)?)?;
    Ok(sockets.into_iter().zip(names(&text("LISTEN_FDNAMES"))).collect())
}

/// `false` if the variables were meant for an ancestor of this process, which kept the sockets.
fn are_passed() -> bool {
    std::env::var("LISTEN_PID").unwrap_or_default().parse() == Ok(std::process::id())
}

fn passed_names() -> impl Iterator<Item = String> {
    let text = if are_passed() { std::env::var("LISTEN_FDNAMES").unwrap_or_default() } else { String::new() };
    let count = text.split(':').count();
    names(&text).take(count)
}

/// `true` if the socket comes from the service manager's store. The settings may have changed since it was stored.
pub(crate) fn is_kept(name: &str) -> bool {
    name.starts_with(KEPT_PREFIX)
}

/// Name under which a socket is stored: it encodes the address, without colons, which separate names.
fn kept_name(socket: &ListenerHandle) -> Option<String> {
    let SocketPlace::Tcp(addr) = socket.addr().place() else { return None };
    let kind = if socket.quic().is_some() { "udp" } else { "tcp" };
    Some(format!("{KEPT_PREFIX}{kind}-{}-{}", addr.ip().to_string().replace(':', "_"), addr.port()))
}

/// Endless names for the sockets: `unknown` where the list has none.
fn names(text: &str) -> impl Iterator<Item = String> + use<> {
    let names: Vec<String> = text.split(':').filter(|_| !text.is_empty()).map(ToOwned::to_owned).collect();
    (0..).map(move |number| names.get(number).cloned().unwrap_or_else(|| "unknown".to_owned()))
}

/// Replaces line breaks, because messages consist of lines.
fn line(text: &str) -> String {
    text.replace(['\n', '\r'], " ")
}

#[cfg(test)]
#[path = "service_tests.rs"]
mod tests;
