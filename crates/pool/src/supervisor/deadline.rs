//! Deadlines: the worker of a request that runs too long is killed, and PHP's stack is logged.
//!
//! A signal asks the worker for its stack (`STACK_SIGNAL`); the handler only reads memory and sends text over the
//! control socket. After the stack, or after `STACK_WAIT` without one, the worker is killed.
//!
//! A multiplexed worker is not killed at once. The client gets 504, or an incomplete response if that has begun, and
//! the worker is asked to cancel the request. Only if the request has not ended `CANCEL_GRACE` later is the worker
//! killed, in the same way.

use crate::descriptor;
use crate::fault::{Fault, FaultKind};
use crate::lane::requests::InFlight;
use crate::lane::{Lane, LaneKind};
use crate::process::launcher::Launcher;
use crate::process::worker_state::KillReason;
use crate::request::time_limits::{or_of_pool, processor_time};
use crate::shared::Shared;
use howdah_transport::control_socket::{ControlSocket, Message};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Maximum time for a worker to send its PHP stack: it does so at once, unless the machine is overloaded.
const STACK_WAIT: Duration = Duration::from_secs(3);
/// Time that a multiplexed worker has to end a request that is past its deadline.
pub(crate) const CANCEL_GRACE: Duration = Duration::from_secs(5);

/// A request whose worker is killed.
struct Overdue {
    index: usize,
    reason: KillReason,
    pid: u32,
    control: Arc<ControlSocket>,
    pidfd: Arc<std::os::fd::OwnedFd>,
    launcher: Launcher,
    id: String,
    label: String,
    ran: Duration,
    /// Processor time that the request used, if that exceeded the limit.
    cpu: Option<Duration>,
}

struct ExceededLimit {
    reason: KillReason,
    cpu: Option<Duration>,
}

/// Checks the request of a serial worker against its limits. `of_pool`: the pool's limits on time and processor time.
///
/// The processor time of earlier requests is not known exactly, so counting begins at the first check. A request may
/// use up to two ticks of the supervisor more than its limit, never less.
fn exceeded_limit(
    request: &mut InFlight,
    pid: u32,
    of_pool: (Option<Duration>, Option<Duration>),
) -> Option<ExceededLimit> {
    let own = request.pending.limits;
    let ran = request.since.elapsed();
    if or_of_pool(own.deadline, of_pool.0).is_some_and(|limit| ran > limit) {
        return Some(ExceededLimit { reason: KillReason::Deadline, cpu: None });
    }
    let limit = of_pool.1?;
    let now = processor_time(pid)?;
    let used = now.saturating_sub(*request.cpu_before.get_or_insert(now));
    (used > limit).then_some(ExceededLimit { reason: KillReason::CpuDeadline, cpu: Some(used) })
}

/// Finds requests that have exceeded their time limits, and ends them or their workers. `of_pool` applies to requests
/// without their own limit; `grace` is `CANCEL_GRACE`.
pub(crate) fn enforce(pool: &Arc<Shared>, of_pool: Option<Duration>, grace: Duration) {
    let mut overdue = Vec::new();
    {
        let mut scheduler = pool.lock();
        for index in 0..scheduler.lanes.len() {
            let Some(lane) = scheduler.lanes[index].as_mut() else { continue };
            if lane.state.kill_reason().is_some() {
                continue;
            }
            let found = match lane.kind {
                LaneKind::Serial(_) => {
                    let pid = lane.pid;
                    let of_pool = (of_pool, pool.config().cpu_deadline());
                    let request = lane.in_flight.front_mut();
                    request.and_then(|request| Some((exceeded_limit(request, pid, of_pool)?, &*request)))
                }
                LaneKind::Multiplexed(_) => {
                    cancel(pool, lane, of_pool);
                    let mut requests = lane.in_flight.iter();
                    let stuck = requests.find(|c| c.overdue.is_some_and(|since| since.elapsed() > grace));
                    stuck.map(|request| (ExceededLimit { reason: KillReason::Stuck, cpu: None }, request))
                }
            };
            let Some((ExceededLimit { reason, cpu }, request)) = found else { continue };
            let ran = request.since.elapsed();
            overdue.push(Overdue {
                index,
                reason: reason.clone(),
                pid: lane.pid,
                control: lane.control.clone(),
                pidfd: lane.pidfd.clone(),
                launcher: lane.launcher.clone(),
                id: request.pending.request.id.to_string(),
                label: request.pending.request.label(),
                ran,
                cpu,
            });
            // The lane takes no new requests, and waiting ones are reassigned.
            scheduler.condemn_lane(index, reason, Instant::now());
        }
    }
    for request in overdue {
        tokio::spawn(end(pool.clone(), request));
    }
}

/// Responds to clients of overdue requests in a multiplexed lane, and asks the worker to cancel these requests.
fn cancel(pool: &Shared, lane: &mut Lane, of_pool: Option<Duration>) {
    let now = Instant::now();
    let late = |request: &&InFlight| {
        let limit = or_of_pool(request.pending.limits.deadline, of_pool);
        limit.is_some_and(|limit| now.saturating_duration_since(request.since) > limit) && !request.holds_connection()
    };
    let begun: Vec<u64> = lane
        .in_flight
        .iter()
        .filter(late)
        .filter(|request| request.overdue.is_none() && lane.is_begun(request))
        .map(|request| request.number)
        .collect();
    for number in begun {
        if let Some(request) = lane.in_flight.get(number) {
            tracing::error!(
                pool = pool.name(),
                pid = lane.pid,
                request = %request.pending.request.id,
                label = request.pending.request.label(),
                "past the deadline after {:.1} s: cancelled",
                request.since.elapsed().as_secs_f64(),
            );
            request.pending.sink.fail(Fault::new(FaultKind::Deadline));
        }
        lane.cancel_overdue(number);
    }
}

/// Kills a worker when dropped, even if asking for its stack fails.
struct KillAtEnd {
    pool: Arc<Shared>,
    index: usize,
    pid: u32,
    reason: KillReason,
}

impl Drop for KillAtEnd {
    fn drop(&mut self) {
        self.pool.lock().kill_lane(self.index, self.pid, self.reason.clone());
    }
}

async fn end(pool: Arc<Shared>, request: Overdue) {
    let kill = KillAtEnd { pool: pool.clone(), index: request.index, pid: request.pid, reason: request.reason };
    let stack = match request.launcher.ask_for_stack(&request.pidfd) {
        true => tokio::time::timeout(STACK_WAIT, read_stack(&request.control)).await.ok().flatten(),
        false => None,
    };
    drop(kill);
    let stack = stack.unwrap_or_else(|| "not available".to_owned());
    let ran = request.ran.as_secs_f64();
    let what = request.cpu.map_or_else(
        || format!("past the deadline after {ran:.1} s"),
        |cpu| format!("past its processor time: used {:.1} s in {ran:.1} s", cpu.as_secs_f64()),
    );
    tracing::error!(
        pool = pool.name(),
        pid = request.pid,
        request = request.id,
        label = request.label,
        "{what}: worker killed; PHP stack: {}",
        stack.trim_end().replace('\n', " | "),
    );
}

async fn read_stack(control: &ControlSocket) -> Option<String> {
    let socket = control.as_fd().try_clone_to_owned().ok()?;
    let socket = descriptor::watch(Arc::new(socket)).ok()?;
    loop {
        let mut ready = socket.readable().await.ok()?;
        match control.try_receive() {
            Ok(Some((Message::Stack(text), _))) => return Some(String::from_utf8_lossy(&text).into_owned()),
            Ok(Some(_)) => {}
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => ready.clear_ready(),
            _ => return None,
        }
    }
}
