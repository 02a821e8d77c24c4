//! The zygote's side of a boot that workers share: who boots, who waits for that, and the template.

use howdah_transport::control_socket;
use howdah_transport::zygote_protocol::{FromZygote, ToZygote};
use rustix::process::Pid;
use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, OwnedFd};

/// An order for a worker.
pub(crate) struct Order {
    pub(crate) worker: u32,
    pub(crate) fds: Vec<OwnedFd>,
}

/// A process that has another end of a socket.
struct Peer {
    pid: Pid,
    socket: OwnedFd,
}

/// Where new workers come from.
#[derive(Default)]
pub(crate) struct Sharing {
    /// One boot may serve all workers; `false` once an application has shown that it cannot.
    possible: bool,
    /// The worker that boots.
    booter: Option<Peer>,
    /// Orders that wait for its boot. Should that fail they wait for the next order, which the server gives when it is
    /// time to try again.
    waiting: VecDeque<Order>,
    template: Option<Peer>,
    /// Orders that the template was given and has not answered.
    given: VecDeque<Order>,
}

/// Execution of an order.
pub(crate) enum Origin {
    /// The zygote forks the worker, which boots.
    Zygote(Order),
    /// Boots, and reports through this socket whether others can be forked from it.
    Booter(Order, OwnedFd, OwnedFd),
    /// It is taken care of.
    Elsewhere,
}

impl Sharing {
    /// `possible`: this pool takes snapshots.
    pub(crate) fn new(possible: bool) -> Self {
        Self { possible, ..Self::default() }
    }

    /// Decides about an order. `Booter` comes with both ends of the worker's socket.
    pub(crate) fn place(&mut self, order: Order) -> io::Result<Origin> {
        if !self.possible {
            return Ok(Origin::Zygote(order));
        }
        if let Some(template) = &self.template {
            let fds: Vec<_> = order.fds.iter().map(AsFd::as_fd).collect();
            let message = serde_json::to_vec(&ToZygote::Fork { worker: order.worker })?;
            match control_socket::send(&template.socket, &message, &fds, true) {
                // If it has died, that will be noticed in a moment.
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

    /// The worker that boots was forked.
    pub(crate) fn boots(&mut self, pid: Pid, socket: OwnedFd) {
        self.booter = Some(Peer { pid, socket });
    }

    /// The socket to listen on.
    pub(crate) fn socket(&self) -> Option<&OwnedFd> {
        self.booter.as_ref().or(self.template.as_ref()).map(|peer| &peer.socket)
    }

    /// The message of the booting worker or the template; `None` without one.
    pub(crate) fn hear(&mut self) -> Option<FromZygote> {
        let Some((bytes, _)) = control_socket::receive(self.socket()?, true).ok()? else {
            // A worker that ends, or one that has become another program and will not boot. To go on listening would be to
            // wake up for ever; for a template only until its end is noticed.
            self.booter = None;
            return None;
        };
        let message = serde_json::from_slice(&bytes).ok()?;
        match &message {
            FromZygote::Template { pid, .. } => {
                let socket = self.booter.take()?.socket;
                self.template = Some(Peer { pid: Pid::from_raw(*pid as i32)?, socket });
            }
            FromZygote::Unshared { .. } => {
                self.booter = None;
                self.possible = false;
            }
            // It will be replaced, and the next worker boots.
            FromZygote::WarmUp { refused: true, .. } => self.booter = None,
            FromZygote::WarmUp { .. } => {}
            FromZygote::Forked { worker, .. } | FromZygote::ForkFailed { worker, .. } => {
                self.given.retain(|order| order.worker != *worker);
            }
            _ => return None,
        }
        Some(message)
    }

    /// The template's process.
    pub(crate) fn template(&self) -> Option<Pid> {
        self.template.as_ref().map(|template| template.pid)
    }

    /// Tells the template to end.
    pub(crate) fn dismiss(&self) {
        if let Some(template) = &self.template {
            let _ = rustix::net::shutdown(&template.socket, rustix::net::Shutdown::Write);
        }
    }

    /// A process has ended, and everything that it said was heard. Returns orders that are to be placed again: those of a
    /// template, of which the one that it was about to fork does not begin without its word.
    pub(crate) fn ended(&mut self, pid: Pid) -> VecDeque<Order> {
        self.booter.take_if(|booter| booter.pid == pid);
        match self.template.take_if(|template| template.pid == pid) {
            Some(_) => std::mem::take(&mut self.given),
            None => VecDeque::new(),
        }
    }

    /// Orders that no longer wait for a boot, after something was heard.
    pub(crate) fn released(&mut self) -> VecDeque<Order> {
        if self.possible && self.template.is_none() { VecDeque::new() } else { std::mem::take(&mut self.waiting) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A boot script that calls `pcntl_exec()`: the zygote woke up for the closed socket for as long as that program ran.
    #[test]
    fn a_booting_worker_that_became_another_program_is_no_longer_listened_to() {
        let mut sharing = Sharing::new(true);
        let Origin::Booter(order, ours, theirs) = sharing.place(Order { worker: 1, fds: Vec::new() }).unwrap() else {
            panic!("the first worker boots");
        };
        assert_eq!(order.worker, 1);
        sharing.boots(rustix::process::getpid(), ours);
        assert!(matches!(sharing.place(Order { worker: 2, fds: Vec::new() }).unwrap(), Origin::Elsewhere));
        assert!(sharing.hear().is_none() && sharing.socket().is_some(), "it has said nothing yet");
        drop(theirs);
        assert!(sharing.hear().is_none() && sharing.socket().is_none(), "it will say nothing more");
        assert!(matches!(sharing.place(Order { worker: 3, fds: Vec::new() }).unwrap(), Origin::Booter(..)));
    }
}
