//! The error log: writes each `tracing` event as one line, as text (`2026-11-21T00:00:00.123Z INFO pool: message
//! key=value`) or as JSON. A thread writes queued lines (`queue`), so that a server thread never waits for a reader of
//! the log.

use std::fmt::{self, Write as _};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, SystemTime};

use howdah_config::{LogFormat, LogLevel, LogSettings, LogTarget};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::{Event, Metadata, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};

use crate::clock::{Iso, Moment};
use crate::escape;
use crate::queue::{Owner, Queue, QueueOptions};
use crate::record::{Priority, RecordBuilder};
use crate::sink::{FileSink, Sink};

/// Queued bytes above which further lines are dropped.
const MAX_QUEUED: usize = 4 * 1024 * 1024;

/// Maximum time that a process waits for the reader of its standard error to take its last message.
const FLUSH_TIMEOUT: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };

/// Handle of the installed error log.
#[derive(Debug, Clone)]
pub struct LogHandle {
    queue: Arc<Queue>,
    dropped: Arc<AtomicU64>,
}

impl LogHandle {
    /// Reopens the log's file for log rotation (`SIGUSR1`). The old file stays in use if that fails.
    ///
    /// # Errors
    /// When the file cannot be opened, or the log hangs.
    pub fn reopen(&self) -> io::Result<()> {
        self.queue.reopen()
    }

    /// Writes all queued lines. Returns `false` if the log hangs; the queued lines are lost if the process exits now.
    pub fn flush(&self) -> bool {
        self.queue.flush()
    }

    /// Number of lines lost because the log was not writable, or too slow.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Relaxed)
    }
}

/// Installs the error log of this process, which then receives `tracing` events and panics.
///
/// # Errors
/// When the log's file cannot be opened, or a log has been set up already.
pub fn init(settings: &LogSettings) -> io::Result<LogHandle> {
    let (subscriber, handle) = subscriber(settings)?;
    tracing::subscriber::set_global_default(subscriber).map_err(io::Error::other)?;
    // The standard hook writes to standard error directly, and would wait for its reader.
    std::panic::set_hook(Box::new(|panic| {
        let thread = std::thread::current();
        let thread = thread.name().unwrap_or("-");
        let backtrace = std::backtrace::Backtrace::capture();
        if backtrace.status() == std::backtrace::BacktraceStatus::Captured {
            tracing::error!(target: "howdah", thread, %backtrace, "{panic}");
        } else {
            tracing::error!(target: "howdah", thread, "{panic}");
        }
    }));
    Ok(handle)
}

/// The error log as a `tracing` subscriber, for one part of a program (a test).
///
/// # Errors
/// When the log's file cannot be opened, or its thread cannot be started.
pub fn subscriber(settings: &LogSettings) -> io::Result<(impl Subscriber + Send + Sync + use<>, LogHandle)> {
    let sink = match &settings.error {
        LogTarget::Stderr => Sink::File(FileSink::stderr()?),
        LogTarget::File(path) => Sink::File(FileSink::file(path)?),
        LogTarget::Service(service) => Sink::service(service, "howdah")?,
    };
    let form = match settings.error {
        LogTarget::Service(_) => Form::Record(settings.format),
        _ => Form::Line(settings.format),
    };
    let dropped = Arc::new(AtomicU64::new(0));
    let options = QueueOptions { name: "error-log", gather: Duration::ZERO, enough: MAX_QUEUED, most: MAX_QUEUED };
    let is_stderr = settings.error == LogTarget::Stderr;
    let losses = Losses { dropped: Arc::clone(&dropped), form, is_stderr };
    let queue = Arc::new(Queue::start(options, sink, Arc::new(losses))?);
    let lines = Lines { queue: Arc::clone(&queue), form, level: filter(settings.level) };
    Ok((tracing_subscriber::registry().with(lines), LogHandle { queue, dropped }))
}

/// Prints the reason for the process's exit, unless standard error has no reader.
pub fn last_words(text: &str) {
    say(text, FLUSH_TIMEOUT);
}

/// Writes to standard error if that is possible without waiting.
fn say_without_waiting(text: &str) {
    say(text, Timespec { tv_sec: 0, tv_nsec: 0 });
}

fn say(text: &str, patience: Timespec) {
    let stderr = io::stderr();
    let mut fds = [PollFd::new(&stderr, PollFlags::OUT)];
    if matches!(poll(&mut fds, Some(&patience)), Ok(1..)) {
        // A pipe that polls as writable takes a page without blocking (pipe(7)).
        let words = [&text.as_bytes()[..text.len().min(4000)], b"\n"].concat();
        let _ = rustix::io::write(&stderr, &words);
    }
}

/// Counts lost lines, and reports them in the log as soon as there is room.
#[derive(Debug)]
struct Losses {
    dropped: Arc<AtomicU64>,
    form: Form,
    is_stderr: bool,
}

/// Format of an event.
#[derive(Debug, Clone, Copy)]
enum Form {
    /// A plain line.
    Line(LogFormat),
    /// An entry for a log service, with the text of the line as its message.
    Record(LogFormat),
}

impl Losses {
    fn line(&self, message: String) -> Option<Vec<u8>> {
        Some(line(self.form, "WARN", "log", &Fields { message, rest: Vec::new() }))
    }
}

impl Owner for Losses {
    fn lost(&self, lines: u64) {
        self.dropped.fetch_add(lines, Relaxed);
    }

    fn notice(&self, lines: u64) -> Option<Vec<u8>> {
        self.line(format!("{lines} lines of this log were dropped: it cannot be written fast enough"))
    }

    /// Standard error is the only other place to report this; the metric counts it as well.
    fn failed(&self, error: &io::Error) {
        if !self.is_stderr {
            say_without_waiting(&format!(
                "howdah: cannot write the error log: {error}; lines are lost until it can be written again"
            ));
        }
    }

    fn back(&self, lines: u64) -> Option<Vec<u8>> {
        self.line(format!("{lines} lines of this log were lost: it could not be written"))
    }
}

const fn filter(level: LogLevel) -> LevelFilter {
    match level {
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Trace => LevelFilter::TRACE,
    }
}

/// Writes events as lines.
struct Lines {
    queue: Arc<Queue>,
    form: Form,
    level: LevelFilter,
}

impl<S: Subscriber> Layer<S> for Lines {
    fn enabled(&self, metadata: &Metadata<'_>, _: Context<'_, S>) -> bool {
        // Libraries log every connection at levels that Howdah uses for its own events.
        let own = metadata.target().starts_with("howdah") || metadata.target() == "php";
        *metadata.level()
            <= if own || self.level == LevelFilter::TRACE { self.level } else { self.level.min(LevelFilter::WARN) }
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(self.level)
    }

    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let level = event.metadata().level().as_str();
        let target = short_target(event.metadata().target());
        self.queue.push(&line(self.form, level, target, &fields));
    }
}

fn line(form: Form, level: &str, target: &str, fields: &Fields) -> Vec<u8> {
    let now = SystemTime::now();
    let time = Moment::from(now);
    match form {
        Form::Line(LogFormat::Text | LogFormat::Terminal) => text_line(time, level, target, fields),
        Form::Line(LogFormat::Json) => json_line(time, level, target, fields),
        Form::Record(format) => {
            let message = match format {
                LogFormat::Text | LogFormat::Terminal => text_message(target, fields),
                LogFormat::Json => {
                    String::from_utf8_lossy(&json_line(time, level, target, fields)).trim_end().to_owned()
                }
            };
            let mut entry = RecordBuilder::new(now, Priority::of(level), target, &message);
            for (name, FieldValue::Bare(value) | FieldValue::Text(value)) in &fields.rest {
                entry.field(name, value);
            }
            entry.end()
        }
    }
}

/// The component that logged an event: `howdah_pool::queue` is `pool`.
fn short_target(target: &str) -> &str {
    let name = target.split("::").next().unwrap_or(target);
    name.strip_prefix("howdah_").unwrap_or(name)
}

/// An event's message and its other fields, in order.
#[derive(Default)]
struct Fields {
    message: String,
    rest: Vec<(&'static str, FieldValue)>,
}

enum FieldValue {
    Text(String),
    /// A number or boolean, which JSON writes without quotes.
    Bare(String),
}

impl Fields {
    fn put(&mut self, field: &Field, value: FieldValue) {
        match (field.name(), value) {
            ("message", FieldValue::Text(text) | FieldValue::Bare(text)) => self.message = text,
            (name, value) => self.rest.push((name, value)),
        }
    }
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.put(field, FieldValue::Text(format!("{value:?}")));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field, FieldValue::Text(value.to_owned()));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field, FieldValue::Bare(value.to_string()));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field, FieldValue::Bare(value.to_string()));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field, FieldValue::Bare(value.to_string()));
    }

    fn record_error(&mut self, field: &Field, value: &(dyn std::error::Error + 'static)) {
        self.put(field, FieldValue::Text(value.to_string()));
    }
}

fn text_line(time: Moment, level: &str, target: &str, fields: &Fields) -> Vec<u8> {
    let mut line = format!("{} {level} {}", Iso(time), text_message(target, fields));
    line.push('\n');
    line.into_bytes()
}

/// Text of an event: `pool: message key=value`.
fn text_message(target: &str, fields: &Fields) -> String {
    let mut line = format!("{target}: ");
    escape::text(&mut line, &fields.message);
    for (name, value) in &fields.rest {
        let _ = write!(line, " {name}=");
        match value {
            FieldValue::Bare(value) => line.push_str(value),
            FieldValue::Text(value) if is_plain(value) => line.push_str(value),
            FieldValue::Text(value) => {
                let mut quoted = Vec::with_capacity(value.len() + 2);
                escape::json(&mut quoted, value.as_bytes());
                line.push_str(&String::from_utf8_lossy(&quoted));
            }
        }
    }
    line
}

/// `true` if a value needs no quotes after `key=`.
fn is_plain(value: &str) -> bool {
    !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'=' | b'\\'))
}

fn json_line(time: Moment, level: &str, target: &str, fields: &Fields) -> Vec<u8> {
    let mut line = format!("{{\"time\":\"{}\",\"level\":\"{level}\",\"target\":", Iso(time)).into_bytes();
    escape::json(&mut line, target.as_bytes());
    line.extend_from_slice(b",\"message\":");
    escape::json(&mut line, fields.message.as_bytes());
    for (name, value) in &fields.rest {
        line.push(b',');
        escape::json(&mut line, name.as_bytes());
        line.push(b':');
        match value {
            FieldValue::Bare(value) => line.extend_from_slice(value.as_bytes()),
            FieldValue::Text(value) => escape::json(&mut line, value.as_bytes()),
        }
    }
    line.extend_from_slice(b"}\n");
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn run(format: LogFormat, level: LogLevel, path: &Path, emit: impl FnOnce()) -> String {
        let settings = LogSettings { level, format, error: LogTarget::File(path.to_owned()), ..LogSettings::default() };
        let (subscriber, handle) = subscriber(&settings).unwrap();
        tracing::subscriber::with_default(subscriber, emit);
        assert!(handle.flush());
        std::fs::read_to_string(path).unwrap()
    }

    #[test]
    fn text_lines_cannot_be_forged() {
        let dir = tempfile::tempdir().unwrap();
        let text = run(LogFormat::Text, LogLevel::Info, &dir.path().join("log"), || {
            tracing::info!(target: "howdah_pool::queue", worker = 3, path = "/a b\n2026 ERROR", ok = true, "first\nsecond");
            tracing::debug!(target: "howdah_pool", "not shown");
            tracing::info!(target: "hyper::proto", "not shown either");
        });
        let (time, rest) = text.split_once(' ').unwrap();
        assert_eq!(time.len(), "2026-11-21T00:00:00.123Z".len());
        assert_eq!(rest, "INFO pool: first\\nsecond worker=3 path=\"/a b\\n2026 ERROR\" ok=true\n");
    }

    #[test]
    fn json_lines_parse() {
        let dir = tempfile::tempdir().unwrap();
        let text = run(LogFormat::Json, LogLevel::Debug, &dir.path().join("log"), || {
            tracing::debug!(target: "howdah_site", status = 200u16, url = "/\"x\"\u{1b}[0m", "a \\ b");
        });
        assert!(!text.contains('\u{1b}'));
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(value["target"], "site");
        assert_eq!(value["status"], 200);
        assert_eq!(value["url"], "/\"x\"\u{1b}[0m");
        assert_eq!(value["message"], "a \\ b");
    }

    #[test]
    fn reopen_follows_a_rotation() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let settings = LogSettings { error: LogTarget::File(path.clone()), ..LogSettings::default() };
        let (subscriber, handle) = subscriber(&settings).unwrap();
        tracing::subscriber::with_default(subscriber, || {
            tracing::info!(target: "howdah", "one");
            std::fs::rename(&path, dir.path().join("log.1")).unwrap();
            handle.reopen().unwrap();
            tracing::info!(target: "howdah", "two");
        });
        assert!(handle.flush());
        assert!(std::fs::read_to_string(dir.path().join("log.1")).unwrap().ends_with(": one\n"));
        assert!(std::fs::read_to_string(&path).unwrap().ends_with(": two\n"));
    }

    #[test]
    fn the_error_names_a_log_that_cannot_be_opened() {
        let settings = LogSettings { error: LogTarget::File("/nonexistent/x/log".into()), ..LogSettings::default() };
        let error = subscriber(&settings).err().unwrap().to_string();
        assert!(error.contains("/nonexistent/x/log"), "{error}");
    }

    #[test]
    fn a_log_that_hangs_delays_no_request_and_reports_lost_lines_once_it_continues() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        // A pipe without a reader.
        rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU, 0).unwrap();
        let settings = LogSettings { error: LogTarget::File(path.clone()), ..LogSettings::default() };
        let (subscriber, handle) = subscriber(&settings).unwrap();
        const LINES: usize = 6 * MAX_QUEUED / 1000;
        tracing::subscriber::with_default(subscriber, || {
            for n in 0..LINES {
                tracing::info!(target: "howdah", n, "{}", "x".repeat(1000));
            }
        });
        assert!(!handle.flush(), "it has no reader");
        let reader = std::fs::File::open(&path).unwrap();
        let reading = std::thread::spawn(move || io::read_to_string(reader).unwrap());
        // The log has the pipe open for reading, too, so that its end is seen only when the log is gone.
        drop(handle);
        let text = reading.join().unwrap();
        let (lines, notices): (Vec<&str>, Vec<&str>) = text.lines().partition(|line| !line.contains(" WARN log: "));
        let dropped = |notice: &&str| notice.split(' ').nth(3).and_then(|n| n.parse::<usize>().ok()).unwrap();
        assert_eq!(lines.len() + notices.iter().map(dropped).sum::<usize>(), LINES, "{notices:?}");
        assert!(lines.len() < LINES);
        let numbers = lines.iter().map(|line| line.rsplit_once("n=").unwrap().1.parse::<usize>().unwrap());
        assert!(numbers.is_sorted(), "out of order");
    }
}
