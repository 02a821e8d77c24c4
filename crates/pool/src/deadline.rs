//! Deadlines: a call that runs too long loses its worker, and the log says what PHP was doing.
//!
//! The worker is asked for its stack by a signal (`STACK_SIGNAL`); its handler only reads memory and sends text over the
//! control socket. It gets `STACK_WAIT` to answer, then it is killed in any case.

use crate::descriptor;
use crate::lane::{KillReason, Phase};
use crate::lane_reader::STACK_WAIT;
use crate::pool::Pool;
use howdah_transport::control_socket::{ControlSocket, Message};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;

/// A call that is past its deadline.
struct Overdue {
    index: usize,
    pid: u32,
    control: Arc<ControlSocket>,
    pidfd: Arc<std::os::fd::OwnedFd>,
    id: String,
    label: Box<str>,
    ran: Duration,
}

/// Finds calls that have run longer than `limit` and ends their workers.
pub(crate) fn enforce(pool: &Arc<Pool>, limit: Duration) {
    let mut overdue = Vec::new();
    {
        let mut scheduler = pool.lock();
        for index in 0..scheduler.lanes.len() {
            let Some(lane) = scheduler.lanes[index].as_mut() else { continue };
            let Some(call) = lane.in_flight.front() else { continue };
            let ran = call.since.elapsed();
            if ran <= limit || lane.phase == Phase::Ending || lane.kill_reason.is_some() {
                continue;
            }
            overdue.push(Overdue {
                index,
                pid: lane.pid,
                control: lane.control.clone(),
                pidfd: lane.pidfd.clone(),
                id: call.job.call.id.to_string(),
                label: call.job.call.label.clone(),
                ran,
            });
            lane.kill_reason = Some(KillReason::Deadline);
            // Takes no new calls and gives back the one that waits behind.
            scheduler.drain_lane(index);
        }
    }
    for call in overdue {
        tokio::spawn(end(pool.clone(), call));
    }
}

async fn end(pool: Arc<Pool>, call: Overdue) {
    let stack = match rustix::process::pidfd_send_signal(&*call.pidfd, howdah_transport::STACK_SIGNAL) {
        Ok(()) => tokio::time::timeout(STACK_WAIT, read_stack(&call.control)).await.ok().flatten(),
        Err(_) => None,
    };
    pool.kill_lane(call.index, KillReason::Deadline);
    let stack = stack.unwrap_or_else(|| "not available".to_owned());
    tracing::error!(
        pool = pool.name(),
        pid = call.pid,
        request = call.id,
        label = call.label,
        "past the deadline after {:.1} s, worker killed; PHP stack: {}",
        call.ran.as_secs_f64(),
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
