//! The slow log: an entry for each request that was found to exceed its time threshold, with its PHP stack at that
//! moment; the pool limits their rate. Like the access log, it is a queue in memory with a writer thread, and is
//! reopened for log rotation.

use std::fmt::Write as _;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use howdah_config::{LogFormat, LogTarget, PoolSettings, Settings};
use parking_lot::Mutex;

use crate::clock::{Iso, Moment};
use crate::escape;
use crate::metrics::Metrics;
use crate::queue::{Owner, Queue, QueueOptions};
use crate::record::{Priority, RecordBuilder};
use crate::sink::{FileSink, Sink};
use crate::slow_log_fpm;

pub use crate::slow_entry::{SlowEntry, SlowFrame, SlowStack};

const FLUSH_AFTER: Duration = Duration::from_millis(200);
const FLUSH_AT: usize = 64 * 1024;
/// Queued bytes above which further entries are dropped.
const MAX_QUEUED: usize = 4 * 1024 * 1024;

/// A slow log. Dropping it writes the queued entries.
#[derive(Debug)]
pub struct SlowLog {
    queue: Queue,
    format: Format,
    /// The log is a log service, which takes fields as well as the text.
    as_record: bool,
}

/// The form of entries.
#[derive(Debug, Clone, Copy)]
enum Format {
    Own(LogFormat),
    /// PHP-FPM's format, with at most this many functions.
    Fpm(usize),
}

/// Counts lost entries, and reports them in the error log.
#[derive(Debug)]
struct Losses(Arc<Metrics>);

impl Owner for Losses {
    fn lost(&self, entries: u64) {
        self.0.slow_log_dropped.add(entries);
    }

    fn notice(&self, entries: u64) -> Option<Vec<u8>> {
        tracing::warn!("{entries} entries of the slow log were dropped: the destination is too slow");
        None
    }

    fn failed(&self, error: &io::Error) {
        tracing::error!(%error, "cannot write the slow log: losing entries");
    }

    fn back(&self, entries: u64) -> Option<Vec<u8>> {
        tracing::warn!("slow log is writable again; {entries} entries were lost");
        None
    }
}

impl SlowLog {
    fn open(target: &LogTarget, format: Format, metrics: Arc<Metrics>) -> io::Result<Self> {
        let sink = match target {
            LogTarget::Stderr => Sink::File(FileSink::stderr()?),
            LogTarget::File(path) => Sink::File(FileSink::file(path)?),
            LogTarget::Service(service) => Sink::service(service, "howdah-slow")?,
        };
        let as_record = matches!(target, LogTarget::Service(_));
        let options = QueueOptions { name: "slow-log", gather: FLUSH_AFTER, enough: FLUSH_AT, most: MAX_QUEUED };
        Ok(Self { queue: Queue::start(options, sink, Arc::new(Losses(metrics)))?, format, as_record })
    }

    /// Logs a request.
    pub fn log(&self, entry: &SlowEntry<'_>) {
        let text = match self.format {
            Format::Own(format) => entry.format(format),
            Format::Fpm(depth) => slow_log_fpm::entry(entry, depth).into_bytes(),
        };
        if self.as_record {
            self.queue.push(&entry.record(&String::from_utf8_lossy(&text)));
        } else {
            self.queue.push(&text);
        }
    }
}

type Opened = Vec<(LogTarget, Arc<SlowLog>)>;

/// The slow logs of a server: one per destination; pools that name the same one share it. A reload may add logs.
#[derive(Debug, Default, Clone)]
pub struct SlowLogs(Arc<Mutex<Opened>>);

impl SlowLogs {
    /// Opens the logs of the pools that have one, with a thread for each.
    ///
    /// # Errors
    /// When a file cannot be opened or a thread cannot be started; the error names the file.
    pub fn open(settings: &Settings, metrics: &Arc<Metrics>) -> io::Result<Self> {
        let logs = Self::default();
        for pool in settings.pools.iter().filter(|pool| pool.slow_log_after.is_some()) {
            logs.opened(pool, settings.log.format, metrics)?;
        }
        Ok(logs)
    }

    /// The log of the named pool. `None` if the pool has none, or if it cannot be opened; the error log then has the
    /// reason.
    pub fn of_pool(&self, settings: &Settings, name: &str, metrics: &Arc<Metrics>) -> Option<Arc<SlowLog>> {
        let pool = settings.pool(name).filter(|pool| pool.slow_log_after.is_some())?;
        match self.opened(pool, settings.log.format, metrics) {
            Ok(log) => Some(log),
            Err(error) => {
                tracing::error!(pool = name, "cannot write this pool's slow log: {error}");
                None
            }
        }
    }

    fn opened(&self, pool: &PoolSettings, format: LogFormat, metrics: &Arc<Metrics>) -> io::Result<Arc<SlowLog>> {
        let mut logs = self.0.lock();
        if let Some((_, log)) = logs.iter().find(|(target, _)| *target == pool.slow_log) {
            return Ok(log.clone());
        }
        let format = pool.fpm.as_ref().map_or(Format::Own(format), |fpm| Format::Fpm(fpm.trace_depth));
        let log = Arc::new(SlowLog::open(&pool.slow_log, format, metrics.clone())?);
        logs.push((pool.slow_log.clone(), log.clone()));
        Ok(log)
    }

    fn all(&self) -> Vec<Arc<SlowLog>> {
        self.0.lock().iter().map(|(_, log)| log.clone()).collect()
    }

    /// Writes all queued entries.
    pub fn flush(&self) {
        for log in self.all() {
            log.queue.flush();
        }
    }

    /// Reopens every file, also after one has failed.
    ///
    /// # Errors
    /// The first failure.
    pub fn reopen(&self) -> io::Result<()> {
        let failed = self.all().iter().filter_map(|log| log.queue.reopen().err()).collect::<Vec<_>>();
        failed.into_iter().next().map_or(Ok(()), Err)
    }
}

impl SlowEntry<'_> {
    /// Formats the entry, including its line ends.
    pub fn format(&self, format: LogFormat) -> Vec<u8> {
        match format {
            LogFormat::Text | LogFormat::Terminal => self.text().into_bytes(),
            LogFormat::Json => self.json(),
        }
    }

    /// Formats the entry for a log service, with searchable fields.
    fn record(&self, text: &str) -> Vec<u8> {
        let mut entry = RecordBuilder::new(self.time, Priority::Warning, "slow", text.trim_end_matches('\n'));
        let lossy = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let fields = [
            ("pool", self.pool.to_owned()),
            ("request", self.request_id.to_owned()),
            ("host", lossy(self.host.unwrap_or_default())),
            ("method", lossy(self.method)),
            ("uri", lossy(self.target)),
            ("script", lossy(self.script)),
            ("pid", self.pid.to_string()),
            ("elapsed_ms", self.elapsed.as_millis().to_string()),
        ];
        for (name, value) in fields.iter().filter(|(_, value)| !value.is_empty()) {
            entry.field(name, value);
        }
        entry.end()
    }

    fn text(&self) -> String {
        let mut out = format!("{} slow request id={} pool=", Iso(Moment::from(self.time)), self.request_id);
        escape::text(&mut out, self.pool);
        let _ = write!(out, " pid={} ran={:.3}s cpu=", self.pid, self.elapsed.as_secs_f64());
        let _ = match self.cpu {
            Some(cpu) => write!(out, "{:.3}s", cpu.as_secs_f64()),
            None => write!(out, "-"),
        };
        let _ = match self.memory {
            Some(memory) => write!(out, " memory={}K", memory / 1024),
            None => write!(out, " memory=-"),
        };
        out.push_str(" host=");
        lossy(&mut out, self.host.unwrap_or(b"-"));
        out.push_str(" \"");
        lossy(&mut out, self.method);
        out.push(' ');
        lossy(&mut out, self.target);
        out.push_str("\"\n  script ");
        lossy(&mut out, self.script);
        out.push('\n');
        if let Some(why) = self.no_stack {
            out.push_str("  no stack: ");
            escape::text(&mut out, why);
            out.push('\n');
        }
        for stack in &self.stacks {
            stack.text(&mut out);
        }
        if self.left_out > 0 {
            let _ = writeln!(out, "  {} slow requests before this one were not logged", self.left_out);
        }
        out
    }

    fn json(&self) -> Vec<u8> {
        // Texts and numbers can always be serialized.
        let json = serde_json::to_string(self).unwrap_or_default();
        (escape::of_json(&json) + "\n").into_bytes()
    }
}

impl SlowStack<'_> {
    fn text(&self, out: &mut String) {
        if self.coroutine > 0 {
            let _ = write!(out, "  coroutine {}", self.coroutine);
            if let Some(what) = self.waits_for {
                out.push_str(" waits: ");
                escape::text(out, what);
            }
            out.push('\n');
        }
        if let Some(query) = self.query {
            out.push_str("  query ");
            escape::text(out, query);
            out.push('\n');
        }
        for (at, frame) in self.frames.iter().enumerate() {
            let _ = write!(out, "  #{at} ");
            escape::text(out, frame.function);
            if frame.file.is_empty() {
                out.push_str(" [internal]\n");
            } else {
                out.push(' ');
                escape::text(out, frame.file);
                let _ = writeln!(out, ":{}", frame.line);
            }
        }
    }
}

/// Appends text with `"` as `%22`: a quote would end the field.
fn lossy(out: &mut String, value: &[u8]) {
    escape::text(out, &String::from_utf8_lossy(value).replace('"', "%22"));
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::SystemTime;

    fn entry() -> SlowEntry<'static> {
        let frame = |function, file, line| SlowFrame { function, file, line };
        SlowEntry {
            time: SystemTime::UNIX_EPOCH,
            pool: "shop",
            pid: 7,
            request_id: "00ff",
            host: Some(b"shop.example"),
            method: b"GET",
            target: b"/a?\"b\x1b\xff",
            script: b"/srv/a.php",
            elapsed: Duration::from_millis(5250),
            cpu: Some(Duration::from_millis(12)),
            memory: Some(2048 * 1024),
            no_stack: None,
            stacks: vec![SlowStack {
                query: Some("SELECT ?\nFROM t"),
                frames: vec![frame("PDO->query", "", 0), frame("report\n", "/srv/a.php", 12)],
                ..SlowStack::default()
            }],
            left_out: 3,
        }
    }

    #[test]
    fn an_entry_as_text_has_only_its_own_lines() {
        let text = String::from_utf8(entry().format(LogFormat::Text)).unwrap();
        let expected = "1970-01-01T00:00:00.000Z slow request id=00ff pool=shop pid=7 ran=5.250s cpu=0.012s memory=2048K \
            host=shop.example \"GET /a?%22b\\u{1b}\u{fffd}\"\n  script /srv/a.php\n  query SELECT ?\\nFROM t\n  \
            #0 PDO->query [internal]\n  #1 report\\n /srv/a.php:12\n  3 slow requests before this one were not logged\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn an_entry_as_json_is_one_object_in_one_line() {
        let text = String::from_utf8(entry().format(LogFormat::Json)).unwrap();
        assert_eq!(text.matches('\n').count(), 1, "{text}");
        for part in [
            r#""pool":"shop""#,
            r#""target":"/a?\"b\u001b"#,
            r#""elapsed_ms":5250,"cpu_ms":12,"memory":2097152,"left_out":3"#,
            r#"{"function":"PDO->query","file":null,"line":0},{"function":"report\n","file":"/srv/a.php","line":12}"#,
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        let none = SlowEntry { cpu: None, memory: None, stacks: Vec::new(), no_stack: Some("gone"), ..entry() };
        let text = String::from_utf8(none.format(LogFormat::Json)).unwrap();
        assert!(text.contains(r#""no_stack":"gone""#) && text.ends_with("\"stacks\":[]}\n"), "{text}");
    }
}
