//! Ends processes that a killed zygote could not end itself: programs that scripts had started in the background. The
//! server is the next subreaper above the zygotes, so these processes become its children. Its other children are
//! registered (`keep`).
//!
//! Disabled in a process with the id 1, as in a container: there the kernel reparents all orphans to it.

use howdah_transport::descendants::ChildTermination;
use parking_lot::Mutex;
use rustix::process::Pid;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// Interval at which the remaining children are listed and killed.
const POLL_INTERVAL: Duration = Duration::from_millis(10);
/// Maximum time to end them.
const LAST_WAIT: Duration = Duration::from_secs(5);

/// Expected children: zygotes, and children from before the program began. `None`: orphans are not handled here.
static CHILDREN: Mutex<Option<BTreeSet<i32>>> = Mutex::new(None);

/// Makes this process the parent of its zygotes' orphans. Called once, before the first pool starts.
pub fn adopt_orphans() {
    let this = rustix::process::getpid();
    if this != Pid::INIT && rustix::process::set_child_subreaper(Some(this)).is_ok() {
        *CHILDREN.lock() = Some(children());
    }
}

/// Registers an expected child. Called on the thread that also calls `end_orphans`, before that can run.
pub fn keep(pid: Option<u32>) {
    change(|ours| ours.extend(pid.and_then(|pid| i32::try_from(pid).ok())));
}

/// Removes an expected child that was reaped.
pub fn forget(pid: Option<u32>) {
    change(|ours| {
        if let Some(pid) = pid.and_then(|pid| i32::try_from(pid).ok()) {
            ours.remove(&pid);
        }
    });
}

fn change(change: impl FnOnce(&mut BTreeSet<i32>)) {
    if let Some(ours) = CHILDREN.lock().as_mut() {
        change(ours);
    }
}

/// Ends and reaps children that are not expected.
pub(crate) async fn end_orphans() {
    let begun = Instant::now();
    let mut ending = ChildTermination::default();
    while begun.elapsed() < LAST_WAIT {
        let ours = CHILDREN.lock().clone();
        let Some(ours) = ours else { return };
        let left: Vec<Pid> = children().difference(&ours).filter_map(|&pid| Pid::from_raw(pid)).collect();
        if ending.round(&left) {
            return;
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

/// The children of all threads.
fn children() -> BTreeSet<i32> {
    let threads = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let lists = threads.filter_map(|thread| std::fs::read_to_string(thread.path().join("children")).ok());
    let numbers = |list: String| list.split_ascii_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>();
    lists.flat_map(numbers).collect()
}
