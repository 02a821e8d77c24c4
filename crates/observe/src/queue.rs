//! A bounded queue of log lines in memory, and the thread that writes them. Logging never waits for a disk or for the
//! reader of a pipe: lines that do not fit are dropped, counted, and reported once there is room again. Lines keep
//! their order.

use parking_lot::{Condvar, Mutex, MutexGuard};
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::sink::{LostLines, Sink};

/// Bytes per write. Small enough that a flush can observe progress.
const CHUNK_LEN: usize = 64 * 1024;

/// A flush gives up after this time without progress. Longer than a thread waits for its turn on a busy machine.
const STUCK_AFTER: Duration = Duration::from_secs(2);

/// A flush gives up after this time even if lines trickle out: a stop has to end within its grace time.
const FLUSH_AT_MOST: Duration = Duration::from_secs(5);

/// Format and counters of a log's lines.
pub(crate) trait Owner: std::fmt::Debug + Send + Sync + 'static {
    /// Counts lost lines.
    fn lost(&self, lines: u64);
    /// Formats a line that reports lost lines in the log itself, if the log can hold one.
    fn notice(&self, lines: u64) -> Option<Vec<u8>>;
    /// Called when the log cannot be written; once, until a write succeeds again.
    fn failed(&self, error: &io::Error);
    /// Called when the log can be written again, with the number of lines lost since the failure. Returns a line that
    /// reports the loss in the log itself, if the log can hold one.
    fn back(&self, lines: u64) -> Option<Vec<u8>>;
}

/// Behavior of a queue.
#[derive(Debug, Clone, Copy)]
pub(crate) struct QueueOptions {
    /// The thread's name.
    pub(crate) name: &'static str,
    /// Maximum time a line waits for more lines before it is written.
    pub(crate) gather: Duration,
    /// Queued bytes at which lines are written at once.
    pub(crate) enough: usize,
    /// Queued bytes above which further lines are dropped.
    pub(crate) most: usize,
}

/// The queue of one log. Dropping it writes the queued lines, as far as the sink accepts them.
#[derive(Debug)]
pub(crate) struct Queue {
    shared: Arc<Shared>,
    options: QueueOptions,
    owner: Arc<dyn Owner>,
}

#[derive(Debug)]
struct Shared {
    waiting: Mutex<Waiting>,
    /// Notified when the queue becomes nonempty, when it reaches `enough`, and when the writer has to flush, reopen or
    /// end.
    wake: Condvar,
    /// Notified after each write, and when the writer ends.
    moved: Condvar,
}

#[derive(Debug, Default)]
struct Waiting {
    lines: Vec<u8>,
    /// Lines that did not fit since the last batch.
    dropped: u64,
    /// Write at once: a flush was requested, or the log closes.
    now: bool,
    closing: bool,
    ended: bool,
    reopen: bool,
    reopened: Option<io::Result<()>>,
    /// Total number of bytes put into `lines`.
    accepted: u64,
    /// Number of these bytes that were written, or lost in the attempt.
    done: u64,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock()
    }

    /// Waits on `moved` until `over` holds, or until there was no progress for too long. Returns the final state.
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
    pub(crate) fn start(options: QueueOptions, sink: Sink, owner: Arc<dyn Owner>) -> io::Result<Self> {
        let shared = Arc::new(Shared { waiting: Mutex::default(), wake: Condvar::new(), moved: Condvar::new() });
        let (theirs, told) = (Arc::clone(&shared), Arc::clone(&owner));
        // Not joined: if the sink hangs, the thread hangs too, and the process must end without it.
        std::thread::Builder::new()
            .name(options.name.to_owned())
            .spawn(move || Writer { shared: &theirs, sink, owner: &*told, options, failing: false, lost: 0 }.run())?;
        Ok(Self { shared, options, owner })
    }

    /// Adds a line, including its line end. Returns `false` if there is no room; the line is then lost and will be
    /// reported.
    pub(crate) fn push(&self, line: &[u8]) -> bool {
        let mut waiting = self.shared.lock();
        let before = waiting.lines.len();
        let after = before + line.len();
        if after > self.options.most {
            waiting.dropped += 1;
            drop(waiting);
            // Counted here, because the writer may hang forever.
            self.owner.lost(1);
            return false;
        }
        waiting.lines.extend_from_slice(line);
        waiting.accepted += line.len() as u64;
        drop(waiting);
        // The writer is notified twice per batch at most, so most lines cost no system call.
        if before == 0 || (before < self.options.enough && after >= self.options.enough) {
            self.shared.wake.notify_one();
        }
        true
    }

    /// Writes all queued lines. Gives up and returns `false` after `STUCK_AFTER` in which the sink accepts nothing, or
    /// after `FLUSH_AT_MOST`.
    pub(crate) fn flush(&self) -> bool {
        let wanted = {
            let mut waiting = self.shared.lock();
            waiting.now = true;
            waiting.accepted
        };
        self.shared.wake.notify_one();
        self.shared.wait_until(|waiting| waiting.done >= wanted).done >= wanted
    }

    /// Writes the queued lines, then reopens the sink.
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

/// State of the writer thread.
struct Writer<'a> {
    shared: &'a Shared,
    sink: Sink,
    owner: &'a dyn Owner,
    options: QueueOptions,
    failing: bool,
    /// Lines lost since the sink began to fail.
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
    /// Sleeps until lines arrive, lets a batch gather, and writes it.
    fn run(mut self) {
        let mut work = Work::default();
        self.sink.begin();
        while self.next(&mut work) {
            self.write(&work.lines);
            // The dropped lines would have followed those that were queued.
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
        // Closes the sink before the end is reported.
        drop(self.sink);
        self.shared.lock().ended = true;
        self.shared.moved.notify_all();
    }

    /// Waits for work. Returns `false` if the queue is closed.
    fn next(&self, work: &mut Work) -> bool {
        let mut waiting = self.shared.lock();
        while waiting.lines.is_empty() && !waiting.reopen {
            if waiting.closing {
                return false;
            }
            self.shared.wake.wait(&mut waiting);
        }
        let until = Instant::now() + self.options.gather;
        while !waiting.now && !waiting.reopen && waiting.lines.len() < self.options.enough {
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
            // Writes whole lines only: if others append to the file as well, no line ends up within another.
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
                Err(LostLines { lines, error }) => {
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
