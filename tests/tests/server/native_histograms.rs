//! Prometheus' protobuf format and its native histograms: what a collector reads that asks for them, and what a real
//! Prometheus makes of it. The messages are written down again here, so that a wrong number would be noticed.

use super::admin::OnAddress;
use howdah_skip::skip;
use howdah_tests::process::{PATIENCE, eventually};
use howdah_tests::{Collector, Conn, Prometheus, Request};
use prost::Message;
use std::collections::BTreeMap;
use std::time::Instant;

const PROTOBUF: &str = "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited";

/// As Prometheus 2.42 asks.
const ACCEPT: &str = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited,\
    application/openmetrics-text;version=1.0.0;q=0.8,application/openmetrics-text;version=0.0.1;q=0.75,\
    text/plain;version=0.0.4;q=0.5,*/*;q=0.1";

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

const WAITS: &str = "<?php usleep((int) ($_GET['us'] ?? 0)); echo 'waited';";

#[derive(Clone, PartialEq, Message)]
struct Family {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(int32, tag = "3")]
    kind: i32,
    #[prost(message, repeated, tag = "4")]
    samples: Vec<Sample>,
}

#[derive(Clone, PartialEq, Message)]
struct Sample {
    #[prost(message, repeated, tag = "1")]
    labels: Vec<Label>,
    #[prost(message, optional, tag = "2")]
    gauge: Option<Value>,
    #[prost(message, optional, tag = "3")]
    counter: Option<Value>,
    #[prost(message, optional, tag = "7")]
    histogram: Option<Histogram>,
}

#[derive(Clone, PartialEq, Message)]
struct Label {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    value: String,
}

#[derive(Clone, PartialEq, Message)]
struct Value {
    #[prost(double, tag = "1")]
    value: f64,
}

#[derive(Clone, PartialEq, Message)]
struct Histogram {
    #[prost(uint64, tag = "1")]
    count: u64,
    #[prost(double, tag = "2")]
    sum: f64,
    #[prost(message, repeated, tag = "3")]
    buckets: Vec<Bucket>,
    #[prost(sint32, tag = "5")]
    schema: i32,
    #[prost(double, tag = "6")]
    zero_threshold: f64,
    #[prost(uint64, tag = "7")]
    zero_count: u64,
    #[prost(message, repeated, tag = "12")]
    spans: Vec<Span>,
    #[prost(sint64, repeated, tag = "13")]
    deltas: Vec<i64>,
}

#[derive(Clone, PartialEq, Message)]
struct Bucket {
    #[prost(uint64, tag = "1")]
    cumulative: u64,
    #[prost(double, tag = "2")]
    bound: f64,
}

#[derive(Clone, PartialEq, Message)]
struct Span {
    #[prost(sint32, tag = "1")]
    offset: i32,
    #[prost(uint32, tag = "2")]
    length: u32,
}

impl Histogram {
    /// The native buckets: upper bound and count.
    fn native(&self) -> Vec<(f64, u64)> {
        let (mut index, mut count, mut deltas) = (0, 0, self.deltas.iter());
        let mut buckets = Vec::new();
        for span in &self.spans {
            index += span.offset;
            for _ in 0..span.length {
                count += deltas.next().unwrap();
                let bound = 2_f64.powf(f64::from(index) / 2_f64.powi(self.schema));
                buckets.push((bound, u64::try_from(count).unwrap()));
                index += 1;
            }
        }
        assert_eq!(deltas.next(), None);
        buckets
    }
}

fn page(site: &OnAddress, accept: &str) -> howdah_tests::Response {
    Conn::open(&site.target(site.admin)).exchange(&Request::get("/metrics").header("Accept", accept).close())
}

fn families(site: &OnAddress) -> BTreeMap<String, Family> {
    let page = page(site, ACCEPT).expect(200);
    assert_eq!(page.header("content-type"), Some(PROTOBUF));
    let mut rest = &*page.body;
    let mut families = BTreeMap::new();
    while !rest.is_empty() {
        let family = Family::decode_length_delimited(&mut rest).unwrap();
        assert!(!family.samples.is_empty(), "{}", family.name);
        assert!(families.insert(family.name.clone(), family).is_none(), "a name twice");
    }
    families
}

/// Asks for a script that waits, and says how long that took.
fn wait(site: &OnAddress, us: u32) -> f64 {
    let since = Instant::now();
    let request = Request::get(&format!("/wait.php?us={us}")).header("traceparent", PARENT).close();
    assert_eq!(Conn::open(&site.visitors()).exchange(&request).expect(200).text(), "waited");
    since.elapsed().as_secs_f64()
}

#[test]
fn a_collector_that_reads_protobuf_gets_native_histograms() {
    let site = OnAddress::start_with(&[("wait.php", WAITS)], &[]);
    let longest = (0..20).map(|_| wait(&site, 20_000)).fold(0.0, f64::max);
    let mut found = BTreeMap::new();
    let names = [
        "howdah_request_duration_seconds",
        "howdah_site_request_duration_seconds",
        "howdah_pool_queue_wait_seconds",
        "howdah_pool_php_duration_seconds",
    ];
    // A request is counted once its response is out, by the pool once PHP is done with it.
    let is_counted = eventually(PATIENCE, || {
        found = families(&site);
        let counts = |name: &&str| found[*name].samples.iter().filter_map(|sample| sample.histogram.as_ref());
        names.iter().all(|name| counts(&name).any(|histogram| histogram.count == 20))
    });
    assert!(is_counted, "{found:#?}");
    for name in names {
        let family = &found[name];
        let Some(histogram) = family.samples.iter().find_map(|sample| sample.histogram.clone().filter(|h| h.count > 0))
        else {
            panic!("{name}: {family:#?}")
        };
        assert_eq!((family.kind, histogram.schema, histogram.count), (4, 3, 20), "{name}");
        assert_eq!(histogram.zero_threshold, 2_f64.powi(-16));
        let native = histogram.native();
        assert_eq!(native.iter().map(|(_, count)| count).sum::<u64>() + histogram.zero_count, 20, "{name}: {native:?}");
        // The classic buckets, as the text has them.
        assert_eq!(histogram.buckets.len(), 19);
        assert_eq!((histogram.buckets[0].bound, histogram.buckets[17].bound), (0.000_05, 60.0));
        assert_eq!((histogram.buckets[18].bound, histogram.buckets[18].cumulative), (f64::INFINITY, 20));
        if name != "howdah_pool_queue_wait_seconds" {
            let (least, most) = (native[0].0, native.last().unwrap().0);
            assert!(least >= 0.02 && most < longest.max(0.02) * 1.1, "{name}: {native:?}, {longest}");
            assert!(histogram.sum >= 0.4 && histogram.sum < longest * 20.0, "{name}: {histogram:?}");
        }
    }
    let of = |name: &str| &found[name].samples[0];
    assert_eq!(of("howdah_pool_workers").gauge, Some(Value { value: 1.0 }));
    let label = Label { name: "pool".to_owned(), value: "default".to_owned() };
    assert_eq!(of("howdah_pool_workers").labels, [label]);
    let php = found["howdah_requests_total"]
        .samples
        .iter()
        .find(|sample| sample.labels.iter().map(|label| &*label.value).eq(["php", "2xx"]));
    assert_eq!(php.unwrap().counter, Some(Value { value: 20.0 }));
    for other in ["", "*/*", "text/plain", "application/vnd.google.protobuf"] {
        let page = page(&site, other).expect(200);
        assert_eq!(page.header("content-type"), Some("text/plain; version=0.0.4"), "{other}");
        assert!(page.text().contains("howdah_request_duration_seconds_count 20\n"), "{}", page.text());
    }
}

#[test]
fn prometheus_computes_quantiles_from_native_histograms() {
    let Some(program) = Prometheus::program() else {
        skip!("prometheus", "scripts/unpack-prometheus.sh unpacks Debian's package");
    };
    let collector = Collector::start();
    let traces = format!("telemetry = {}", collector.section("parent = \"always\""));
    let site = OnAddress::start_with(&[("wait.php", WAITS)], &[&traces]);
    let prometheus = Prometheus::start(&program, site.admin);
    let eventually_finds = |expression: &str, is_right: &dyn Fn(f64) -> bool| {
        let mut last = None;
        let is_found = eventually(PATIENCE, || {
            last = prometheus.value(expression);
            last.is_some_and(is_right)
        });
        assert!(is_found, "{expression}: {last:?}\n{}\n{}", prometheus.log(), site.log());
        last.unwrap()
    };
    let count = "histogram_count(howdah_request_duration_seconds)";
    let _ = eventually_finds(count, &|count| count == 0.0);
    let longest = (0..20).map(|_| wait(&site, 20_000)).fold(0.0, f64::max);
    let _ = eventually_finds(count, &|count| count == 20.0);
    let _ = eventually_finds("histogram_sum(howdah_request_duration_seconds)", &|sum| sum > 0.4);
    for of in ["howdah_request_duration_seconds", "howdah_pool_php_duration_seconds"] {
        // A bucket is a twelfth wide; the rate is known once there were two scrapes.
        for range in [of.to_owned(), format!("rate({of}[1m])")] {
            let expression = format!("histogram_quantile(0.95, {range})");
            let quantile = eventually_finds(&expression, &f64::is_finite);
            assert!((0.019..longest.max(0.02) * 1.1).contains(&quantile), "{expression}: {quantile}, {longest}");
        }
    }
    let one = "histogram_count(howdah_site_request_duration_seconds{site=\"default\"})";
    let _ = eventually_finds(one, &|count| count == 20.0);
    let is_linked = || prometheus.exemplars("howdah_request_duration_seconds").contains(TRACE);
    assert!(eventually(PATIENCE, is_linked), "{}", prometheus.exemplars("howdah_request_duration_seconds"));
    assert!(!prometheus.log().contains("level=error"), "{}", prometheus.log());
}
