//! The text of metrics, in the two formats that collectors read.

use super::table::{Metric, MetricKind, TABLE};
use crate::cell::{BOUNDS_US, Histogram, HistogramSnapshot, Labelled};
use crate::escape;
use crate::exemplar::Exemplar;
use std::fmt::Write as _;
use std::time::UNIX_EPOCH;

/// How metrics are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Prometheus' text format.
    Text,
    /// OpenMetrics 1.0, which has exemplars: a trace beside a bucket.
    OpenMetrics,
}

impl Format {
    /// The one for a collector with this `Accept` field: Prometheus names `application/openmetrics-text` if it reads that.
    #[must_use]
    pub fn accepted(accept: &str) -> Self {
        let wants = |item: &str| {
            let mut parts = item.split(';').map(str::trim);
            let is_named = parts.next().is_some_and(|kind| kind.eq_ignore_ascii_case("application/openmetrics-text"));
            // A later version is not ours to speak; none is any.
            is_named && parts.all(|part| !part.starts_with("version=") || part == "version=1.0.0")
        };
        if accept.split(',').any(wants) { Self::OpenMetrics } else { Self::Text }
    }

    /// Its media type.
    #[must_use]
    pub const fn media_type(self) -> &'static str {
        match self {
            Self::Text => "text/plain; version=0.0.4",
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

/// Microseconds, written as seconds.
pub(super) struct Seconds(pub(super) u64);

impl std::fmt::Display for Seconds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (seconds, micros) = (self.0 / 1_000_000, self.0 % 1_000_000);
        if micros == 0 {
            return write!(f, "{seconds}");
        }
        let fraction = format!("{micros:06}");
        write!(f, "{seconds}.{}", fraction.trim_end_matches('0'))
    }
}

/// The text while it is written.
pub(super) struct Page<'a> {
    format: Format,
    text: String,
    metric: &'a Metric,
}

impl<'a> Page<'a> {
    pub(super) fn new(format: Format, capacity: usize) -> Self {
        Self { format, text: String::with_capacity(capacity), metric: &TABLE[0] }
    }

    /// Begins a metric. OpenMetrics describes a counter without the `_total` of its samples.
    pub(super) fn open(&mut self, metric: &'a Metric) {
        self.metric = metric;
        let name = match (self.format, metric.kind) {
            (Format::OpenMetrics, MetricKind::Counter) => metric.name.trim_end_matches("_total"),
            _ => metric.name,
        };
        let (help, kind) = (metric.help, metric.kind.word());
        let _ = match self.format {
            Format::Text => writeln!(self.text, "# HELP {name} {help}\n# TYPE {name} {kind}"),
            Format::OpenMetrics => writeln!(self.text, "# TYPE {name} {kind}\n# HELP {name} {help}"),
        };
    }

    /// The whole text.
    pub(super) fn close(mut self) -> String {
        if self.format == Format::OpenMetrics {
            self.text.push_str("# EOF\n");
        }
        self.text
    }

    pub(super) fn sample(&mut self, values: &[&str], value: impl std::fmt::Display) {
        self.line("", values, None, value);
    }

    pub(super) fn labelled(&mut self, pool: &str, counters: &Labelled) {
        for (label, count) in counters.all() {
            self.sample(&[pool, label], count);
        }
    }

    pub(super) fn histogram(&mut self, values: &[&str], histogram: &Histogram) {
        self.durations(values, &histogram.snapshot(), &[]);
    }

    /// The samples of a histogram, with exemplars for some of its buckets.
    pub(super) fn durations(&mut self, values: &[&str], snapshot: &HistogramSnapshot, exemplars: &[Exemplar]) {
        let in_bucket = |bucket: usize| exemplars.iter().find(|exemplar| exemplar.bucket == bucket);
        for (bucket, (bound, count)) in BOUNDS_US.iter().zip(snapshot.cumulative).enumerate() {
            self.bucket(values, &Seconds(*bound).to_string(), count, in_bucket(bucket));
        }
        self.bucket(values, "+Inf", snapshot.count, in_bucket(BOUNDS_US.len()));
        self.line("_sum", values, None, Seconds(snapshot.sum_us));
        self.line("_count", values, None, snapshot.count);
    }

    fn bucket(&mut self, values: &[&str], bound: &str, count: u64, exemplar: Option<&Exemplar>) {
        self.line("_bucket", values, Some(bound), count);
        let Some(exemplar) = exemplar.filter(|_| self.format == Format::OpenMetrics) else { return };
        self.text.pop();
        let at = exemplar.at.duration_since(UNIX_EPOCH).unwrap_or_default();
        let (seconds, millis) = (at.as_secs(), at.subsec_millis());
        let (trace, span, took) = (exemplar.trace, exemplar.span, Seconds(exemplar.took_us));
        let _ = writeln!(
            self.text,
            " # {{trace_id=\"{trace:032x}\",span_id=\"{span:016x}\"}} {took} {seconds}.{millis:03}"
        );
    }

    fn line(&mut self, suffix: &str, values: &[&str], bound: Option<&str>, value: impl std::fmt::Display) {
        self.text.push_str(self.metric.name);
        self.text.push_str(suffix);
        let labels =
            self.metric.labels.iter().copied().zip(values.iter().copied()).chain(bound.map(|bound| ("le", bound)));
        let mut separator = '{';
        for (label, value) in labels {
            let _ = write!(self.text, "{separator}{label}=\"");
            escape::prometheus(&mut self.text, value);
            self.text.push('"');
            separator = ',';
        }
        if separator == ',' {
            self.text.push('}');
        }
        let _ = writeln!(self.text, " {value}");
    }
}
