//! Events for the supervisor: from lane readers, the zygote's socket, waiting requests, and the operator.

use crate::process::end::{Death, End};
use crate::process::profile::SamplesSender;
use howdah_transport::zygote_protocol::FromZygote;
use std::os::fd::OwnedFd;
use std::time::Duration;
use tokio::sync::oneshot;

/// The receiver of a reload's result.
pub(crate) type ReloadWaiter = oneshot::Sender<Result<(), String>>;

/// An event for the supervisor.
#[derive(Debug)]
pub(crate) enum Event {
    WorkerReady {
        worker: u32,
        generation: u64,
    },
    /// A worker takes no more requests, or will soon stop: it can be replaced before it ends.
    WorkerRetires,
    /// The first request since the supervisor began to doze.
    RequestsBegin,
    /// A request has to wait: the pool may have to grow.
    RequestsWait,
    /// A worker is ending because its boot is outdated: files that it read have changed, or PHP code has reported it.
    BootOutdated {
        generation: u64,
        boot_began_us: u64,
    },
    WorkerGone(Death),
    Zygote {
        generation: u64,
        message: FromZygote,
        fds: Vec<OwnedFd>,
    },
    ZygoteGone {
        generation: u64,
        end: End,
    },
    /// A profile of the workers is requested. `taker` receives the samples, `begun` the result of the start.
    Profile {
        rate: u32,
        length: Duration,
        taker: SamplesSender,
        begun: oneshot::Sender<Result<(), String>>,
    },
    /// Makes the supervisor panic.
    #[cfg(test)]
    Panic,
    Reload(ReloadWaiter),
    Stop {
        grace: Duration,
        done: oneshot::Sender<()>,
    },
}
