//! Metrics in Prometheus' protobuf format, the one with native histograms: a family for each metric, its length before it.
//! Histograms have both kinds of buckets, so a collector takes what it wants.

use super::message::{
    Bucket, BucketSpan, Exemplar, Histogram, LabelPair, Metric, MetricFamily, Timestamp, Value, kind,
};
use super::sample::{Number, Seconds, Writer};
use super::table::{self, MetricKind};
use crate::buckets::{BOUNDS_US, NATIVE_START, SCHEMA, ZERO_THRESHOLD};
use crate::exemplar;
use crate::histogram::HistogramSnapshot;
use prost::Message as _;
use std::time::UNIX_EPOCH;

/// Empty buckets between two others that are named with them, as another span would take more bytes.
const BRIDGED: u32 = 2;

/// The families while they are written.
pub(super) struct Families {
    written: Vec<u8>,
    family: MetricFamily,
}

impl Families {
    pub(super) fn new(capacity: usize) -> Self {
        Self { written: Vec::with_capacity(capacity), family: MetricFamily::default() }
    }

    /// Writes the family that is open. Collectors know of none without metrics.
    fn finish(&mut self) {
        let family = std::mem::take(&mut self.family);
        if !family.metric.is_empty() {
            self.written.append(&mut family.encode_length_delimited_to_vec());
        }
    }
}

impl Writer for Families {
    fn open(&mut self, metric: &table::Metric) {
        self.finish();
        self.family.name = Some(metric.name.to_owned());
        self.family.help = Some(metric.help.to_owned());
        self.family.r#type = Some(match metric.kind {
            MetricKind::Counter => kind::COUNTER,
            MetricKind::Gauge => kind::GAUGE,
            MetricKind::Histogram => kind::HISTOGRAM,
        });
    }

    fn sample(&mut self, metric: &table::Metric, values: &[&str], number: Number) {
        let value = Some(Value { value: Some(number.into()) });
        let (gauge, counter) = if metric.kind == MetricKind::Gauge { (value, None) } else { (None, value) };
        self.family.metric.push(Metric { label: labels(metric, values), gauge, counter, histogram: None });
    }

    fn histogram(
        &mut self,
        metric: &table::Metric,
        values: &[&str],
        snapshot: &HistogramSnapshot,
        exemplars: &[exemplar::Exemplar],
    ) {
        let histogram = Some(histogram(snapshot, exemplars));
        self.family.metric.push(Metric { label: labels(metric, values), gauge: None, counter: None, histogram });
    }

    fn close(mut self: Box<Self>) -> Vec<u8> {
        self.finish();
        self.written
    }
}

impl From<Number> for f64 {
    fn from(number: Number) -> Self {
        match number {
            Number::Count(count) => count as Self,
            Number::Level(level) => level as Self,
            Number::Time(time) => time.into(),
        }
    }
}

fn labels(metric: &table::Metric, values: &[&str]) -> Vec<LabelPair> {
    metric.labels.iter().zip(values).map(|(name, value)| pair(name, (*value).to_owned())).collect()
}

fn pair(name: &str, value: String) -> LabelPair {
    LabelPair { name: Some(name.to_owned()), value: Some(value) }
}

fn histogram(snapshot: &HistogramSnapshot, exemplars: &[exemplar::Exemplar]) -> Histogram {
    let mut native = snapshot.native();
    let zero_count = native.next();
    let (positive_span, positive_delta) = spans(NATIVE_START + 1, native);
    let counts = snapshot.cumulative().into_iter().chain([snapshot.count]);
    let bounds = BOUNDS_US.iter().map(|&bound| Seconds(bound).into()).chain([f64::INFINITY]);
    let bucket = bounds.zip(counts).enumerate().map(|(bucket, (bound, count))| Bucket {
        cumulative_count: Some(count),
        upper_bound: Some(bound),
        exemplar: exemplars.iter().find(|exemplar| exemplar.bucket == bucket).map(message),
    });
    let mut by_age: Vec<_> = exemplars.iter().collect();
    by_age.sort_by_key(|exemplar| exemplar.at);
    Histogram {
        sample_count: Some(snapshot.count),
        sample_sum: Some(Seconds(snapshot.sum_us).into()),
        bucket: bucket.collect(),
        schema: Some(SCHEMA),
        zero_threshold: Some(ZERO_THRESHOLD),
        zero_count,
        positive_span,
        positive_delta,
        exemplars: by_age.into_iter().map(message).collect(),
    }
}

/// Native buckets as they are sent: where there are any, and by how much each differs from the one before.
fn spans(first: i32, counts: impl Iterator<Item = u64>) -> (Vec<BucketSpan>, Vec<i64>) {
    let (mut spans, mut deltas) = (Vec::<BucketSpan>::new(), Vec::new());
    let (mut gap, mut before) = (0_u32, 0_u64);
    for count in counts {
        if count == 0 {
            gap += 1;
            continue;
        }
        match spans.last_mut() {
            Some(BucketSpan { length: Some(length), .. }) if gap <= BRIDGED => {
                for _ in 0..gap {
                    deltas.push(0_u64.wrapping_sub(before).cast_signed());
                    before = 0;
                }
                *length += gap + 1;
            }
            last => {
                let offset = gap.cast_signed() + if last.is_none() { first } else { 0 };
                spans.push(BucketSpan { offset: Some(offset), length: Some(1) });
            }
        }
        deltas.push(count.wrapping_sub(before).cast_signed());
        (gap, before) = (0, count);
    }
    (spans, deltas)
}

fn message(exemplar: &exemplar::Exemplar) -> Exemplar {
    let at = exemplar.at.duration_since(UNIX_EPOCH).unwrap_or_default();
    Exemplar {
        label: vec![
            pair("trace_id", format!("{:032x}", exemplar.trace)),
            pair("span_id", format!("{:016x}", exemplar.span)),
        ],
        value: Some(Seconds(exemplar.took_us).into()),
        timestamp: Some(Timestamp { seconds: at.as_secs().cast_signed(), nanos: at.subsec_nanos().cast_signed() }),
    }
}

#[cfg(test)]
#[path = "protobuf_tests.rs"]
mod tests;
