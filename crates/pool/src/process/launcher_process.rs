//! The launcher: a process that stays root when the server switches its user, and starts the pools' PHP for it.
//!
//! It is a separate process, so it shares no memory with the server, and it has one thread. It starts programs that
//! root's settings name, rereads these settings, starts the server's own program for an upgrade, kills processes that
//! it has started, and signals their children. A compromised server chooses the time, but no program.

use crate::process::end::End;
use crate::process::launcher_protocol::{FromLauncher, ToLauncher, WorkerSignal};
use crate::process::program::Program;
use crate::process::root_program::RootProgram;
use crate::process::settings_process::SettingsProcess;
use howdah_transport::descendants::ChildTermination;
use howdah_transport::{STACK_SIGNAL, control_socket};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::FileType;
use rustix::net::SocketType;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

/// Maximum number of one pool's processes. A reload needs two; generations that finish their requests need some more.
const MAX_OF_POOL: usize = 32;
/// Time that processes have to exit on their own after the server.
const LAST_GRACE: Duration = Duration::from_secs(5);

struct Started {
    id: u64,
    pool: String,
    child: Child,
    pidfd: OwnedFd,
}

/// A socket file, and its identity when the server bound it.
struct SocketFile {
    path: PathBuf,
    stays: bool,
    identity: (u64, u64),
}

struct Launcher {
    server: OwnedFd,
    programs: Vec<Program>,
    sockets: Vec<SocketFile>,
    root_program: Option<RootProgram>,
    settled: bool,
    started: Vec<Started>,
    /// The server's successor. It outlives this process.
    successor: Option<Started>,
    /// The process that reads the settings again.
    settling: Option<(Started, SettingsProcess)>,
}

/// Runs the launcher; returns when the server has ended. Standard input is the socket to it.
///
/// # Errors
/// The process was not started by a server, or a system call failed.
pub fn run() -> io::Result<()> {
    let stdin = io::stdin();
    if rustix::net::sockopt::socket_type(&stdin).ok() != Some(SocketType::SEQPACKET) {
        return Err(io::Error::other("the launcher is started by `howdah serve`, not by hand"));
    }
    let server = rustix::io::fcntl_dupfd_cloexec(&stdin, 3)?;
    let null = rustix::fs::open("/dev/null", rustix::fs::OFlags::RDONLY, rustix::fs::Mode::empty())?;
    rustix::stdio::dup2_stdin(&null)?;
    // Processes that scripts leave behind become this process's children if their zygote was killed; no other process
    // may signal them.
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    serve(server)
}

fn serve(server: OwnedFd) -> io::Result<()> {
    let mut launcher = Launcher {
        server,
        programs: Vec::new(),
        sockets: Vec::new(),
        root_program: None,
        settled: false,
        started: Vec::new(),
        successor: None,
        settling: None,
    };
    let ended = launcher.serve();
    launcher.end();
    ended
}

impl Launcher {
    fn serve(&mut self) -> io::Result<()> {
        loop {
            let (order, ended) = self.wait()?;
            for id in ended {
                if let Some(ended) = self.reap_child(id) {
                    self.report(&ended)?;
                }
            }
            if !order {
                continue;
            }
            let Some((bytes, fds)) = control_socket::receive(&self.server, false)? else { return Ok(()) };
            match serde_json::from_slice(&bytes) {
                Ok(order) => self.execute(order, fds)?,
                Err(error) => eprintln!("howdah: launcher: ignoring an invalid order from the server: {error}"),
            }
        }
    }

    fn execute(&mut self, order: ToLauncher, mut fds: Vec<OwnedFd>) -> io::Result<()> {
        match order {
            ToLauncher::Program(program) if !self.settled => self.programs.push(*program),
            ToLauncher::Socket { path, later } if !self.settled => {
                let found = std::fs::symlink_metadata(&path)?;
                self.sockets.push(SocketFile { path, stays: later, identity: (found.dev(), found.ino()) });
            }
            ToLauncher::RootProgram(program) if !self.settled => self.root_program = Some(*program),
            ToLauncher::Settled => self.settled = true,
            ToLauncher::StartRootProgram { id } if self.settled => {
                let started = self.start_root_program(id, fds);
                self.report_failure(id, started)?;
            }
            ToLauncher::Settle { id } if self.settled => {
                let started = self.settle(id);
                self.report_failure(id, started)?;
            }
            ToLauncher::KeepSockets { paths, keep } => {
                for socket in self.sockets.iter_mut().filter(|socket| paths.contains(&socket.path)) {
                    socket.stays = keep;
                }
            }
            ToLauncher::Start { id, program } if self.settled => {
                let started = self.start(id, &program, fds);
                self.report_failure(id, started)?;
            }
            ToLauncher::Kill { id } => {
                if let Some(started) = self.all().find(|started| started.id == id) {
                    // The process may have ended just now, and is then reaped next.
                    let _ = pidfd_send_signal(&started.pidfd, Signal::KILL);
                }
            }
            ToLauncher::Signal { which } => {
                if let Some(pidfd) = fds.pop().filter(|pidfd| self.is_worker(pidfd)) {
                    let signal = match which {
                        WorkerSignal::Kill => Signal::KILL,
                        WorkerSignal::Stack => STACK_SIGNAL,
                    };
                    let _ = pidfd_send_signal(&pidfd, signal);
                }
            }
            other => eprintln!("howdah: launcher: ignoring an unexpected order: {other:?}"),
        }
        Ok(())
    }

    fn start(&mut self, id: u64, program: &Program, fds: Vec<OwnedFd>) -> Result<(), String> {
        let pool = &program.pool;
        if !self.programs.contains(program) {
            return Err(format!("the launcher may not start that program for the pool {pool:?}"));
        }
        if self.started.iter().filter(|started| started.pool == *pool).count() >= MAX_OF_POOL {
            return Err(format!("{MAX_OF_POOL} processes of this pool are still running, the maximum"));
        }
        self.is_new(id)?;
        let [control, output, errors] = <[OwnedFd; 3]>::try_from(fds)
            .ok()
            .filter(|[control, output, errors]| is_socket(control) && is_pipe(output) && is_pipe(errors))
            .ok_or("the launcher was not given a socket and two pipes")?;
        let spawned = program.command().and_then(|mut command| {
            command.stdin(Stdio::from(control)).stdout(Stdio::from(output)).stderr(Stdio::from(errors)).spawn()
        });
        let child = spawned.map_err(|error| program.explain(&error))?;
        self.started.push(watched(id, pool.clone(), child)?);
        Ok(())
    }

    fn is_new(&self, id: u64) -> Result<(), String> {
        match self.all().any(|started| started.id == id) {
            true => Err(format!("the launcher was given the number {id} twice")),
            false => Ok(()),
        }
    }

    /// Starts the server's program to read the settings again.
    fn settle(&mut self, id: u64) -> Result<(), String> {
        self.is_new(id)?;
        let program = self.root_program.as_ref().ok_or("the launcher does not know the server's program")?;
        if self.settling.is_some() {
            return Err("the launcher is already rereading the settings".to_owned());
        }
        let (settling, child) = SettingsProcess::start(program)?;
        self.settling = Some((watched(id, String::new(), child)?, settling));
        Ok(())
    }

    /// Starts the settled root program. The server chooses the time, and nothing else.
    fn start_root_program(&mut self, id: u64, fds: Vec<OwnedFd>) -> Result<(), String> {
        self.is_new(id)?;
        let program = self.root_program.as_ref().ok_or("the launcher does not know the server's program")?;
        if self.successor.is_some() {
            return Err("a process that the launcher started for an upgrade is still running".to_owned());
        }
        let [socket] = <[OwnedFd; 1]>::try_from(fds)
            .ok()
            .filter(|[socket]| is_socket(socket))
            .ok_or("the launcher was not given a socket")?;
        program.verify_only_root_can_replace()?;
        let child = program.command(socket).spawn().map_err(|error| program.explain(&error))?;
        self.successor = Some(watched(id, String::new(), child)?);
        Ok(())
    }

    /// True if the process is an unreaped child of a process that was started here. Numbers looked up here may belong
    /// to another process a moment later, but the signal goes to the descriptor: to the intended process, or, if that
    /// is gone, to none. Numbers of started processes are not reused before `reap_child`.
    fn is_worker(&self, pidfd: &OwnedFd) -> bool {
        let parent = number_of(pidfd).and_then(parent_of);
        parent.is_some_and(|parent| self.started.iter().any(|started| started.child.id() == parent))
    }

    /// Waits for an order or for processes to end. Returns whether there is an order, and the numbers of ended
    /// processes.
    fn wait(&self) -> io::Result<(bool, Vec<u64>)> {
        let mut waited = vec![PollFd::new(&self.server, PollFlags::IN)];
        waited.extend(self.all().map(|started| PollFd::new(&started.pidfd, PollFlags::IN)));
        match poll(&mut waited, None) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let ended = self.all().zip(&waited[1..]).filter(|(_, polled)| !polled.revents().is_empty());
        Ok((!waited[0].revents().is_empty(), ended.map(|(started, _)| started.id).collect()))
    }

    /// All started processes.
    fn all(&self) -> impl Iterator<Item = &Started> {
        let settling = self.settling.as_ref().map(|(started, _)| started);
        self.started.iter().chain(&self.successor).chain(settling)
    }

    /// Reaps a process that has ended; `None` if it was reaped already.
    fn reap_child(&mut self, id: u64) -> Option<FromLauncher> {
        let mut settling = None;
        let mut started = if let Some(index) = self.started.iter().position(|started| started.id == id) {
            self.started.swap_remove(index)
        } else if let Some(successor) = self.successor.take_if(|successor| successor.id == id) {
            successor
        } else {
            let (started, output) = self.settling.take_if(|(started, _)| started.id == id)?;
            settling = Some(output);
            started
        };
        let mut end = End::from(started.child.wait());
        if let Some(settling) = settling {
            match settling.programs(&end) {
                // Earlier programs stay: pools that finish their requests still use them.
                Ok(programs) => {
                    let new = programs.into_iter().filter(|program| !self.programs.contains(program));
                    let new: Vec<Program> = new.collect();
                    self.programs.extend(new);
                }
                Err(why) => end = End::Unknown(why),
            }
        }
        self.end_orphans();
        Some(FromLauncher::Ended { id: started.id, end })
    }

    /// Ends and reaps children that were not started here: processes that zygotes left behind. Their own children
    /// follow.
    fn end_orphans(&self) {
        let begun = Instant::now();
        let mut ending = ChildTermination::default();
        while begun.elapsed() < LAST_GRACE {
            let listed = std::fs::read_to_string("/proc/thread-self/children").unwrap_or_default();
            let known = |pid: &i32| self.all().any(|started| i32::try_from(started.child.id()) == Ok(*pid));
            let numbers = listed.split_ascii_whitespace().filter_map(|number| number.parse().ok());
            let left: Vec<Pid> = numbers.filter(|pid| !known(pid)).filter_map(Pid::from_raw).collect();
            if ending.round(&left) {
                return;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn report_failure(&self, id: u64, started: Result<(), String>) -> io::Result<()> {
        match started {
            Ok(()) => Ok(()),
            Err(why) => self.report(&FromLauncher::Ended { id, end: End::Unknown(why) }),
        }
    }

    fn report(&self, message: &FromLauncher) -> io::Result<()> {
        match control_socket::send(&self.server, &serde_json::to_vec(message)?, &[], false) {
            // The server has just ended, which the next read sees.
            Err(error) if matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset) => Ok(()),
            sent => sent,
        }
    }

    /// Cleans up after the server's end. Its processes see that on their sockets and exit; those that do not are
    /// killed.
    fn end(&mut self) {
        let _ = rustix::net::shutdown(&self.server, rustix::net::Shutdown::Read);
        let deadline = Instant::now() + LAST_GRACE;
        while !self.started.is_empty() && Instant::now() < deadline {
            // Wait only for processes: `poll` would always return at once for the socket, as the server's end is
            // closed.
            let mut waited: Vec<_> =
                self.started.iter().map(|started| PollFd::new(&started.pidfd, PollFlags::IN)).collect();
            let _ = poll(&mut waited, Some(&Timespec { tv_sec: 0, tv_nsec: 100_000_000 }));
            let ended = self.started.iter().zip(&waited).filter(|(_, polled)| !polled.revents().is_empty());
            let ended: Vec<u64> = ended.map(|(started, _)| started.id).collect();
            for id in ended {
                self.reap_child(id);
            }
        }
        if let Some((settling, _)) = self.settling.take() {
            kill(settling.child);
        }
        for started in std::mem::take(&mut self.started) {
            kill(started.child);
        }
        self.end_orphans();
        for socket in self.sockets.iter().filter(|socket| !socket.stays) {
            let found = std::fs::symlink_metadata(&socket.path);
            if found.is_ok_and(|it| !it.is_dir() && (it.dev(), it.ino()) == socket.identity) {
                let _ = std::fs::remove_file(&socket.path);
            }
        }
    }
}

fn watched(id: u64, pool: String, child: Child) -> Result<Started, String> {
    let number = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    match number.map(|pid| pidfd_open(pid, PidfdFlags::empty())) {
        Some(Ok(pidfd)) => Ok(Started { id, pool, child, pidfd }),
        other => {
            kill(child);
            Err(format!("the launcher cannot watch a process that it has started: {other:?}"))
        }
    }
}

fn kill(mut child: Child) {
    let _ = child.kill();
    let _ = child.wait();
}

fn is_socket(fd: &OwnedFd) -> bool {
    rustix::net::sockopt::socket_type(fd).ok() == Some(SocketType::SEQPACKET)
}

fn is_pipe(fd: &OwnedFd) -> bool {
    rustix::fs::fstat(fd.as_fd()).is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Fifo)
}

/// Process id of a pidfd; `None` if the process was reaped, or the descriptor is something else.
fn number_of(pidfd: &OwnedFd) -> Option<u32> {
    let text = std::fs::read_to_string(format!("/proc/self/fdinfo/{}", pidfd.as_raw_fd())).ok()?;
    text.lines().find_map(|line| line.strip_prefix("Pid:"))?.trim().parse().ok()
}

fn parent_of(pid: u32) -> Option<u32> {
    let text = std::fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("stat")).ok()?;
    // The name, in parentheses, may itself hold spaces and parentheses.
    text.get(text.rfind(')')? + 2..)?.split(' ').nth(1)?.parse().ok()
}

#[cfg(test)]
#[path = "launcher_process_tests.rs"]
mod tests;
