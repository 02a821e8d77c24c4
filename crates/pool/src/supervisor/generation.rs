//! One zygote with the workers that were forked from it, and the orders for more.

use crate::generation_status::BootSource;
use crate::lane::Lane;
use crate::learning::warm_up::WarmUp;
use crate::process::end::Deaths;
use crate::process::zygote::Zygote;
use crate::shared::Shared;
use howdah_transport::control_socket::{self, ControlSocket};
use howdah_transport::{FrameReceiver, LaneSizes, RequestSender, create_lane, new_eventfd, new_wake_pipe};
use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Instant;

/// A worker that was ordered from the zygote.
pub(crate) struct PendingWorker {
    pub(crate) sender: RequestSender,
    pub(crate) frames: FrameReceiver,
    pub(crate) eventfd: OwnedFd,
    pub(crate) control: ControlSocket,
}

pub(crate) struct Generation {
    pub(crate) number: u64,
    pub(crate) zygote: Zygote,
    pub(crate) started: Instant,
    pub(crate) booted: bool,
    pub(crate) boots: BootSource,
    pub(crate) warm_up: WarmUp,
    pub(crate) ordered: HashMap<u32, PendingWorker>,
    /// One of its workers has been ready, so the application can boot.
    pub(crate) proven: bool,
    /// The zygote is being killed because it did not boot in time.
    pub(crate) too_slow: bool,
    /// When an order found the zygote's socket closed: it has ended, or should have.
    pub(crate) closed_since: Option<Instant>,
    /// Start of the time for which the zygote has had orders that it could carry out.
    pub(crate) waits_since: Option<Instant>,
    pub(crate) deaths: Deaths,
}

impl Generation {
    /// Orders workers from the zygote until there are `target`.
    pub(crate) fn order_workers(&mut self, pool: &Shared, target: usize, taken: &mut Vec<u32>) -> io::Result<()> {
        // A death whose cause is unknown may be a failed boot, which is followed by a pause.
        if !self.booted || self.closed_since.is_some() || self.deaths.are_unexplained() {
            return Ok(());
        }
        loop {
            let number = {
                let scheduler = pool.lock();
                let counts = |lane: &&Lane| {
                    lane.generation == self.number
                        && lane.state.is_to_stay()
                        && !pool.config().retires_soon(lane.requests)
                };
                let alive = scheduler.lanes.iter().flatten().filter(counts).count();
                if alive + self.ordered.len() >= target {
                    return Ok(());
                }
                let mut number = 0;
                while taken.contains(&number) || scheduler.lanes.get(number as usize).is_some_and(Option::is_some) {
                    number += 1;
                }
                number
            };
            let (sender, frames, lane) = create_lane(LaneSizes::from_env())?;
            let eventfd = new_eventfd()?;
            let (ours, theirs) = control_socket::pair()?;
            // The worker gets the end that it waits on; the other end never leaves this process.
            let (our_wake_pipe, their_wake_pipe) =
                if pool.config().is_multiplexed() { Some(new_wake_pipe()?) } else { None }.unzip();
            let mut fds = vec![lane.as_fd(), eventfd.as_fd(), theirs.as_fd()];
            fds.extend(their_wake_pipe.as_ref().map(AsFd::as_fd));
            match self.zygote.fork(number, &fds) {
                // The zygote has ended, which will be reported shortly.
                Err(error) if matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset) => {
                    self.closed_since = Some(Instant::now());
                    return Ok(());
                }
                ordered => ordered?,
            }
            let sender = match our_wake_pipe {
                Some(wake_pipe) => sender.with_wake_pipe(wake_pipe),
                None => sender,
            };
            self.ordered.insert(number, PendingWorker { sender, frames, eventfd, control: ours.into() });
            taken.push(number);
        }
    }
}
