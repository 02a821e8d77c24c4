//! Metrics as text: Prometheus' own format, and OpenMetrics.

use super::sample::{Number, Seconds, Writer};
use super::table::{Metric, MetricKind};
use crate::buckets::BOUNDS_US;
use crate::escape;
use crate::exemplar::Exemplar;
use crate::histogram::HistogramSnapshot;
use std::fmt::Write as _;
use std::time::UNIX_EPOCH;

/// The text while it is written.
pub(super) struct Text {
    is_open_metrics: bool,
    text: String,
}

impl std::fmt::Display for Number {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Count(count) => write!(f, "{count}"),
            Self::Level(level) => write!(f, "{level}"),
            Self::Time(time) => write!(f, "{time}"),
        }
    }
}

impl Writer for Text {
    /// OpenMetrics describes a counter without the `_total` of its samples.
    fn open(&mut self, metric: &Metric) {
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

    fn sample(&mut self, metric: &Metric, values: &[&str], number: Number) {
        self.line(metric, "", values, None, number);
    }

    fn histogram(&mut self, metric: &Metric, values: &[&str], snapshot: &HistogramSnapshot, exemplars: &[Exemplar]) {
        let in_bucket = |bucket: usize| exemplars.iter().find(|exemplar| exemplar.bucket == bucket);
        for (bucket, (bound, count)) in BOUNDS_US.iter().zip(snapshot.cumulative()).enumerate() {
            self.bucket(metric, values, &Seconds(*bound).to_string(), count, in_bucket(bucket));
        }
        self.bucket(metric, values, "+Inf", snapshot.count, in_bucket(BOUNDS_US.len()));
        self.line(metric, "_sum", values, None, Seconds(snapshot.sum_us));
        self.line(metric, "_count", values, None, snapshot.count);
    }

    fn close(mut self: Box<Self>) -> Vec<u8> {
        if self.is_open_metrics {
            self.text.push_str("# EOF\n");
        }
        self.text.into_bytes()
    }
}

impl Text {
    pub(super) fn new(is_open_metrics: bool, capacity: usize) -> Self {
        Self { is_open_metrics, text: String::with_capacity(capacity) }
    }

    fn bucket(&mut self, metric: &Metric, values: &[&str], bound: &str, count: u64, exemplar: Option<&Exemplar>) {
        self.line(metric, "_bucket", values, Some(bound), count);
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

    fn line(
        &mut self,
        metric: &Metric,
        suffix: &str,
        values: &[&str],
        bound: Option<&str>,
        value: impl std::fmt::Display,
    ) {
        self.text.push_str(metric.name);
        self.text.push_str(suffix);
        let labels = metric.labels.iter().copied().zip(values.iter().copied()).chain(bound.map(|bound| ("le", bound)));
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
