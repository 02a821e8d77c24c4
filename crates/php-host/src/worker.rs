//! A worker's life in Rust: from the fork to the exit.

use crate::{bridge, memory, php, sandbox, stack_signal, template};
use howdah_transport::WorkerEnd;
use howdah_transport::control_socket::ControlSocket;
use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal};
use std::os::fd::{AsRawFd, OwnedFd};

/// Exit status of a worker that could not take its lane.
const NO_LANE: i32 = 70;

/// What a worker is given.
pub(crate) struct Descriptors {
    pub(crate) lane: OwnedFd,
    /// Wakes the server.
    pub(crate) eventfd: OwnedFd,
    pub(crate) control: OwnedFd,
    /// Its end of the wake pipe, in async mode.
    pub(crate) wake_pipe: Option<OwnedFd>,
}

impl Descriptors {
    /// Those of a fork order, in their order.
    pub(crate) fn new(fds: Vec<OwnedFd>) -> Option<Self> {
        let mut fds = fds.into_iter();
        let given = Self { lane: fds.next()?, eventfd: fds.next()?, control: fds.next()?, wake_pipe: fds.next() };
        fds.next().is_none().then_some(given)
    }
}

/// Runs a freshly forked worker to its end. Never returns into the zygote's code. With `offers` it tells the zygote there
/// whether other workers can be forked from it once its application has booted.
pub(crate) fn run(worker: u32, parent: Pid, descriptors: Descriptors, offers: Option<OwnedFd>) -> ! {
    die_with(parent);
    php::after_fork();
    crate::priority::remember();
    take_lane(worker, descriptors);
    match offers {
        // What is forked from it hands over memory of its own.
        Some(offers) => template::expect(offers, parent),
        None => memory::forget(),
    }
    // Nothing of the application has run yet, and nothing below needs more than it will be left.
    sandbox::enter();
    let status = php::run_worker();
    php::shutdown();
    exit(status)
}

/// Has the kernel end this process when the zygote ends.
pub(crate) fn die_with(zygote: Pid) {
    // The order matters: a parent that died before this call would never be noticed, so it is checked afterwards.
    let _ = set_parent_process_death_signal(Some(Signal::KILL));
    if getppid() != Some(zygote) {
        exit(0);
    }
}

/// Makes this process the worker behind a lane.
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
            exit(NO_LANE);
        }
    };
    drop(lane);
    memory::offer();
    stack_signal::install(stack_socket);
    bridge::install(end);
}

/// Ends the process without running the zygote's exit handlers, which belong to the zygote.
pub(crate) fn exit(status: i32) -> ! {
    // SAFETY: _exit takes any value and does not return.
    unsafe { libc::_exit(status) }
}
