//! Watches requests that were put behind others: calls `Scheduler::spread` when they are due for a check.
//!
//! One task on each I/O thread, with its own timer. It is a timerfd, since the runtime's timers have a resolution of a
//! millisecond, in which an idle worker could have run a hundred short requests. It is armed only while a request waits
//! behind another. The timer is never read: setting it again makes the next expiry a new edge.

use crate::descriptor::{self, SharedFd};
use crate::panics;
use crate::shared::Shared;
use rustix::time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec};
use std::io;
use std::os::fd::AsFd;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};
use tokio::io::unix::AsyncFd;
use tokio::sync::Notify;

/// Starts a watch on each I/O thread.
pub(crate) fn start(pool: &Arc<Shared>) {
    for io_thread in 0..pool.io_threads().len() {
        let weak = Arc::downgrade(pool);
        let (notify, first_check) = {
            let scheduler = pool.lock();
            (scheduler.watch(io_thread), scheduler.first_check())
        };
        pool.io_threads().runtime(io_thread).spawn(async move {
            let watch = || run(weak.clone(), io_thread, notify.clone(), first_check);
            panics::kept_running("the watch over waiting requests", watch).await;
        });
    }
}

/// Runs until the pool is gone.
async fn run(pool: Weak<Shared>, io_thread: usize, notify: Arc<Notify>, first_check: Duration) {
    let mut timer = Timer::new();
    loop {
        notify.notified().await;
        let mut next_check = Some(first_check);
        while let Some(pause) = next_check {
            timer.sleep(pause).await;
            let Some(pool) = pool.upgrade() else { return };
            next_check = pool.lock().spread(io_thread, Instant::now());
        }
        if pool.strong_count() == 0 {
            return;
        }
    }
}

/// A timer with microsecond resolution, or milliseconds if the system has no descriptor for it.
enum Timer {
    Fine(AsyncFd<SharedFd>),
    Coarse,
}

impl Timer {
    fn new() -> Self {
        let timer =
            rustix::time::timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK)
                .map_err(io::Error::from)
                .and_then(|timer| descriptor::watch(Arc::new(timer)));
        timer.map_or_else(
            |error| {
                tracing::warn!("cannot create a high-resolution timer: requests that wait behind others move up to 1 ms later: {error}");
                Self::Coarse
            },
            Self::Fine,
        )
    }

    async fn sleep(&mut self, pause: Duration) {
        let Self::Fine(timer) = self else { return tokio::time::sleep(pause).await };
        let it_value = Timespec { tv_sec: pause.as_secs() as _, tv_nsec: i64::from(pause.subsec_nanos().max(1)) as _ };
        let once = Itimerspec { it_interval: Timespec { tv_sec: 0, tv_nsec: 0 }, it_value };
        let set = rustix::time::timerfd_settime(timer.get_ref().get().as_fd(), TimerfdTimerFlags::empty(), &once);
        match set {
            Ok(_) => {
                if let Ok(mut ready) = timer.readable().await {
                    ready.clear_ready();
                }
            }
            Err(_) => tokio::time::sleep(pause).await,
        }
    }
}
