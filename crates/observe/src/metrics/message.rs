//! The messages of Prometheus' protobuf format with its names and numbers (`io.prometheus.client`), as far as there is
//! anything to put into them.

use prost::Message;

#[derive(Clone, PartialEq, Message)]
pub(super) struct MetricFamily {
    #[prost(string, optional, tag = "1")]
    pub(super) name: Option<String>,
    #[prost(string, optional, tag = "2")]
    pub(super) help: Option<String>,
    /// An enumeration: see `kind`.
    #[prost(int32, optional, tag = "3")]
    pub(super) r#type: Option<i32>,
    #[prost(message, repeated, tag = "4")]
    pub(super) metric: Vec<Metric>,
}

/// The numbers of a family's type.
pub(super) mod kind {
    pub(in super::super) const COUNTER: i32 = 0;
    pub(in super::super) const GAUGE: i32 = 1;
    pub(in super::super) const HISTOGRAM: i32 = 4;
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Metric {
    #[prost(message, repeated, tag = "1")]
    pub(super) label: Vec<LabelPair>,
    #[prost(message, optional, tag = "2")]
    pub(super) gauge: Option<Value>,
    #[prost(message, optional, tag = "3")]
    pub(super) counter: Option<Value>,
    #[prost(message, optional, tag = "7")]
    pub(super) histogram: Option<Histogram>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct LabelPair {
    #[prost(string, optional, tag = "1")]
    pub(super) name: Option<String>,
    #[prost(string, optional, tag = "2")]
    pub(super) value: Option<String>,
}

/// Both `Gauge` and `Counter`.
#[derive(Clone, Copy, PartialEq, Message)]
pub(super) struct Value {
    #[prost(double, optional, tag = "1")]
    pub(super) value: Option<f64>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Histogram {
    #[prost(uint64, optional, tag = "1")]
    pub(super) sample_count: Option<u64>,
    #[prost(double, optional, tag = "2")]
    pub(super) sample_sum: Option<f64>,
    #[prost(message, repeated, tag = "3")]
    pub(super) bucket: Vec<Bucket>,
    #[prost(sint32, optional, tag = "5")]
    pub(super) schema: Option<i32>,
    #[prost(double, optional, tag = "6")]
    pub(super) zero_threshold: Option<f64>,
    #[prost(uint64, optional, tag = "7")]
    pub(super) zero_count: Option<u64>,
    #[prost(message, repeated, tag = "12")]
    pub(super) positive_span: Vec<BucketSpan>,
    #[prost(sint64, repeated, packed = "false", tag = "13")]
    pub(super) positive_delta: Vec<i64>,
    #[prost(message, repeated, tag = "16")]
    pub(super) exemplars: Vec<Exemplar>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Bucket {
    #[prost(uint64, optional, tag = "1")]
    pub(super) cumulative_count: Option<u64>,
    #[prost(double, optional, tag = "2")]
    pub(super) upper_bound: Option<f64>,
    #[prost(message, optional, tag = "3")]
    pub(super) exemplar: Option<Exemplar>,
}

#[derive(Clone, Copy, PartialEq, Message)]
pub(super) struct BucketSpan {
    #[prost(sint32, optional, tag = "1")]
    pub(super) offset: Option<i32>,
    #[prost(uint32, optional, tag = "2")]
    pub(super) length: Option<u32>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Exemplar {
    #[prost(message, repeated, tag = "1")]
    pub(super) label: Vec<LabelPair>,
    #[prost(double, optional, tag = "2")]
    pub(super) value: Option<f64>,
    #[prost(message, optional, tag = "3")]
    pub(super) timestamp: Option<Timestamp>,
}

/// `google.protobuf.Timestamp`.
#[derive(Clone, Copy, PartialEq, Message)]
pub(super) struct Timestamp {
    #[prost(int64, tag = "1")]
    pub(super) seconds: i64,
    #[prost(int32, tag = "2")]
    pub(super) nanos: i32,
}
