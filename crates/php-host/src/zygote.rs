//! The zygote: boots PHP, forks workers on order, reaps them, ends with its socket.
//!
//! It has one thread and no signal handlers: workers are watched through pidfds in the same `poll` as the socket. When the
//! server's end of the socket closes, for whatever reason, it kills its workers and ends; workers also carry a parent-death
//! signal, so they end even if the zygote is killed.

use crate::{php, worker, zygote_memory};
use howdah_transport::control_socket;
use howdah_transport::wire::WIRE_VERSION;
use howdah_transport::zygote_protocol::{BootSpec, FromZygote, ToZygote};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, Signal, WaitOptions, pidfd_open, pidfd_send_signal, waitpid};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::process::ExitCode;

struct Child {
    pid: Pid,
    pidfd: OwnedFd,
}

/// What the event loop is to do next.
enum Next {
    Continue,
    /// The server is gone or asked for the end.
    End,
}

/// Runs the zygote; returns when it shall end. A forked worker never returns from here: it exits.
pub(crate) fn run() -> ExitCode {
    let socket = match take_socket() {
        Ok(socket) => socket,
        Err(error) => {
            eprintln!("howdah-php: standard input is not the server's control socket ({error})");
            return ExitCode::from(2);
        }
    };
    // Should the server die between here and its first order, the poll below sees the end of file.
    let spec = match receive(&socket) {
        Ok(Some((ToZygote::Boot(spec), _))) => spec,
        Ok(_) => return ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("howdah-php: {error}");
            return ExitCode::FAILURE;
        }
    };
    if let Err(error) = boot(&spec) {
        let _ = tell(&socket, &FromZygote::BootFailed { error }, &[]);
        return ExitCode::FAILURE;
    }
    zygote_memory::release_libraries();
    if tell(&socket, &FromZygote::Booted { php_version: php::version() }, &[]).is_err() {
        return ExitCode::SUCCESS;
    }
    let mut children: Vec<Child> = Vec::new();
    let code = loop {
        match step(&socket, &mut children) {
            Ok(Next::Continue) => {}
            Ok(Next::End) => break ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("howdah-php: {error}");
                break ExitCode::FAILURE;
            }
        }
    };
    for child in &children {
        let _ = pidfd_send_signal(&child.pidfd, Signal::KILL);
    }
    for child in &children {
        let _ = waitpid(Some(child.pid), WaitOptions::empty());
    }
    php::shutdown();
    code
}

/// The control socket is standard input; scripts get an empty one instead.
fn take_socket() -> io::Result<OwnedFd> {
    let stdin = io::stdin();
    rustix::net::sockopt::socket_type(&stdin)?;
    let socket = rustix::io::fcntl_dupfd_cloexec(&stdin, 3)?;
    let null = rustix::fs::open("/dev/null", rustix::fs::OFlags::RDONLY, rustix::fs::Mode::empty())?;
    rustix::stdio::dup2_stdin(&null)?;
    Ok(socket)
}

fn boot(spec: &BootSpec) -> Result<(), String> {
    if spec.wire_version != WIRE_VERSION {
        return Err(format!(
            "howdah speaks wire version {}, this howdah-php {WIRE_VERSION}: install both from one build",
            spec.wire_version
        ));
    }
    php::start(spec)
}

fn receive(socket: &OwnedFd) -> io::Result<Option<(ToZygote, Vec<OwnedFd>)>> {
    let Some((bytes, fds)) = control_socket::receive(socket, false)? else { return Ok(None) };
    Ok(Some((serde_json::from_slice(&bytes)?, fds)))
}

fn tell(socket: &OwnedFd, message: &FromZygote, fds: &[BorrowedFd<'_>]) -> io::Result<()> {
    control_socket::send(socket, &serde_json::to_vec(message)?, fds, false)
}

/// Waits for an order or for a worker's end and deals with it.
fn step(socket: &OwnedFd, children: &mut Vec<Child>) -> io::Result<Next> {
    let (orders, ended) = {
        let mut waited = vec![PollFd::new(socket, PollFlags::IN)];
        waited.extend(children.iter().map(|c| PollFd::new(&c.pidfd, PollFlags::IN)));
        match poll(&mut waited, None) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let ended: Vec<usize> = (1..waited.len()).filter(|&i| !waited[i].revents().is_empty()).map(|i| i - 1).collect();
        (!waited[0].revents().is_empty(), ended)
    };
    for index in ended.into_iter().rev() {
        let child = children.swap_remove(index);
        let status = waitpid(Some(child.pid), WaitOptions::empty())?;
        let status = status.map(|(_, status)| status);
        let message = FromZygote::Exited {
            pid: child.pid.as_raw_nonzero().get() as u32,
            status: status.and_then(|s| s.exit_status()),
            signal: status.and_then(|s| s.terminating_signal()),
        };
        if tell(socket, &message, &[]).is_err() {
            return Ok(Next::End);
        }
    }
    if !orders {
        return Ok(Next::Continue);
    }
    match receive(socket)? {
        Some((ToZygote::Fork { worker }, fds)) => {
            let message = match fork(socket, children, worker, fds) {
                Ok(message) => message,
                Err(error) => FromZygote::ForkFailed { worker, error: error.to_string() },
            };
            let pidfd = match &message {
                FromZygote::Forked { .. } => children.last().map(|c| c.pidfd.as_fd()),
                _ => None,
            };
            tell(socket, &message, pidfd.as_slice())?;
            Ok(Next::Continue)
        }
        Some((ToZygote::Boot(_), _)) => Err(io::Error::other("a second boot order")),
        None => Ok(Next::End),
    }
}

fn fork(socket: &OwnedFd, children: &mut Vec<Child>, worker: u32, fds: Vec<OwnedFd>) -> io::Result<FromZygote> {
    let fds = worker::Descriptors::new(fds).ok_or_else(|| io::Error::other("a fork order without its descriptors"))?;
    let parent = rustix::process::getpid();
    // SAFETY: this process has one thread, so the child is a complete copy and may go on running ordinary code.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            // The child keeps nothing that belongs to the zygote.
            children.clear();
            // SAFETY: closes the child's copy of a descriptor that the child never uses again: `run` below does not
            // return, so the borrowed owner is not dropped in this process.
            unsafe { libc::close(std::os::fd::AsRawFd::as_raw_fd(socket)) };
            worker::run(worker, parent, fds)
        }
        pid => {
            let pid = Pid::from_raw(pid).ok_or_else(|| io::Error::other("fork returned no process"))?;
            let pidfd = pidfd_open(pid, PidfdFlags::empty())?;
            children.push(Child { pid, pidfd });
            Ok(FromZygote::Forked { worker, pid: pid.as_raw_nonzero().get() as u32 })
        }
    }
}
