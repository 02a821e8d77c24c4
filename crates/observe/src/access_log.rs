//! The access log: one line per request, as the combined format with Howdah's fields after it or as JSON. A request's
//! line is put into a queue in memory and written by a thread of its own, at the latest 200 ms later; a disk that is
//! too slow costs lines (counted), never time of a request.

use std::cell::RefCell;
use std::io::{self, Write as _};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use howdah_config::{AccessFormat, AccessTarget, LogSettings};

use crate::clock::{Combined, Iso, Moment};
use crate::escape;
use crate::metrics::Metrics;
use crate::queue::{Manner, Owner, Queue};
use crate::sink::Sink;

/// How long a line waits at most before it is written.
const FLUSH_AFTER: Duration = Duration::from_millis(200);

/// With this much waiting, it is written at once.
const FLUSH_AT: usize = 64 * 1024;

/// With this much waiting, further lines are dropped.
const MOST: usize = 4 * 1024 * 1024;

/// What is known of a request when it is over. Values are written as they are; the log makes them harmless.
#[derive(Debug, Clone, Copy)]
pub struct AccessEntry<'a> {
    /// When the request came.
    pub time: SystemTime,
    /// The client's address; none on a Unix socket.
    pub remote: Option<IpAddr>,
    /// The user that the request was authenticated for.
    pub user: Option<&'a [u8]>,
    pub method: &'a str,
    /// The request target as it was sent.
    pub target: &'a [u8],
    /// The protocol, such as `HTTP/1.1`.
    pub proto: &'a str,
    /// The status of the reply.
    pub status: u16,
    /// The bytes of the reply's body that were sent.
    pub bytes: u64,
    /// The request's `Referer`.
    pub referer: Option<&'a [u8]>,
    /// The request's `User-Agent`.
    pub user_agent: Option<&'a [u8]>,
    /// The request's id.
    pub request_id: &'a str,
    /// The pool that ran it.
    pub pool: Option<&'a str>,
    /// The worker that ran it.
    pub worker: Option<u32>,
    /// Microseconds it waited for a worker.
    pub queue_us: Option<u64>,
    /// Microseconds it ran in PHP.
    pub php_us: Option<u64>,
    /// Microseconds from the end of its header to the end of the reply.
    pub total_us: u64,
    /// The coding that the server compressed the reply with.
    pub compression: Option<&'a str>,
}

/// The access log of a server. Dropping it writes what waits.
#[derive(Debug)]
pub struct AccessLog {
    queue: Queue,
    format: AccessFormat,
}

/// Counts lines that are lost, and says so in the error log: a line of its own would be no line of a request.
#[derive(Debug)]
struct Losses(Arc<Metrics>);

impl Owner for Losses {
    fn lost(&self, lines: u64) {
        self.0.access_log_dropped.add(lines);
    }

    fn notice(&self, lines: u64) -> Option<Vec<u8>> {
        tracing::warn!("{lines} lines of the access log were dropped: it cannot be written fast enough");
        None
    }

    fn failed(&self, error: &io::Error) {
        tracing::error!(%error, "cannot write the access log; lines are lost until it can be written again");
    }
}

impl AccessLog {
    /// Opens the access log that the settings ask for, if they do, and starts its thread.
    ///
    /// # Errors
    /// When the log's file cannot be opened or the thread cannot be started.
    pub fn open(settings: &LogSettings, metrics: Arc<Metrics>) -> io::Result<Option<Self>> {
        let sink = match &settings.access {
            AccessTarget::Off => return Ok(None),
            AccessTarget::Stdout => Sink::stdout()?,
            AccessTarget::File(path) => Sink::file(path)?,
        };
        let manner = Manner { name: "access-log", gather: FLUSH_AFTER, enough: FLUSH_AT, most: MOST };
        let queue = Queue::start(manner, sink, Arc::new(Losses(metrics)))?;
        Ok(Some(Self { queue, format: settings.access_format }))
    }

    /// Logs a request.
    pub fn log(&self, entry: &AccessEntry<'_>) {
        thread_local! {
            static LINE: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
        }
        LINE.with_borrow_mut(|line| {
            line.clear();
            entry.format(self.format, line);
            self.queue.push(line);
        });
    }

    /// Has written what waits. False: the log hangs, and what waits is lost should the process end now.
    pub fn flush(&self) -> bool {
        self.queue.flush()
    }

    /// Opens the log's file anew, for log rotation (`SIGUSR1`); lines that wait go to the old file first. The old file
    /// stays in use if that fails.
    ///
    /// # Errors
    /// When the file cannot be opened, or the log hangs.
    pub fn reopen(&self) -> io::Result<()> {
        self.queue.reopen()
    }
}

impl AccessEntry<'_> {
    /// Appends the entry's line.
    pub fn format(&self, format: AccessFormat, line: &mut Vec<u8>) {
        match format {
            AccessFormat::Combined => self.combined(line),
            AccessFormat::Json => self.json(line),
        }
        line.push(b'\n');
    }

    fn combined(&self, line: &mut Vec<u8>) {
        // Writing to a Vec cannot fail.
        let _ = match self.remote {
            Some(remote) => write!(line, "{}", remote.to_canonical()),
            None => write!(line, "unix"),
        };
        line.extend_from_slice(b" - ");
        match self.user {
            Some(user) => field(line, user),
            None => line.push(b'-'),
        }
        let _ = write!(line, " [{}] \"", Combined(Moment::from(self.time)));
        escape::combined(line, self.method.as_bytes());
        line.push(b' ');
        escape::combined(line, self.target);
        line.push(b' ');
        escape::combined(line, self.proto.as_bytes());
        let _ = write!(line, "\" {} {} \"", self.status, self.bytes);
        escape::combined(line, self.referer.unwrap_or(b"-"));
        line.extend_from_slice(b"\" \"");
        escape::combined(line, self.user_agent.unwrap_or(b"-"));
        line.extend_from_slice(b"\" id=");
        field(line, self.request_id.as_bytes());
        line.extend_from_slice(b" pool=");
        field(line, self.pool.unwrap_or("-").as_bytes());
        for (name, number) in
            [(" worker=", self.worker.map(u64::from)), (" queue_us=", self.queue_us), (" php_us=", self.php_us)]
        {
            line.extend_from_slice(name.as_bytes());
            match number {
                Some(number) => drop(write!(line, "{number}")),
                None => line.push(b'-'),
            }
        }
        let _ = write!(line, " total_us={} coding=", self.total_us);
        field(line, self.compression.unwrap_or("-").as_bytes());
    }

    fn json(&self, line: &mut Vec<u8>) {
        let _ = write!(line, "{{\"time\":\"{}\",\"remote\":", Iso(Moment::from(self.time)));
        let _ = match self.remote {
            Some(remote) => write!(line, "\"{}\"", remote.to_canonical()),
            None => write!(line, "\"unix\""),
        };
        let texts: [(&str, Option<&[u8]>); 8] = [
            ("user", self.user),
            ("method", Some(self.method.as_bytes())),
            ("target", Some(self.target)),
            ("proto", Some(self.proto.as_bytes())),
            ("referer", self.referer),
            ("user_agent", self.user_agent),
            ("request_id", Some(self.request_id.as_bytes())),
            ("pool", self.pool.map(str::as_bytes)),
        ];
        for (name, value) in texts {
            let _ = write!(line, ",\"{name}\":");
            match value {
                Some(value) => escape::json(line, value),
                None => line.extend_from_slice(b"null"),
            }
        }
        let numbers = [
            ("status", Some(u64::from(self.status))),
            ("bytes", Some(self.bytes)),
            ("worker", self.worker.map(u64::from)),
            ("queue_us", self.queue_us),
            ("php_us", self.php_us),
            ("total_us", Some(self.total_us)),
        ];
        for (name, value) in numbers {
            let _ = match value {
                Some(value) => write!(line, ",\"{name}\":{value}"),
                None => write!(line, ",\"{name}\":null"),
            };
        }
        line.extend_from_slice(b",\"compression\":");
        match self.compression {
            Some(coding) => escape::json(line, coding.as_bytes()),
            None => line.extend_from_slice(b"null"),
        }
        line.push(b'}');
    }
}

/// Appends a value that stands without quotes: a space in it would begin the next field.
fn field(line: &mut Vec<u8>, value: &[u8]) {
    if value.is_empty() {
        line.push(b'-');
    }
    for (at, word) in value.split(|&byte| byte == b' ').enumerate() {
        if at > 0 {
            line.extend_from_slice(b"\\x20");
        }
        escape::combined(line, word);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;
    use std::path::Path;
    use std::time::{Instant, UNIX_EPOCH};

    fn entry() -> AccessEntry<'static> {
        AccessEntry {
            time: UNIX_EPOCH + Duration::from_secs(1_795_219_200),
            remote: Some(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 7))),
            user: None,
            method: "GET",
            target: b"/a?b=c",
            proto: "HTTP/1.1",
            status: 200,
            bytes: 1024,
            referer: None,
            user_agent: Some(b"curl/8"),
            request_id: "0123abcd",
            pool: Some("default"),
            worker: Some(3),
            queue_us: Some(12),
            php_us: Some(345),
            total_us: 400,
            compression: Some("br"),
        }
    }

    fn line(entry: &AccessEntry<'_>, format: AccessFormat) -> String {
        let mut line = Vec::new();
        entry.format(format, &mut line);
        String::from_utf8(line).unwrap()
    }

    fn log(path: &Path, metrics: &Arc<Metrics>) -> AccessLog {
        let settings = LogSettings { access: AccessTarget::File(path.to_owned()), ..LogSettings::default() };
        AccessLog::open(&settings, Arc::clone(metrics)).unwrap().unwrap()
    }

    #[test]
    fn combined_line() {
        assert_eq!(
            line(&entry(), AccessFormat::Combined),
            "192.0.2.7 - - [21/Nov/2026:00:00:00 +0000] \"GET /a?b=c HTTP/1.1\" 200 1024 \"-\" \"curl/8\" id=0123abcd \
             pool=default worker=3 queue_us=12 php_us=345 total_us=400 coding=br\n"
        );
        let bare = AccessEntry {
            remote: None,
            pool: None,
            worker: None,
            queue_us: None,
            php_us: None,
            compression: None,
            ..entry()
        };
        let text = line(&bare, AccessFormat::Combined);
        assert!(text.starts_with("unix - - ["), "{text}");
        assert!(text.ends_with("pool=- worker=- queue_us=- php_us=- total_us=400 coding=-\n"), "{text}");
    }

    #[test]
    fn values_cannot_forge_a_line_or_a_field() {
        let evil = AccessEntry {
            user: Some(b"a b\" 200"),
            target: b"/\" 200 1\r\n10.0.0.1 - - \x1b[31m\\",
            referer: Some(b"\"\n"),
            user_agent: Some(b"\xff\x00\xe4"),
            request_id: "x pool=admin",
            ..entry()
        };
        let text = line(&evil, AccessFormat::Combined);
        assert_eq!(text.matches('\n').count(), 1, "{text}");
        assert_eq!(text.matches('"').count(), 6, "{text}");
        assert!(text.bytes().all(|byte| byte == b'\n' || (b' '..=b'~').contains(&byte)), "{text}");
        assert!(text.contains(" a\\x20b\\x22\\x20200 ["), "{text}");
        assert!(text.contains("id=x\\x20pool=admin pool=default"), "{text}");
        assert!(text.contains("/\\x22 200 1\\x0D\\x0A10.0.0.1 - - \\x1B[31m\\x5C HTTP"), "{text}");

        let text = line(&evil, AccessFormat::Json);
        assert_eq!(text.matches('\n').count(), 1, "{text}");
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(value["target"], "/\" 200 1\r\n10.0.0.1 - - \u{1b}[31m\\");
        assert_eq!(value["user_agent"], "\u{fffd}\0\u{fffd}");
        assert_eq!(value["request_id"], "x pool=admin");
    }

    #[test]
    fn json_line() {
        let value: serde_json::Value = serde_json::from_str(&line(&entry(), AccessFormat::Json)).unwrap();
        assert_eq!(value["time"], "2026-11-21T00:00:00.000Z");
        assert_eq!(value["remote"], "192.0.2.7");
        assert_eq!((&value["status"], &value["worker"], &value["total_us"]), (&200.into(), &3.into(), &400.into()));
        assert_eq!(value["user"], serde_json::Value::Null);
        assert_eq!(value["compression"], "br");
    }

    #[test]
    fn lines_of_many_threads_are_whole_and_written_on_drop() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("access");
        let metrics = Metrics::new();
        let log = log(&path, &metrics);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..1000).for_each(|_| log.log(&entry())));
            }
        });
        drop(log);
        let text = std::fs::read_to_string(&path).unwrap();
        let expected = line(&entry(), AccessFormat::Combined);
        assert_eq!(text.len(), 4000 * expected.len());
        assert!(text.lines().all(|line| line == expected.trim_end()));
        assert_eq!(metrics.access_log_dropped.get(), 0);
    }

    #[test]
    fn flush_and_reopen() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("access");
        let log = log(&path, &Metrics::new());
        log.flush();
        log.log(&entry());
        log.flush();
        std::fs::rename(&path, dir.path().join("access.1")).unwrap();
        log.reopen().unwrap();
        log.log(&entry());
        log.log(&entry());
        log.flush();
        assert_eq!(std::fs::read_to_string(dir.path().join("access.1")).unwrap().lines().count(), 1);
        assert_eq!(std::fs::read_to_string(&path).unwrap().lines().count(), 2);
    }

    #[test]
    fn a_line_is_written_without_being_asked() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("access");
        let log = log(&path, &Metrics::new());
        log.log(&entry());
        let deadline = Instant::now() + Duration::from_secs(20);
        while std::fs::read(&path).unwrap().is_empty() {
            assert!(Instant::now() < deadline, "the line was never written");
            std::thread::yield_now();
        }
    }

    #[test]
    fn a_log_that_cannot_be_written_fast_enough_drops_and_counts() {
        // A pipe that nobody reads is a disk that hangs.
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("access");
        rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU, 0).unwrap();
        let both_ends = std::fs::OpenOptions::new().read(true).write(true).open(&path).unwrap();
        let metrics = Metrics::new();
        let log = log(&path, &metrics);
        let expected = line(&entry(), AccessFormat::Combined).len();
        let logged = 3 * MOST / expected;
        (0..logged).for_each(|_| log.log(&entry()));
        let reader = std::fs::File::open(&path).unwrap();
        drop(both_ends);
        let reading = std::thread::spawn(move || io::copy(&mut &reader, &mut io::sink()).unwrap());
        drop(log);
        let (written, dropped) = (reading.join().unwrap(), metrics.access_log_dropped.get());
        assert!(dropped > 0 && written > 0);
        assert_eq!(written, (logged as u64 - dropped) * expected as u64);
    }

    #[test]
    fn lines_that_cannot_be_written_are_counted() {
        let metrics = Metrics::new();
        let log = log(Path::new("/dev/full"), &metrics);
        for _ in 0..3 {
            log.log(&entry());
        }
        log.flush();
        assert_eq!(metrics.access_log_dropped.get(), 3);
    }

    #[test]
    fn off_is_no_log() {
        assert!(AccessLog::open(&LogSettings::default(), Metrics::new()).unwrap().is_none());
    }
}
