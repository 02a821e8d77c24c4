//! The zygote's side of a boot that workers share: the booting worker, the orders that wait for it, and the template.

use howdah_transport::control_socket;
use howdah_transport::zygote_protocol::{FromZygote, ToZygote};
use rustix::process::Pid;
use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, OwnedFd};

/// An order to start a worker.
pub(crate) struct Order {
    pub(crate) worker: u32,
    pub(crate) fds: Vec<OwnedFd>,
}

/// A process at the other end of a socket.
struct Peer {
    pid: Pid,
    socket: OwnedFd,
}

/// State of the pool's shared boot; decides how new workers are created.
#[derive(Default)]
pub(crate) struct SharedBoot {
    /// One boot may serve all workers; `false` once an application has proved that it cannot.
    possible: bool,
    /// The worker that boots.
    booter: Option<Peer>,
    /// Orders that wait for its boot. If the boot fails, they wait for the next order, which the server sends when it
    /// is time to retry.
    waiting: VecDeque<Order>,
    template: Option<Peer>,
    /// Orders that were sent to the template and not answered yet.
    given: VecDeque<Order>,
    /// The template's snapshot, until it is taken.
    snapshot: Option<StoredMemory>,
}

/// The sealed file of a snapshot, and the memory that is stored in it: start, end, and place in the file.
pub(crate) struct StoredMemory {
    pub(crate) file: OwnedFd,
    pub(crate) areas: Vec<[u64; 3]>,
}

/// The process that executes an order.
pub(crate) enum Origin {
    /// The zygote forks the worker, which boots.
    Zygote(Order),
    /// The zygote forks the worker, which boots and reports through this socket whether others can be forked from it.
    Booter(Order, OwnedFd, OwnedFd),
    /// The template executes it, or it waits for a boot.
    Elsewhere,
}

impl SharedBoot {
    /// `possible`: this pool takes snapshots.
    pub(crate) fn new(possible: bool) -> Self {
        Self { possible, ..Self::default() }
    }

    /// Decides how to execute an order. `Booter` comes with both ends of the worker's socket.
    pub(crate) fn place(&mut self, order: Order) -> io::Result<Origin> {
        if !self.possible {
            return Ok(Origin::Zygote(order));
        }
        if let Some(template) = &self.template {
            let fds: Vec<_> = order.fds.iter().map(AsFd::as_fd).collect();
            let message = serde_json::to_vec(&ToZygote::Fork { worker: order.worker })?;
            match control_socket::send(&template.socket, &message, &fds, true) {
                // If it has died, the zygote will soon notice.
                Err(error) if !matches!(error.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset) => {
                    return Err(error);
                }
                _ => self.given.push_back(order),
            }
            return Ok(Origin::Elsewhere);
        }
        if self.booter.is_some() {
            self.waiting.push_back(order);
            return Ok(Origin::Elsewhere);
        }
        let (ours, theirs) = control_socket::pair()?;
        Ok(Origin::Booter(order, ours, theirs))
    }

    /// Records that the booting worker was forked.
    pub(crate) fn boots(&mut self, pid: Pid, socket: OwnedFd) {
        self.booter = Some(Peer { pid, socket });
    }

    /// The socket on which the booting worker or the template sends messages.
    pub(crate) fn socket(&self) -> Option<&OwnedFd> {
        self.booter.as_ref().or(self.template.as_ref()).map(|peer| &peer.socket)
    }

    /// Receives a message from the booting worker or the template; `None` without one.
    pub(crate) fn receive(&mut self) -> Option<FromZygote> {
        let bytes = loop {
            let Some((bytes, mut fds)) = control_socket::receive(self.socket()?, true).ok()? else {
                // The worker has ended, or has become another program and will not boot. Polling a closed socket would
                // wake the zygote for ever; for a template this lasts only until its end is noticed.
                self.booter = None;
                return None;
            };
            let Some(file) = fds.pop() else { break bytes };
            self.snapshot = serde_json::from_slice(&bytes).ok().map(|areas| StoredMemory { file, areas });
        };
        let message = serde_json::from_slice(&bytes).ok()?;
        match &message {
            FromZygote::Template { pid, .. } => {
                let socket = self.booter.take()?.socket;
                self.template = Some(Peer { pid: Pid::from_raw(*pid as i32)?, socket });
            }
            FromZygote::Unshared { .. } => {
                self.booter = None;
                self.snapshot = None;
                self.possible = false;
            }
            // The worker will be replaced, and the next one boots.
            FromZygote::WarmUp { refused: true, .. } => self.booter = None,
            FromZygote::WarmUp { .. } => {}
            FromZygote::Forked { worker, .. } | FromZygote::ForkFailed { worker, .. } => {
                self.given.retain(|order| order.worker != *worker);
            }
            _ => return None,
        }
        Some(message)
    }

    /// The new template's snapshot, once.
    pub(crate) fn take_snapshot(&mut self) -> Option<StoredMemory> {
        self.snapshot.take_if(|_| self.template.is_some())
    }

    /// Process id of the template.
    pub(crate) fn template(&self) -> Option<Pid> {
        self.template.as_ref().map(|template| template.pid)
    }

    /// Orders the template to end.
    pub(crate) fn dismiss(&self) {
        if let Some(template) = &self.template {
            let _ = rustix::net::shutdown(&template.socket, rustix::net::Shutdown::Write);
        }
    }

    /// Handles the end of a process whose messages were all received. Returns orders to be placed again: those that a
    /// template had not answered. A worker that it was forking does not start without the template's report.
    pub(crate) fn ended(&mut self, pid: Pid) -> VecDeque<Order> {
        if self.booter.take_if(|booter| booter.pid == pid).is_some() {
            self.snapshot = None;
        }
        match self.template.take_if(|template| template.pid == pid) {
            Some(_) => std::mem::take(&mut self.given),
            None => VecDeque::new(),
        }
    }

    /// Returns the orders that no longer wait for a boot, after a message was received.
    pub(crate) fn released(&mut self) -> VecDeque<Order> {
        if self.possible && self.template.is_none() { VecDeque::new() } else { std::mem::take(&mut self.waiting) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Regression: if a boot script called `pcntl_exec()`, the closed socket kept waking the zygote for as long as that
    /// program ran.
    #[test]
    fn messages_of_a_booting_worker_that_became_another_program_are_ignored() {
        let mut shared_boot = SharedBoot::new(true);
        let Origin::Booter(order, ours, theirs) = shared_boot.place(Order { worker: 1, fds: Vec::new() }).unwrap()
        else {
            panic!("the first worker boots");
        };
        assert_eq!(order.worker, 1);
        shared_boot.boots(rustix::process::getpid(), ours);
        assert!(matches!(shared_boot.place(Order { worker: 2, fds: Vec::new() }).unwrap(), Origin::Elsewhere));
        assert!(shared_boot.receive().is_none() && shared_boot.socket().is_some(), "no message yet");
        drop(theirs);
        assert!(shared_boot.receive().is_none() && shared_boot.socket().is_none(), "no further message");
        assert!(matches!(shared_boot.place(Order { worker: 3, fds: Vec::new() }).unwrap(), Origin::Booter(..)));
    }
}
