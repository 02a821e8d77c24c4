//! The error log: takes `tracing` events and writes each as one line, as text
//! (`2026-11-21T00:00:00.123Z INFO pool: message key=value`) or as JSON.

use std::fmt::{self, Write as _};
use std::io;
use std::sync::Arc;
use std::time::SystemTime;

use howdah_config::{LogFormat, LogLevel, LogSettings, LogTarget};
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::{Event, Metadata, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};

use crate::clock::{Iso, Moment};
use crate::escape;
use crate::sink::Sink;

/// Keeps hold of the error log once it is set up.
#[derive(Debug, Clone)]
pub struct LogHandle {
    sink: Arc<Sink>,
}

impl LogHandle {
    /// Opens the log's file anew, for log rotation (`SIGUSR1`); the old file stays in use if that fails.
    ///
    /// # Errors
    /// When the file cannot be opened.
    pub fn reopen(&self) -> io::Result<()> {
        self.sink.reopen()
    }
}

/// Sets up the error log of this process; from then on `tracing`'s events go there.
///
/// # Errors
/// When the log's file cannot be opened, or a log has been set up already.
pub fn init(settings: &LogSettings) -> io::Result<LogHandle> {
    let (subscriber, handle) = subscriber(settings)?;
    tracing::subscriber::set_global_default(subscriber).map_err(io::Error::other)?;
    Ok(handle)
}

/// The error log as a subscriber of `tracing`, for a part of a program (a test).
///
/// # Errors
/// When the log's file cannot be opened.
pub fn subscriber(settings: &LogSettings) -> io::Result<(impl Subscriber + Send + Sync + use<>, LogHandle)> {
    let sink = Arc::new(match &settings.error {
        LogTarget::Stderr => Sink::Stderr,
        LogTarget::File(path) => Sink::file(path)?,
    });
    let lines = Lines { sink: Arc::clone(&sink), format: settings.format, level: filter(settings.level) };
    Ok((tracing_subscriber::registry().with(lines), LogHandle { sink }))
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
    sink: Arc<Sink>,
    format: LogFormat,
    level: LevelFilter,
}

impl<S: Subscriber> Layer<S> for Lines {
    fn enabled(&self, metadata: &Metadata<'_>, _: Context<'_, S>) -> bool {
        // Libraries speak of each connection at levels that Howdah uses for itself.
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
        let time = Moment::from(SystemTime::now());
        let level = event.metadata().level().as_str();
        let target = short_target(event.metadata().target());
        let line = match self.format {
            LogFormat::Text => text_line(time, level, target, &fields),
            LogFormat::Json => json_line(time, level, target, &fields),
        };
        // A log that cannot be written has nowhere to say so.
        let _ = self.sink.write(&line);
    }
}

/// The part of the program an event comes from: `howdah_pool::queue` is `pool`.
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
    /// A number or a truth value, which JSON writes without quotes.
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
    let mut line = format!("{} {level} {target}: ", Iso(time));
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
    line.push('\n');
    line.into_bytes()
}

/// Whether a value needs no quotes after `key=`.
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
        let (subscriber, _) = subscriber(&settings).unwrap();
        tracing::subscriber::with_default(subscriber, emit);
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
            tracing::debug!(target: "howdah_http", status = 200u16, url = "/\"x\"\u{1b}[0m", "a \\ b");
        });
        assert!(!text.contains('\u{1b}'));
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(value["target"], "http");
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
        assert!(std::fs::read_to_string(dir.path().join("log.1")).unwrap().ends_with(": one\n"));
        assert!(std::fs::read_to_string(&path).unwrap().ends_with(": two\n"));
    }

    #[test]
    fn a_log_that_cannot_be_opened_says_which() {
        let settings = LogSettings { error: LogTarget::File("/nonexistent/x/log".into()), ..LogSettings::default() };
        let error = subscriber(&settings).err().unwrap().to_string();
        assert!(error.contains("/nonexistent/x/log"), "{error}");
    }
}
