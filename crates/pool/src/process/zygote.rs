//! The server's side of a zygote: starts the process, sends orders, and forwards its messages and output.

use crate::config::PoolConfig;
use crate::descriptor::{self, SharedFd};
use crate::panics;
use crate::process::end::End;
use crate::process::event::Event;
use crate::process::launcher::{LaunchedProcess, Launcher};
use crate::process::log_limit::LogLimit;
use crate::process::orphans;
use crate::process::program::Program;
use howdah_transport::control_socket;
use howdah_transport::zygote_protocol::{FromZygote, ToZygote, WarmUpRequest};
use parking_lot::Mutex;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::pipe::{PipeFlags, pipe_with};
use std::collections::VecDeque;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::pin::Pin;
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, BufReader};
use tokio::net::unix::pipe::Receiver;
use tokio::process::Command;
use tokio::sync::mpsc;

/// Lines of output kept to explain a failure.
const KEPT_LINES: usize = 12;

/// Bytes after which an unfinished line is logged: scripts' output must not fill the server's memory.
const MAX_LINE: u64 = 64 * 1024;

/// A running zygote. Dropping it closes its socket, which ends the zygote and its workers.
#[derive(Debug)]
pub(crate) struct Zygote {
    socket: Arc<AsyncFd<SharedFd>>,
    output: Arc<Mutex<VecDeque<String>>>,
    process: Process,
    reader: tokio::task::JoinHandle<()>,
    /// The zygote does not carry out orders, so closing its socket will not end it.
    is_stuck: bool,
}

/// The zygote's parent.
#[derive(Debug)]
enum Process {
    /// The server. The zygote's process id.
    Own(Option<u32>),
    /// The launcher, and its number for the zygote.
    Launched(Launcher, u64),
}

impl Zygote {
    /// Starts the process and orders it to boot. Its messages arrive as `Event::Zygote*` of this generation.
    pub(crate) fn start(
        config: &PoolConfig,
        launcher: &Launcher,
        warm_up: Vec<WarmUpRequest>,
        generation: u64,
        events: &mpsc::UnboundedSender<Event>,
    ) -> io::Result<Self> {
        let (ours, theirs) = control_socket::pair()?;
        let (stdout, their_stdout) = pipe_with(PipeFlags::CLOEXEC)?;
        let (stderr, their_stderr) = pipe_with(PipeFlags::CLOEXEC)?;
        let (process, ended) = start_process(config, launcher, [theirs, their_stdout, their_stderr])?;
        let output = Arc::new(Mutex::new(VecDeque::new()));
        for pipe in [stdout, stderr] {
            tokio::spawn(log_output(Receiver::from_owned_fd(pipe)?, config.name().to_owned(), output.clone()));
        }
        let socket = Arc::new(descriptor::watch(Arc::new(ours))?);
        let reader = tokio::spawn(listen(socket.clone(), generation, events.clone()));
        let zygote = Self { reader, socket, output, process, is_stuck: false };
        let gone = events.clone();
        tokio::spawn(async move {
            let _ = gone.send(Event::ZygoteGone { generation, end: ended.await });
        });
        let boot = ToZygote::Boot(Box::new(config.boot.clone()));
        for message in warm_up.into_iter().map(ToZygote::WarmUp).chain([boot]) {
            match zygote.send(&message, &[]) {
                // The process has ended already; `ZygoteGone` reports the reason.
                Err(error) if matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset) => {}
                sent => sent?,
            }
        }
        Ok(zygote)
    }

    /// Orders a fork; the result arrives as an event.
    pub(crate) fn fork(&self, worker: u32, fds: &[BorrowedFd<'_>]) -> io::Result<()> {
        self.send(&ToZygote::Fork { worker }, fds)
    }

    /// Orders the end of a snapshot pool's template, because its boot is out of date.
    pub(crate) fn drop_template(&self) -> io::Result<()> {
        self.send(&ToZygote::DropTemplate, &[])
    }

    /// Asks for the PHP stack of a worker's request.
    pub(crate) fn ask_for_stacks(&self, order: u64, pid: u32, request: u64) -> io::Result<()> {
        self.send(&ToZygote::Stacks { order, pid, request }, &[])
    }

    /// Asks for the memory sizes of the workers and the template.
    pub(crate) fn measure(&self) -> io::Result<()> {
        self.send(&ToZygote::Measure, &[])
    }

    /// Orders a profile of all workers; with a rate of 0, its end.
    pub(crate) fn profile(&self, order: u64, rate: u32, length: Duration) -> io::Result<()> {
        self.send(&ToZygote::Profile { order, rate, milliseconds: length.as_millis() as u64 }, &[])
    }

    fn send(&self, message: &ToZygote, fds: &[BorrowedFd<'_>]) -> io::Result<()> {
        let bytes = serde_json::to_vec(message)?;
        control_socket::send(self.socket.get_ref().get(), &bytes, fds, true)
    }

    /// The last lines the zygote printed.
    pub(crate) fn last_output(&self) -> String {
        let lines = self.output.lock();
        lines.iter().map(String::as_str).collect::<Vec<_>>().join("; ")
    }

    /// Orders the zygote to end by closing the socket in both directions.
    pub(crate) fn close(&self) {
        let _ = rustix::net::shutdown(self.socket.get_ref().get(), rustix::net::Shutdown::Both);
    }

    /// Kills the zygote when dropped, as it carries out no orders. Until then its workers may finish their requests.
    pub(crate) fn kill_when_dropped(&mut self) {
        self.is_stuck = true;
    }

    /// `true` if the zygote has closed its end of the socket, or `close` was called. At its death the kernel does that
    /// before it ends the workers.
    pub(crate) fn has_hung_up(&self) -> bool {
        self.life().is_over()
    }

    /// Handle to check if the zygote has ended.
    pub(crate) fn life(&self) -> ZygoteLife {
        ZygoteLife(self.socket.clone())
    }

    /// Ends the zygote and its workers at once.
    pub(crate) fn kill(&self) {
        match &self.process {
            Process::Own(pid) => {
                if let Some(pid) = pid.and_then(|pid| rustix::process::Pid::from_raw(pid as i32)) {
                    // The process is not reaped before `ZygoteGone`, so the id is still its own.
                    let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
                }
            }
            Process::Launched(launcher, id) => launcher.kill(*id),
        }
    }
}

/// Resolves to the end of a process.
type Ending = Pin<Box<dyn Future<Output = End> + Send>>;

/// Starts the program, here or through the launcher, and returns a future of its end. The descriptors are its standard
/// streams; no copies are kept, because the server could not see their ends otherwise.
fn start_process(config: &PoolConfig, launcher: &Launcher, streams: [OwnedFd; 3]) -> io::Result<(Process, Ending)> {
    let [control, stdout, stderr] = match launcher.start(config, streams) {
        Ok(LaunchedProcess { id, ended }) => {
            let ended = async { ended.await.unwrap_or_else(|_| End::Unknown("the launcher has ended".to_owned())) };
            return Ok((Process::Launched(launcher.clone(), id), Box::pin(ended)));
        }
        Err(streams) => streams,
    };
    let program = Program::of(config);
    let mut command = Command::from(program.command()?);
    command.stdin(Stdio::from(control)).stdout(Stdio::from(stdout)).stderr(Stdio::from(stderr));
    let mut child = command.spawn().map_err(|error| io::Error::new(error.kind(), program.explain(&error)))?;
    let pid = child.id();
    orphans::keep(pid);
    let process = Process::Own(pid);
    let ended = async move {
        let end = End::from(child.wait().await);
        orphans::forget(pid);
        // Report the zygote's end only after its orphans have ended.
        orphans::end_orphans().await;
        end
    };
    Ok((process, Box::pin(ended)))
}

/// Checks if a zygote is alive: it holds its end of the socket, which no other process keeps. After `close` it counts
/// as ended.
#[derive(Debug, Clone)]
pub(crate) struct ZygoteLife(Arc<AsyncFd<SharedFd>>);

impl ZygoteLife {
    pub(crate) fn is_over(&self) -> bool {
        // Events of a closed socket are always reported.
        let mut polled = [PollFd::new(self.0.get_ref().get(), PollFlags::empty())];
        let polling = poll(&mut polled, Some(&Timespec::default()));
        polling.is_ok() && polled[0].revents().intersects(PollFlags::HUP | PollFlags::ERR)
    }
}

impl Drop for Zygote {
    fn drop(&mut self) {
        // If the zygote has ended, it may have been reaped and its id reused.
        if self.is_stuck && !self.has_hung_up() {
            self.kill();
        }
        self.close();
        self.reader.abort();
    }
}

async fn listen(socket: Arc<AsyncFd<SharedFd>>, generation: u64, events: mpsc::UnboundedSender<Event>) {
    if panics::caught(read_messages(socket, generation, events.clone())).await.is_none() {
        // A zygote whose messages are not read is useless.
        let _ = events.send(Event::ZygoteGone {
            generation,
            end: End::Unknown("the server panicked while reading its messages".into()),
        });
    }
}

async fn read_messages(socket: Arc<AsyncFd<SharedFd>>, generation: u64, events: mpsc::UnboundedSender<Event>) {
    loop {
        let Ok(mut ready) = socket.readable().await else { return };
        loop {
            match control_socket::receive(socket.get_ref().get(), true) {
                Ok(Some((bytes, fds))) => match serde_json::from_slice::<FromZygote>(&bytes) {
                    Ok(message) => {
                        let _ = events.send(Event::Zygote { generation, message, fds });
                    }
                    Err(error) => tracing::error!("zygote sent an invalid message: {error}; ignoring it"),
                },
                Ok(None) => return,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    ready.clear_ready();
                    break;
                }
                Err(_) => return,
            }
        }
    }
}

async fn log_output(pipe: impl AsyncRead + Unpin, pool: String, kept: Arc<Mutex<VecDeque<String>>>) {
    let mut pipe = BufReader::new(pipe);
    let mut bytes = Vec::new();
    let mut limit = LogLimit::new(Instant::now());
    loop {
        bytes.clear();
        if !matches!((&mut pipe).take(MAX_LINE).read_until(b'\n', &mut bytes).await, Ok(1..)) {
            return;
        }
        let line = String::from_utf8_lossy(&bytes).trim_end().to_owned();
        if line.is_empty() {
            continue;
        }
        let verdict = limit.admit(line.len(), Instant::now());
        if let Some(lines) = verdict.left_out {
            tracing::warn!(target: "php", pool, lines, "the pool's processes print too fast: lines were dropped");
        }
        if !verdict.pass {
            continue;
        }
        tracing::warn!(target: "php", pool, "{line}");
        let mut kept = kept.lock();
        if kept.len() == KEPT_LINES {
            kept.pop_front();
        }
        kept.push_back(line);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_line_without_an_end_is_split() {
        let line = "x".repeat(2 * MAX_LINE as usize + 5);
        let kept = Arc::new(Mutex::new(VecDeque::new()));
        log_output(format!("{line}\nshort\n\nlast").as_bytes(), "default".into(), kept.clone()).await;
        let kept = kept.lock();
        assert_eq!(kept.iter().map(String::len).collect::<Vec<_>>(), [MAX_LINE as usize, MAX_LINE as usize, 5, 5, 4]);
    }
}
