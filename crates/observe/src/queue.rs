//! Log lines on their way out: a bounded queue in memory, and a thread that writes it. Logging never waits for a disk
//! or for the reader of a pipe; lines that do not fit are dropped, counted and reported once there is room again. Lines
//! keep their order.

use parking_lot::{Condvar, Mutex, MutexGuard};
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::sink::{Lost, Sink};

/// Written at a time, so that progress can be seen.
const CHUNK_LEN: usize = 64 * 1024;

/// A flush gives up when nothing has been written for so long. Longer than a thread waits for its turn on a busy machine.
const STUCK_AFTER: Duration = Duration::from_secs(2);

/// A flush gives up after this, even if lines trickle out: a stop has to end within its grace time.
const FLUSH_AT_MOST: Duration = Duration::from_secs(5);

/// Format and counters of a log's lines.
pub(crate) trait Owner: std::fmt::Debug + Send + Sync + 'static {
    /// So many lines were lost.
    fn lost(&self, lines: u64);
    /// A line for the log itself that says so, if it can hold one.
    fn notice(&self, lines: u64) -> Option<Vec<u8>>;
    /// The log cannot be written. Told once, until it can be written again.
    fn failed(&self, error: &io::Error);
    /// It can be written again; so many lines were lost in the meantime. A line for the log itself that says so, if it can
    /// hold one.
    fn back(&self, lines: u64) -> Option<Vec<u8>>;
}

/// Behavior of a queue.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Manner {
    /// The thread's name.
    pub(crate) name: &'static str,
    /// Maximum time that a line waits for others before it is written.
    pub(crate) gather: Duration,
    /// With so many bytes waiting, they are written at once.
    pub(crate) enough: usize,
    /// With so many bytes waiting, further lines are dropped.
    pub(crate) most: usize,
}

/// The queue of one log. Dropping it writes what waits, as far as the sink takes it.
#[derive(Debug)]
pub(crate) struct Queue {
    shared: Arc<Shared>,
    manner: Manner,
    owner: Arc<dyn Owner>,
}

#[derive(Debug)]
struct Shared {
    waiting: Mutex<Waiting>,
    /// Told when lines begin to wait, when many wait, and when the writer has something else to do.
    wake: Condvar,
    /// Told when something was written, and when the writer ends.
    moved: Condvar,
}

#[derive(Debug, Default)]
struct Waiting {
    lines: Vec<u8>,
    /// Lines that did not fit since the last batch.
    dropped: u64,
    /// Write at once: a flush was asked for, or the log closes.
    now: bool,
    closing: bool,
    ended: bool,
    reopen: bool,
    reopened: Option<io::Result<()>>,
    /// Total number of bytes put into `lines`.
    accepted: u64,
    /// Number of them that have been written, or were lost in the attempt.
    done: u64,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock()
    }

    /// Waits for `moved` until `over`, or until nothing has been written for too long. The last state.
    fn wait_until(&self, over: impl Fn(&Waiting) -> bool) -> MutexGuard<'_, Waiting> {
        let mut waiting = self.lock();
        let (last, mut done, mut since) = (Instant::now() + FLUSH_AT_MOST, waiting.done, Instant::now());
        while !over(&waiting) {
            let now = Instant::now();
            if waiting.done != done {
                (done, since) = (waiting.done, now);
            }
            let left = (since + STUCK_AFTER).min(last).saturating_duration_since(now);
            if left.is_zero() {
                break;
            }
            self.moved.wait_for(&mut waiting, left);
        }
        waiting
    }
}

impl Queue {
    /// Starts the thread that writes to `sink`.
    pub(crate) fn start(manner: Manner, sink: Sink, owner: Arc<dyn Owner>) -> io::Result<Self> {
        let shared = Arc::new(Shared { waiting: Mutex::default(), wake: Condvar::new(), moved: Condvar::new() });
        let (theirs, told) = (Arc::clone(&shared), Arc::clone(&owner));
        // Not joined: where the sink hangs, so does the thread, and the process ends without it.
        std::thread::Builder::new()
            .name(manner.name.to_owned())
            .spawn(move || Writer { shared: &theirs, sink, owner: &*told, manner, failing: false, lost: 0 }.run())?;
        Ok(Self { shared, manner, owner })
    }

    /// Adds a line, with its end. False: there is no room, and the line is lost (and will be reported).
    pub(crate) fn push(&self, line: &[u8]) -> bool {
        let mut waiting = self.shared.lock();
        let before = waiting.lines.len();
        let after = before + line.len();
        if after > self.manner.most {
            waiting.dropped += 1;
            drop(waiting);
            // Counted here, as the writer may hang for ever.
            self.owner.lost(1);
            return false;
        }
        waiting.lines.extend_from_slice(line);
        waiting.accepted += line.len() as u64;
        drop(waiting);
        // The writer is notified twice per batch at most, so most lines cost no system call.
        if before == 0 || (before < self.manner.enough && after >= self.manner.enough) {
            self.shared.wake.notify_one();
        }
        true
    }

    /// Has written what waits; gives up (false) where the sink takes nothing.
    pub(crate) fn flush(&self) -> bool {
        let wanted = {
            let mut waiting = self.shared.lock();
            waiting.now = true;
            waiting.accepted
        };
        self.shared.wake.notify_one();
        self.shared.wait_until(|waiting| waiting.done >= wanted).done >= wanted
    }

    /// Writes what waits, then opens the sink anew.
    pub(crate) fn reopen(&self) -> io::Result<()> {
        let mut waiting = self.shared.lock();
        waiting.reopen = true;
        waiting.reopened = None;
        drop(waiting);
        self.shared.wake.notify_one();
        let reopened = self.shared.wait_until(|waiting| waiting.reopened.is_some()).reopened.take();
        reopened.unwrap_or_else(|| Err(io::Error::new(io::ErrorKind::TimedOut, "a log hangs in a write")))
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        let mut waiting = self.shared.lock();
        waiting.now = true;
        waiting.closing = true;
        drop(waiting);
        self.shared.wake.notify_one();
        drop(self.shared.wait_until(|waiting| waiting.ended));
    }
}

/// State of the writer's thread.
struct Writer<'a> {
    shared: &'a Shared,
    sink: Sink,
    owner: &'a dyn Owner,
    manner: Manner,
    failing: bool,
    /// Lines lost since it fails.
    lost: u64,
}

/// The writer's next work.
#[derive(Default)]
struct Work {
    lines: Vec<u8>,
    dropped: u64,
    reopen: bool,
}

impl Writer<'_> {
    /// Sleeps until lines wait, lets a batch gather, writes it.
    fn run(mut self) {
        let mut work = Work::default();
        self.sink.begin();
        while self.next(&mut work) {
            self.write(&work.lines);
            // They would have come behind those that waited.
            if work.dropped > 0
                && let Some(notice) = self.owner.notice(work.dropped)
            {
                let _ = self.sink.write(&notice);
            }
            if work.reopen {
                let reopened = self.sink.reopen();
                self.shared.lock().reopened = Some(reopened);
                self.shared.moved.notify_all();
            }
            work.lines.clear();
            if work.lines.capacity() > 4 * CHUNK_LEN {
                work.lines.shrink_to(CHUNK_LEN);
            }
        }
        // Closed before the end is reported.
        drop(self.sink);
        self.shared.lock().ended = true;
        self.shared.moved.notify_all();
    }

    /// Waits for work. False: there will be none.
    fn next(&self, work: &mut Work) -> bool {
        let mut waiting = self.shared.lock();
        while waiting.lines.is_empty() && !waiting.reopen {
            if waiting.closing {
                return false;
            }
            self.shared.wake.wait(&mut waiting);
        }
        let until = Instant::now() + self.manner.gather;
        while !waiting.now && !waiting.reopen && waiting.lines.len() < self.manner.enough {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            self.shared.wake.wait_for(&mut waiting, left);
        }
        std::mem::swap(&mut waiting.lines, &mut work.lines);
        work.dropped = std::mem::take(&mut waiting.dropped);
        work.reopen = std::mem::take(&mut waiting.reopen);
        waiting.now = waiting.closing;
        true
    }

    fn write(&mut self, mut lines: &[u8]) {
        while !lines.is_empty() {
            // Whole lines, so that a file that others append to as well has no line within another.
            let end = match lines.get(..CHUNK_LEN) {
                None => lines.len(),
                Some(piece) => piece.iter().rposition(|byte| *byte == b'\n').map_or_else(
                    || lines.iter().position(|byte| *byte == b'\n').map_or(lines.len(), |at| at + 1),
                    |at| at + 1,
                ),
            };
            let (piece, rest) = lines.split_at(end);
            match self.sink.write(piece) {
                Ok(()) if self.failing => {
                    self.failing = false;
                    if let Some(notice) = self.owner.back(std::mem::take(&mut self.lost)) {
                        let _ = self.sink.write(&notice);
                    }
                }
                Ok(()) => {}
                Err(Lost { lines, error }) => {
                    self.owner.lost(lines);
                    self.lost += lines;
                    if !std::mem::replace(&mut self.failing, true) {
                        self.owner.failed(&error);
                    }
                }
            }
            self.shared.lock().done += piece.len() as u64;
            self.shared.moved.notify_all();
            lines = rest;
        }
    }
}
