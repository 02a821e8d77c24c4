//! A worker's life cycle in Rust: from the fork to the exit.

use crate::worker_lane::{Descriptors, take_lane};
use crate::{child, memory, php, priority, sandbox, template};
use rustix::process::Pid;
use std::os::fd::OwnedFd;

/// Runs a newly forked worker to its end. Never returns into the zygote's code. With `offers` it reports there to the
/// zygote, once its application has booted, whether other workers can be forked from it.
pub(crate) fn run(worker: u32, parent: Pid, descriptors: Descriptors, offers: Option<OwnedFd>) -> ! {
    child::die_with(parent);
    php::after_fork();
    priority::remember();
    take_lane(worker, descriptors);
    match offers {
        // Its forks send their own memory.
        Some(offers) => template::expect(offers, parent),
        None => memory::forget(),
    }
    // This process has run no application code yet (preloading runs in the zygote), and nothing below needs more rights
    // than the sandbox leaves.
    sandbox::enter();
    let status = php::run_worker();
    php::shutdown();
    child::exit(status)
}
