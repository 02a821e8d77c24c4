//! The successor's process at an upgrade: started by the server or its launcher, and monitored until it serves.

use howdah_pool::process::end::End;
use howdah_pool::process::launcher::{LaunchedProcess, Launcher};
use howdah_pool::process::orphans;
use howdah_pool::process::root_program::RootProgram;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::io;
use std::os::fd::OwnedFd;
use std::pin::Pin;

/// A server that was started to replace this one.
pub(super) struct Successor {
    process: Process,
    ended: Pin<Box<dyn Future<Output = End> + Send>>,
}

enum Process {
    Own(Option<OwnedFd>),
    Launched(Launcher, u64),
}

impl Successor {
    /// Starts the successor, with `socket` as its standard input.
    ///
    /// # Errors
    /// The process could not be started. A failure of the launcher to start it is reported by `ended` instead.
    pub(super) fn start(program: &RootProgram, launcher: &Launcher, socket: OwnedFd) -> io::Result<Self> {
        let socket = match launcher.start_root_program(socket) {
            Ok(LaunchedProcess { id, ended }) => {
                let ended = async { ended.await.unwrap_or_else(|_| End::Unknown("the launcher has ended".to_owned())) };
                return Ok(Self { process: Process::Launched(launcher.clone(), id), ended: Box::pin(ended) });
            }
            Err(socket) => socket,
        };
        let mut command = tokio::process::Command::from(program.command(socket));
        let mut child = command.spawn().map_err(|error| io::Error::new(error.kind(), program.explain(&error)))?;
        let pid = child.id();
        orphans::keep(pid);
        let raw = pid.and_then(|pid| i32::try_from(pid).ok()).and_then(Pid::from_raw);
        let pidfd = raw.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
        let ended = async move {
            let end = End::from(child.wait().await);
            orphans::forget(pid);
            end
        };
        Ok(Self { process: Process::Own(pidfd), ended: Box::pin(ended) })
    }

    /// Waits for the process to end and returns its status. May complete only once.
    pub(super) async fn ended(&mut self) -> String {
        self.ended.as_mut().await.to_string()
    }

    /// Kills the process.
    pub(super) fn kill(&self) {
        match &self.process {
            Process::Own(Some(pidfd)) => drop(pidfd_send_signal(pidfd, Signal::KILL)),
            Process::Own(None) => {}
            Process::Launched(launcher, id) => launcher.kill(*id),
        }
    }
}
