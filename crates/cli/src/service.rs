//! What the server says to whoever runs it, in the way of systemd (sd_notify(3)): that it serves, reloads, stops, is alive, and
//! which process it is after an upgrade. Without `NOTIFY_SOCKET` it says nothing.
//!
//! Nothing here waits. What the other side has no room for is said again from the supervision loop (`Service::beat`), which is
//! also where the watchdog hears from: a loop that hangs says nothing.

use howdah_pool::server_program::TAKES_OVER;
use parking_lot::Mutex;
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrUnix, sendmsg_addr};
use rustix::pipe::{PipeFlags, pipe_with};
use std::collections::VecDeque;
use std::ffi::OsString;
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::Path;
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe::Receiver;

/// How long whoever was replaced waits until that was heard.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// How often what found no room is said again.
const AGAIN: Duration = Duration::from_millis(200);

/// Messages that wait for room. What is older says less than what comes after it.
const MOST_WAITING: usize = 16;

/// See above. `Default` has nobody to talk to.
#[derive(Debug, Default)]
pub(crate) struct Service {
    manager: Option<Manager>,
}

#[derive(Debug)]
struct Manager {
    socket: UnixDatagram,
    to: SocketAddr,
    /// How often it wants to hear that the server is alive.
    alive: Option<Duration>,
    said: Mutex<Said>,
}

#[derive(Debug, Default)]
struct Said {
    waiting: VecDeque<String>,
    /// Another process speaks for the service.
    quiet: bool,
}

/// What the environment says of whoever runs the server.
struct Asked {
    socket: Option<OsString>,
    watchdog_us: Option<OsString>,
    watchdog_pid: Option<OsString>,
    takes_over: bool,
}

impl Service {
    /// Whom this process's environment names.
    pub(crate) fn of_this_process() -> Self {
        let asked = Asked {
            socket: std::env::var_os("NOTIFY_SOCKET").filter(|path| !path.is_empty()),
            watchdog_us: std::env::var_os("WATCHDOG_USEC"),
            watchdog_pid: std::env::var_os("WATCHDOG_PID"),
            takes_over: std::env::var_os(TAKES_OVER).is_some(),
        };
        match Manager::named(&asked) {
            Ok(manager) => Self { manager },
            Err(why) => {
                tracing::warn!("nobody is told how the server is: NOTIFY_SOCKET: {why}");
                Self::default()
            }
        }
    }

    /// Its pools boot, which may take longer than the other side would wait otherwise.
    pub(crate) fn starting(&self) {
        self.say("EXTEND_TIMEOUT_USEC=60000000\nSTATUS=PHP boots");
    }

    /// It serves, with this to say about it.
    pub(crate) fn ready(&self, status: &str) {
        self.say(&format!("READY=1\nSTATUS={}", line(status)));
    }

    /// It reads its settings again; `ready` says the end of that.
    pub(crate) fn reloading(&self) {
        // systemd tells by the time which of several reloads this is.
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
        let now = Duration::new(now.tv_sec.unsigned_abs(), u32::try_from(now.tv_nsec).unwrap_or(0)).as_micros();
        self.say(&format!("RELOADING=1\nMONOTONIC_USEC={now}\nSTATUS=reloading"));
    }

    /// It stops.
    pub(crate) fn stopping(&self) {
        self.say("STOPPING=1\nSTATUS=stopping: running requests come to their end");
    }

    /// Another process is the server from now on, and this one says nothing any more.
    pub(crate) fn replaced_by(&self, pid: u32) {
        // The new process has as long as this one to say that it is alive.
        self.say(&format!("MAINPID={pid}\nREADY=1\nWATCHDOG=1\nSTATUS=process {pid} has taken over"));
        if let Some(manager) = &self.manager {
            manager.said.lock().quiet = true;
        }
    }

    /// Returns when all that was said has been heard, or when that has taken too long: the end of a process that has said who
    /// takes its place must not be heard of first.
    pub(crate) async fn heard(&self) {
        if let Some(manager) = &self.manager
            && tokio::time::timeout(LAST_WORDS, manager.heard()).await.is_err()
        {
            tracing::warn!("whoever runs the server takes no note of what it says");
        }
    }

    fn say(&self, message: &str) {
        let Some(manager) = &self.manager else { return };
        let mut said = manager.said.lock();
        if said.quiet {
            return;
        }
        if said.waiting.len() == MOST_WAITING {
            said.waiting.pop_front();
        }
        said.waiting.push_back(message.to_owned());
        manager.send(&mut said);
    }

    /// To be polled for as long as the server serves: says what found no room, and that the server is alive. Never returns.
    pub(crate) async fn beat(&self) {
        let Some(manager) = &self.manager else { return std::future::pending().await };
        let period = manager.alive.unwrap_or(Duration::from_secs(3600));
        // Not at once: whose place this process has taken is about to say who it is.
        let mut alive = tokio::time::interval_at(tokio::time::Instant::now() + period, period);
        alive.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            let waits = !manager.said.lock().waiting.is_empty();
            tokio::select! {
                _ = alive.tick() => {
                    if manager.alive.is_some() && !manager.said.lock().quiet {
                        // One that finds no room is no loss: there are others in the queue, or nobody reads it.
                        let _ = manager.socket.send_to_addr(b"WATCHDOG=1", &manager.to);
                    }
                }
                () = tokio::time::sleep(AGAIN), if waits => manager.send(&mut manager.said.lock()),
            }
        }
    }
}

impl Manager {
    fn named(asked: &Asked) -> io::Result<Option<Self>> {
        let Some(path) = &asked.socket else { return Ok(None) };
        let to = match path.as_bytes() {
            [b'@', name @ ..] => SocketAddr::from_abstract_name(name)?,
            [b'/', ..] => SocketAddr::from_pathname(path)?,
            _ => return Err(io::Error::other("neither a path nor an abstract name")),
        };
        let socket = UnixDatagram::unbound()?;
        socket.set_nonblocking(true)?;
        Ok(Some(Self { socket, to, alive: asked.watchdog(), said: Mutex::default() }))
    }

    /// Passes a pipe along, as sd_notify_barrier(3) does: the other side closes it when it has come so far.
    async fn heard(&self) {
        let Ok((ours, theirs)) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK) else { return };
        loop {
            {
                let mut said = self.said.lock();
                self.send(&mut said);
                if said.waiting.is_empty() {
                    match self.send_barrier(theirs.as_fd()) {
                        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                        Err(_) => return,
                        Ok(()) => break,
                    }
                }
            }
            tokio::time::sleep(AGAIN).await;
        }
        drop(theirs);
        if let Ok(mut pipe) = Receiver::from_owned_fd(ours) {
            let _ = pipe.read(&mut [0]).await;
        }
    }

    fn send_barrier(&self, pipe: BorrowedFd<'_>) -> io::Result<()> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut beside = SendAncillaryBuffer::new(&mut space);
        let fds = [pipe];
        beside.push(SendAncillaryMessage::ScmRights(&fds));
        let text = [IoSlice::new(b"BARRIER=1")];
        let to = match (self.to.as_abstract_name(), self.to.as_pathname()) {
            (Some(name), _) => SocketAddrUnix::new_abstract_name(name)?,
            (None, path) => SocketAddrUnix::new(path.unwrap_or_else(|| Path::new("")))?,
        };
        sendmsg_addr(&self.socket, &to, &text, &mut beside, SendFlags::DONTWAIT)?;
        Ok(())
    }

    fn send(&self, said: &mut Said) {
        while let Some(message) = said.waiting.front() {
            match self.socket.send_to_addr(message.as_bytes(), &self.to) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) => tracing::debug!("nobody hears how the server is: {error}"),
                Ok(_) => {}
            }
            said.waiting.pop_front();
        }
    }
}

impl Asked {
    /// How often the watchdog is to hear: twice in the time after which it loses patience (sd_watchdog_enabled(3)).
    fn watchdog(&self) -> Option<Duration> {
        let number = |text: &Option<OsString>| text.as_ref()?.to_str()?.parse::<u64>().ok();
        // A process that takes another's place has inherited the number of that one.
        let other = self.watchdog_pid.is_some() && number(&self.watchdog_pid) != Some(u64::from(std::process::id()));
        let patience = number(&self.watchdog_us).filter(|us| *us > 0 && (self.takes_over || !other))?;
        Some(Duration::from_micros(patience) / 2)
    }
}

/// The sockets that this process was started with, as systemd passes those of a unit, with their names (sd_listen_fds(3)). To be
/// called first of all. The variables stay where they are: `howdah_pool` leaves them out of what it starts.
pub(crate) fn passed_sockets() -> io::Result<Vec<(OwnedFd, String)>> {
    let text = |name: &str| std::env::var(name).unwrap_or_default();
    // They may be another process's: this one's ancestor, which kept its own.
    if text("LISTEN_PID").parse() != Ok(std::process::id()) {
        return Ok(Vec::new());
    }
    let count = text("LISTEN_FDS");
    let wrong = |_| io::Error::other(format!("{count:?} is no number of sockets"));
    let sockets = howdah_transport::listen_fds::take(count.parse().map_err(wrong)?)?;
    Ok(sockets.into_iter().zip(names(&text("LISTEN_FDNAMES"))).collect())
}

/// A name for each socket, for ever.
fn names(text: &str) -> impl Iterator<Item = String> {
    let names: Vec<String> = text.split(':').filter(|_| !text.is_empty()).map(ToOwned::to_owned).collect();
    (0..).map(move |number| names.get(number).cloned().unwrap_or_else(|| "unknown".to_owned()))
}

/// Messages are lines.
fn line(text: &str) -> String {
    text.replace(['\n', '\r'], " ")
}

#[cfg(test)]
#[path = "service_tests.rs"]
mod tests;
