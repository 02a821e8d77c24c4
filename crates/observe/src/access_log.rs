//! The access log: at most one line per request, in the combined format followed by Howdah's fields, as JSON, for a
//! terminal, or in PHP-FPM's format. Lines are queued in memory, and a separate thread begins to write them within 200
//! ms if the destination keeps up. A slow disk costs lines, which are counted, but never delays a request.

use std::cell::RefCell;
use std::io::{self, IsTerminal as _, Write as _};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use howdah_config::{AccessTarget, FpmField, LogFormat, LogSettings};

use crate::clock;
use crate::escape;
use crate::metrics::Metrics;
use crate::queue::{Owner, Queue, QueueOptions};
use crate::record::{Priority, RecordBuilder};
use crate::sink::{FileSink, Sink};

mod fpm_line;
mod terminal_line;

pub use fpm_line::FpmEntry;

/// Time after which a queued line is written if the destination keeps up.
const FLUSH_AFTER: Duration = Duration::from_millis(200);

/// Queued bytes at which lines are written at once.
const FLUSH_AT: usize = 64 * 1024;

/// Queued bytes above which further lines are dropped.
const MAX_QUEUED: usize = 4 * 1024 * 1024;

thread_local! {
    static LINE: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Facts about an ended request. Values are passed as they are; the log escapes them.
#[derive(Debug, Clone, Copy)]
pub struct AccessEntry<'a> {
    /// When the request arrived.
    pub time: SystemTime,
    /// The client's address; `None` on a Unix socket.
    pub remote: Option<IpAddr>,
    /// The authenticated user.
    pub user: Option<&'a [u8]>,
    pub method: &'a str,
    /// The request target as it was sent.
    pub target: &'a [u8],
    /// The protocol, such as `HTTP/1.1`.
    pub proto: &'a str,
    /// The status of the response.
    pub status: u16,
    /// Bytes sent of the response's body.
    pub bytes: u64,
    /// The request's `Referer`.
    pub referer: Option<&'a [u8]>,
    /// The request's `User-Agent`.
    pub user_agent: Option<&'a [u8]>,
    /// The request's id.
    pub request_id: &'a str,
    /// The pool that ran the request.
    pub pool: Option<&'a str>,
    /// The worker that ran the request.
    pub worker: Option<u32>,
    /// Microseconds from the end of the request's header until a worker took the request.
    pub queue_us: Option<u64>,
    /// Microseconds the request ran in PHP.
    pub php_us: Option<u64>,
    /// Peak memory of PHP, in bytes.
    pub memory: Option<u64>,
    /// Microseconds from the end of the request's header to the end of the response.
    pub total_us: u64,
    /// The coding that the server compressed the response with.
    pub compression: Option<&'a str>,
    /// The name of the request's site; `None` if no site has its host.
    pub site: Option<&'a str>,
    /// The requested host.
    pub host: Option<&'a [u8]>,
    /// The response ended before its body did: the client left, or the script or upstream server aborted.
    pub cut_off: bool,
    /// The request's trace; `None` if tracing is disabled.
    pub trace: Option<&'a str>,
    /// Reason for a refusal before the request was handled. `target` is then the received line; the other facts are
    /// unknown.
    pub refused: Option<&'a str>,
}

/// The access log of a server. Dropping it writes the queued lines unless the destination hangs.
#[derive(Debug)]
pub struct AccessLog {
    queue: Queue,
    format: LogFormat,
    /// The log is a terminal that may show colors.
    colour: bool,
    /// The log is a log service, which takes fields as well as the line.
    as_record: bool,
}

/// Counts lost lines, and reports them in the error log: each line of the access log must be a request.
#[derive(Debug)]
struct Losses(Arc<Metrics>);

impl Owner for Losses {
    fn lost(&self, lines: u64) {
        self.0.access_log_dropped.add(lines);
    }

    fn notice(&self, lines: u64) -> Option<Vec<u8>> {
        tracing::warn!("{lines} lines of the access log were dropped: the destination is too slow");
        None
    }

    fn failed(&self, error: &io::Error) {
        tracing::error!(%error, "cannot write the access log: losing lines");
    }

    fn back(&self, lines: u64) -> Option<Vec<u8>> {
        tracing::warn!("access log is writable again; {lines} lines were lost");
        None
    }
}

impl AccessLog {
    /// Opens the access log if one is configured, and starts its thread.
    ///
    /// # Errors
    /// When the log's file cannot be opened or the thread cannot be started.
    pub fn open(settings: &LogSettings, metrics: Arc<Metrics>) -> io::Result<Option<Self>> {
        let sink = match &settings.access {
            AccessTarget::Off => return Ok(None),
            AccessTarget::Stdout => Sink::File(FileSink::stdout()?),
            AccessTarget::Stderr => Sink::File(FileSink::stderr()?),
            AccessTarget::File(path) => Sink::File(FileSink::file(path)?),
            AccessTarget::Service(service) => Sink::service(service, "howdah-access")?,
        };
        let as_record = matches!(settings.access, AccessTarget::Service(_));
        let options = QueueOptions { name: "access-log", gather: FLUSH_AFTER, enough: FLUSH_AT, most: MAX_QUEUED };
        let queue = Queue::start(options, sink, Arc::new(Losses(metrics)))?;
        let is_terminal = settings.access == AccessTarget::Stdout && io::stdout().is_terminal();
        let colour = is_terminal && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        Ok(Some(Self { queue, format: settings.format, colour, as_record }))
    }

    /// Logs a request in PHP-FPM's format.
    pub fn log_fpm(&self, entry: &FpmEntry<'_>, fields: &[FpmField]) {
        LINE.with_borrow_mut(|line| {
            line.clear();
            entry.format(fields, line);
            self.queue.push(line);
        });
    }

    /// Logs a request.
    pub fn log(&self, entry: &AccessEntry<'_>) {
        LINE.with_borrow_mut(|line| {
            line.clear();
            match self.format {
                LogFormat::Terminal => terminal_line::write(entry, self.colour, line),
                format => entry.format(format, line),
            }
            if self.as_record {
                self.queue.push(&entry.record(&String::from_utf8_lossy(line)));
            } else {
                self.queue.push(line);
            }
        });
    }

    /// Writes all queued lines. Returns `false` if the log hangs; the queued lines are lost if the process exits now.
    pub fn flush(&self) -> bool {
        self.queue.flush()
    }

    /// Reopens the log's file for log rotation (`SIGUSR1`), after writing the queued lines to the old file. The old
    /// file stays in use if that fails.
    ///
    /// # Errors
    /// When the file cannot be opened, or the log hangs.
    pub fn reopen(&self) -> io::Result<()> {
        self.queue.reopen()
    }
}

impl AccessEntry<'_> {
    /// Appends the entry's line.
    pub fn format(&self, format: LogFormat, line: &mut Vec<u8>) {
        match format {
            LogFormat::Text => self.combined(line),
            LogFormat::Json => self.json(line),
            LogFormat::Terminal => return terminal_line::write(self, false, line),
        }
        line.push(b'\n');
    }

    /// Formats the line as an entry for a log service, with searchable fields.
    fn record(&self, line: &str) -> Vec<u8> {
        let mut entry = RecordBuilder::new(self.time, Priority::Info, "access", line.trim_end_matches('\n'));
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let fields = [
            ("status", Some(self.status.to_string())),
            ("method", Some(self.method.to_owned())),
            ("uri", Some(text(self.target))),
            ("request", Some(self.request_id.to_owned())),
            ("total_us", Some(self.total_us.to_string())),
            ("remote", self.remote.map(|remote| remote.to_canonical().to_string())),
            ("site", self.site.map(str::to_owned)),
            ("host", self.host.map(text)),
            ("user", self.user.map(text)),
            ("proto", Some(self.proto.to_owned())),
            ("bytes", Some(self.bytes.to_string())),
            ("pool", self.pool.map(str::to_owned)),
            ("worker", self.worker.map(|worker| worker.to_string())),
            ("queue_us", self.queue_us.map(|micros| micros.to_string())),
            ("php_us", self.php_us.map(|micros| micros.to_string())),
            ("trace_id", self.trace.map(str::to_owned)),
            ("cut_off", self.cut_off.then(|| "true".to_owned())),
            ("refused", self.refused.map(str::to_owned)),
        ];
        for (name, value) in fields {
            if let Some(value) = value {
                entry.field(name, &value);
            }
        }
        entry.end()
    }

    fn combined(&self, line: &mut Vec<u8>) {
        remote(line, self.remote);
        line.extend_from_slice(b" - ");
        match self.user {
            Some(user) => field(line, user),
            None => line.push(b'-'),
        }
        line.extend_from_slice(b" [");
        clock::append_combined(line, self.time);
        line.extend_from_slice(b"] \"");
        if self.refused.is_none() {
            escape::combined(line, self.method.as_bytes());
            line.push(b' ');
        }
        escape::combined(line, self.target);
        if self.refused.is_none() {
            line.push(b' ');
            escape::combined(line, self.proto.as_bytes());
        }
        line.extend_from_slice(b"\" ");
        number(line, u64::from(self.status));
        line.push(b' ');
        number(line, self.bytes);
        line.extend_from_slice(b" \"");
        escape::combined(line, self.referer.unwrap_or(b"-"));
        line.extend_from_slice(b"\" \"");
        escape::combined(line, self.user_agent.unwrap_or(b"-"));
        line.extend_from_slice(b"\" id=");
        field(line, self.request_id.as_bytes());
        line.extend_from_slice(b" pool=");
        field(line, self.pool.unwrap_or("-").as_bytes());
        for (name, value) in
            [(" worker=", self.worker.map(u64::from)), (" queue_us=", self.queue_us), (" php_us=", self.php_us)]
        {
            line.extend_from_slice(name.as_bytes());
            match value {
                Some(value) => number(line, value),
                None => line.push(b'-'),
            }
        }
        line.extend_from_slice(b" total_us=");
        number(line, self.total_us);
        line.extend_from_slice(b" coding=");
        field(line, self.compression.unwrap_or("-").as_bytes());
        line.extend_from_slice(b" site=");
        field(line, self.site.unwrap_or("-").as_bytes());
        line.extend_from_slice(b" host=");
        field(line, self.host.unwrap_or(b"-"));
        if let Some(trace) = self.trace {
            line.extend_from_slice(b" trace=");
            field(line, trace.as_bytes());
        }
        if self.cut_off {
            line.extend_from_slice(b" cut_off=true");
        }
        if let Some(reason) = self.refused {
            line.extend_from_slice(b" refused=");
            field(line, reason.as_bytes());
        }
    }

    fn json(&self, line: &mut Vec<u8>) {
        line.extend_from_slice(b"{\"time\":\"");
        clock::append_iso(line, self.time);
        line.extend_from_slice(b"\",\"remote\":\"");
        remote(line, self.remote);
        line.push(b'"');
        let is_parsed = self.refused.is_none();
        let texts: [(&str, Option<&[u8]>); 8] = [
            ("user", self.user),
            ("method", is_parsed.then_some(self.method.as_bytes())),
            ("target", Some(self.target)),
            ("proto", is_parsed.then_some(self.proto.as_bytes())),
            ("referer", self.referer),
            ("user_agent", self.user_agent),
            ("request_id", Some(self.request_id.as_bytes())),
            ("pool", self.pool.map(str::as_bytes)),
        ];
        for (name, value) in texts {
            json_text(line, name, value);
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
            json_name(line, name);
            match value {
                Some(value) => number(line, value),
                None => line.extend_from_slice(b"null"),
            }
        }
        let texts = [
            ("compression", self.compression.map(str::as_bytes)),
            ("site", self.site.map(str::as_bytes)),
            ("host", self.host),
        ];
        for (name, value) in texts {
            json_text(line, name, value);
        }
        if let Some(trace) = self.trace {
            json_text(line, "trace_id", Some(trace.as_bytes()));
        }
        if self.cut_off {
            line.extend_from_slice(b",\"cut_off\":true");
        }
        if let Some(reason) = self.refused {
            json_text(line, "refused", Some(reason.as_bytes()));
        }
        line.push(b'}');
    }
}

fn json_name(line: &mut Vec<u8>, name: &str) {
    line.extend_from_slice(b",\"");
    line.extend_from_slice(name.as_bytes());
    line.extend_from_slice(b"\":");
}

fn json_text(line: &mut Vec<u8>, name: &str, value: Option<&[u8]>) {
    json_name(line, name);
    match value {
        Some(value) => escape::json(line, value),
        None => line.extend_from_slice(b"null"),
    }
}

fn number(line: &mut Vec<u8>, value: u64) {
    line.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

/// Appends a client's address.
fn remote(line: &mut Vec<u8>, address: Option<IpAddr>) {
    match address.as_ref().map(IpAddr::to_canonical) {
        Some(IpAddr::V4(address)) => {
            for (at, octet) in address.octets().into_iter().enumerate() {
                if at > 0 {
                    line.push(b'.');
                }
                number(line, u64::from(octet));
            }
        }
        // Writing to a Vec cannot fail.
        Some(IpAddr::V6(address)) => drop(write!(line, "{address}")),
        None => line.extend_from_slice(b"unix"),
    }
}

/// Appends an unquoted value, escaping spaces too: a space would begin the next field.
fn field(line: &mut Vec<u8>, value: &[u8]) {
    if value.is_empty() {
        line.push(b'-');
    }
    if !value.contains(&b' ') {
        return escape::combined(line, value);
    }
    for (at, word) in value.split(|&byte| byte == b' ').enumerate() {
        if at > 0 {
            line.extend_from_slice(b"\\x20");
        }
        escape::combined(line, word);
    }
}

#[cfg(test)]
#[path = "access_log_tests.rs"]
mod tests;
