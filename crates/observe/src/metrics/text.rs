//! Writes the metrics page in Prometheus' text format and in OpenMetrics.

use super::format::Format;
use super::table::{Metric, MetricKind, TABLE};
use crate::buckets::BOUNDS_US;
use crate::cell::Labelled;
use crate::escape;
use crate::exemplar::Exemplar;
use crate::histogram::{Histogram, HistogramSnapshot};
use std::fmt::{Display, Write as _};
use std::time::UNIX_EPOCH;

/// Microseconds, written as seconds.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seconds(pub(super) u64);

impl Display for Seconds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (seconds, micros) = (self.0 / 1_000_000, self.0 % 1_000_000);
        if micros == 0 {
            return write!(f, "{seconds}");
        }
        let fraction = format!("{micros:06}");
        write!(f, "{seconds}.{}", fraction.trim_end_matches('0'))
    }
}

/// The page being written.
pub(super) struct Page {
    is_open_metrics: bool,
    text: String,
    metric: &'static Metric,
}

impl Page {
    pub(super) fn new(format: Format, capacity: usize) -> Self {
        let is_open_metrics = format == Format::OpenMetrics;
        Self { is_open_metrics, text: String::with_capacity(capacity), metric: &TABLE[0] }
    }

    /// Begins a metric. OpenMetrics names a counter without the `_total` of its samples.
    pub(super) fn open(&mut self, metric: &'static Metric) {
        self.metric = metric;
        let (name, help, kind) = (metric.name, metric.help, metric.kind.word());
        let _ = match (self.is_open_metrics, metric.kind) {
            (false, _) => writeln!(self.text, "# HELP {name} {help}\n# TYPE {name} {kind}"),
            (true, MetricKind::Counter) => {
                let name = name.trim_end_matches("_total");
                writeln!(self.text, "# TYPE {name} {kind}\n# HELP {name} {help}")
            }
            (true, _) => writeln!(self.text, "# TYPE {name} {kind}\n# HELP {name} {help}"),
        };
    }

    /// Ends the page and returns it.
    pub(super) fn close(mut self) -> String {
        if self.is_open_metrics {
            self.text.push_str("# EOF\n");
        }
        self.text
    }

    /// Writes a sample of a counter or gauge, with the values of the metric's labels.
    pub(super) fn sample(&mut self, values: &[&str], value: impl Display) {
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

    /// Writes the samples of a histogram, with exemplars for some of its buckets.
    pub(super) fn durations(&mut self, values: &[&str], snapshot: &HistogramSnapshot, exemplars: &[Exemplar]) {
        let in_bucket = |bucket: usize| exemplars.iter().find(|exemplar| exemplar.bucket == bucket);
        for (bucket, (bound, count)) in BOUNDS_US.iter().zip(snapshot.cumulative()).enumerate() {
            self.bucket(values, &Seconds(*bound).to_string(), count, in_bucket(bucket));
        }
        self.bucket(values, "+Inf", snapshot.count, in_bucket(BOUNDS_US.len()));
        self.line("_sum", values, None, Seconds(snapshot.sum_us));
        self.line("_count", values, None, snapshot.count);
    }

    fn bucket(&mut self, values: &[&str], bound: &str, count: u64, exemplar: Option<&Exemplar>) {
        self.line("_bucket", values, Some(bound), count);
        let Some(exemplar) = exemplar.filter(|_| self.is_open_metrics) else { return };
        self.text.pop();
        let at = exemplar.at.duration_since(UNIX_EPOCH).unwrap_or_default();
        let (seconds, millis) = (at.as_secs(), at.subsec_millis());
        let (trace, span, took) = (exemplar.trace, exemplar.span, Seconds(exemplar.took_us));
        let _ = writeln!(
            self.text,
            " # {{trace_id=\"{trace:032x}\",span_id=\"{span:016x}\"}} {took} {seconds}.{millis:03}"
        );
    }

    fn line(&mut self, suffix: &str, values: &[&str], bound: Option<&str>, value: impl Display) {
        self.text.push_str(self.metric.name);
        self.text.push_str(suffix);
        let labels = self.metric.labels.iter().copied().zip(values.iter().copied());
        let mut separator = '{';
        for (label, value) in labels.chain(bound.map(|bound| ("le", bound))) {
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
