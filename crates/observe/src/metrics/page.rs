//! The page of metrics while it is written, in whatever format.

use super::format::Format;
use super::protobuf::Families;
use super::sample::{Number, Writer};
use super::table::{Metric, TABLE};
use super::text::Text;
use crate::cell::Labelled;
use crate::exemplar::Exemplar;
use crate::histogram::{Histogram, HistogramSnapshot};

/// The page while it is written.
pub(super) struct Page {
    writer: Box<dyn Writer>,
    metric: &'static Metric,
}

impl Page {
    pub(super) fn new(format: Format, capacity: usize) -> Self {
        let writer: Box<dyn Writer> = match format {
            Format::Text => Box::new(Text::new(false, capacity)),
            Format::OpenMetrics => Box::new(Text::new(true, capacity)),
            Format::Protobuf => Box::new(Families::new(capacity)),
        };
        Self { writer, metric: &TABLE[0] }
    }

    /// Begins a metric.
    pub(super) fn open(&mut self, metric: &'static Metric) {
        self.metric = metric;
        self.writer.open(metric);
    }

    /// The whole page.
    pub(super) fn close(self) -> Vec<u8> {
        self.writer.close()
    }

    pub(super) fn sample(&mut self, values: &[&str], value: impl Into<Number>) {
        self.writer.sample(self.metric, values, value.into());
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
        self.writer.histogram(self.metric, values, snapshot, exemplars);
    }
}
