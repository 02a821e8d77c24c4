//! Makes a process the worker of a lane: newly forked by the zygote, or from the template.

use crate::{bridge, child, memory, stack_signal};
use howdah_transport::WorkerEnd;
use howdah_transport::control_socket::ControlSocket;
use std::os::fd::{AsRawFd, OwnedFd};

/// Exit status of a worker that could not take its lane.
const NO_LANE: i32 = 70;

/// A worker's descriptors.
pub(crate) struct Descriptors {
    pub(crate) lane: OwnedFd,
    /// Wakes the server.
    pub(crate) eventfd: OwnedFd,
    pub(crate) control: OwnedFd,
    /// The worker's end of the wake pipe, in async mode.
    pub(crate) wake_pipe: Option<OwnedFd>,
}

impl Descriptors {
    /// Takes the descriptors of a fork order, in the order in which they are sent.
    pub(crate) fn new(fds: Vec<OwnedFd>) -> Option<Self> {
        let mut fds = fds.into_iter();
        let given = Self { lane: fds.next()?, eventfd: fds.next()?, control: fds.next()?, wake_pipe: fds.next() };
        fds.next().is_none().then_some(given)
    }
}

/// Makes this process the worker of a lane.
pub(crate) fn take_lane(worker: u32, descriptors: Descriptors) {
    let Descriptors { lane, eventfd, control, wake_pipe } = descriptors;
    let stack_socket = control.as_raw_fd();
    let end = match WorkerEnd::attach(&lane, eventfd, ControlSocket::from(control)) {
        Ok(end) => match wake_pipe {
            Some(wake_pipe) => end.with_wake_pipe(wake_pipe),
            None => end,
        },
        Err(error) => {
            eprintln!("howdah-php: worker {worker}: {error}");
            child::exit(NO_LANE);
        }
    };
    drop(lane);
    memory::offer();
    stack_signal::install(stack_socket);
    bridge::install(end);
}
