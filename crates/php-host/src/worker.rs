//! A worker's life in Rust: from the fork to the exit.

use crate::worker_lane::{Descriptors, take_lane};
use crate::{child, memory, php, priority, sandbox, template};
use rustix::process::Pid;
use std::os::fd::OwnedFd;

/// Runs a freshly forked worker to its end. Never returns into the zygote's code. With `offers` it tells the zygote there
/// whether other workers can be forked from it once its application has booted.
pub(crate) fn run(worker: u32, parent: Pid, descriptors: Descriptors, offers: Option<OwnedFd>) -> ! {
    child::die_with(parent);
    php::after_fork();
    priority::remember();
    take_lane(worker, descriptors);
    match offers {
        // Its forks hand over their own memory.
        Some(offers) => template::expect(offers, parent),
        None => memory::forget(),
    }
    // Nothing of the application has run yet, and nothing below needs more than it will be left.
    sandbox::enter();
    let status = php::run_worker();
    php::shutdown();
    child::exit(status)
}
