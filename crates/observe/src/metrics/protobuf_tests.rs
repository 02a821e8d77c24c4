use super::*;
use crate::buckets::NATIVE;
use crate::metrics::{Format, Metrics, TABLE};
use crate::{Front, RequestMetrics};
use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

/// The families of a page, by name.
fn read(page: &[u8]) -> BTreeMap<String, MetricFamily> {
    let mut rest = page;
    let mut families = BTreeMap::new();
    while !rest.is_empty() {
        let family = MetricFamily::decode_length_delimited(&mut rest).unwrap();
        assert!(families.insert(family.name.clone().unwrap(), family).is_none(), "twice");
    }
    families
}

/// Spans and deltas as a collector reads them: count by index.
fn counts(spans: &[BucketSpan], deltas: &[i64]) -> BTreeMap<i32, u64> {
    let (mut index, mut count, mut deltas) = (0, 0_i64, deltas.iter());
    let mut counts = BTreeMap::new();
    for span in spans {
        index += span.offset.unwrap();
        for _ in 0..span.length.unwrap() {
            count += deltas.next().unwrap();
            counts.insert(index, u64::try_from(count).unwrap());
            index += 1;
        }
    }
    assert_eq!(deltas.next(), None);
    counts
}

#[test]
fn spans_and_deltas_say_what_was_counted() {
    let cases: [&[u64]; 7] =
        [&[], &[0, 0, 0], &[5], &[0, 0, 0, 7, 7, 3], &[1, 0, 0, 2], &[1, 0, 0, 0, 2, 0], &[u64::MAX >> 1, 1]];
    for case in cases {
        let (spans, deltas) = spans(-135, case.iter().copied());
        let expected: BTreeMap<i32, u64> = (-135..).zip(case.iter().copied()).filter(|(_, count)| *count > 0).collect();
        let mut found = counts(&spans, &deltas);
        found.retain(|_, count| *count > 0);
        assert_eq!(found, expected, "{case:?}: {spans:?} {deltas:?}");
    }
    assert_eq!(spans(0, [1, 0, 0, 2].into_iter()).0.len(), 1, "a short gap needs no span");
    assert_eq!(spans(0, [1, 0, 0, 0, 2].into_iter()).0.len(), 2, "a long one needs one");
}

#[test]
fn native_buckets_hold_what_classic_ones_hold() {
    let recorded = crate::histogram::Histogram::default();
    let durations = [0, 15, 16, 49, 50, 51, 1_000_000, 1_000_001, 2_500_000, 4_096_000_000, 4_096_000_001, u64::MAX];
    durations.iter().for_each(|&us| recorded.observe_us(us));
    let histogram = histogram(&recorded.snapshot(), &[]);
    assert_eq!((histogram.sample_count, histogram.zero_count), (Some(durations.len() as u64), Some(2)));
    assert_eq!((histogram.schema, histogram.zero_threshold), (Some(3), Some(2_f64.powi(-16))));
    let native = counts(&histogram.positive_span, &histogram.positive_delta);
    assert_eq!(native.values().sum::<u64>() + 2, durations.len() as u64);
    // A second ends the bucket with index 0; the one after the last whole range takes all that is longer.
    assert_eq!((native[&0], native[&1], native[&96], native[&97]), (1, 1, 1, 2));
    assert_eq!(native.keys().last(), Some(&(NATIVE_START + NATIVE as i32 - 1)));
    let classic: Vec<_> =
        histogram.bucket.iter().map(|b| (b.upper_bound.unwrap(), b.cumulative_count.unwrap())).collect();
    assert_eq!((classic[0], classic[1]), ((0.000_05, 5), (0.000_1, 6)));
    assert_eq!(classic.last(), Some(&(f64::INFINITY, durations.len() as u64)));
}

#[test]
fn a_histogram_of_nothing_is_a_native_one() {
    let histogram = histogram(&HistogramSnapshot::default(), &[]);
    assert_eq!((histogram.sample_count, histogram.zero_count), (Some(0), Some(0)));
    assert!(histogram.zero_threshold.unwrap() > 0.0 && histogram.positive_span.is_empty());
}

#[test]
fn the_page_has_every_metric_that_the_text_has() {
    let metrics = Metrics::new();
    let pool = metrics.pool("de\"fault");
    let cells = metrics.requests.of("a", "b");
    cells.count(Front::Php, 200, Duration::from_millis(3), 7);
    pool.faults.inc("queue_full");
    pool.workers.set(-3);
    pool.php_time.observe_us(1_250_000);
    let families = read(&metrics.render(Format::Protobuf));
    let text = String::from_utf8(metrics.render(Format::Text)).unwrap();
    for metric in TABLE {
        let samples = text.lines().filter(|line| {
            line.strip_prefix(metric.name)
                .is_some_and(|rest| rest.starts_with(['{', ' ']) || rest.starts_with("_count"))
        });
        let found = families.get(metric.name).map_or(0, |family| family.metric.len());
        assert_eq!(found, samples.count(), "{}", metric.name);
    }
    let value = |name: &str| families[name].metric[0].clone();
    let faults = value("howdah_pool_faults_total");
    assert_eq!(faults.counter.unwrap().value, Some(1.0));
    assert_eq!(faults.label, [pair("pool", "de\"fault".to_owned()), pair("kind", "queue_full".to_owned())]);
    assert_eq!(value("howdah_pool_workers").gauge.unwrap().value, Some(-3.0));
    let php = value("howdah_pool_php_duration_seconds").histogram.unwrap();
    assert_eq!(php.sample_sum, Some(1.25));
    assert_eq!(families["howdah_pool_workers"].r#type, Some(kind::GAUGE));
    let of_site = value("howdah_site_request_duration_seconds").histogram.unwrap();
    assert_eq!((of_site.sample_count, of_site.sample_sum), (Some(1), Some(0.003)));
    assert_eq!(value("howdah_request_duration_seconds").histogram, Some(of_site));
}

#[test]
fn exemplars_stand_beside_their_bucket_and_by_age_for_native_histograms() {
    let metrics = Metrics::new();
    let note = |cells: &RequestMetrics, us, trace, second: u64| {
        let (took, at) = (Duration::from_micros(us), SystemTime::UNIX_EPOCH + Duration::from_millis(second * 1000 + 7));
        cells.count(Front::Php, 200, took, 0);
        cells.note_trace(trace, 0xab, took, at);
    };
    let cells = metrics.requests.of("a", "b");
    note(&cells, 80, 1, 10);
    note(&cells, 70_000_000, 2, 6);
    let families = read(&metrics.render(Format::Protobuf));
    let histogram = families["howdah_request_duration_seconds"].metric[0].histogram.clone().unwrap();
    let expected = |trace: u128, value, seconds| Exemplar {
        label: vec![pair("trace_id", format!("{trace:032x}")), pair("span_id", "00000000000000ab".to_owned())],
        value: Some(value),
        timestamp: Some(Timestamp { seconds, nanos: 7_000_000 }),
    };
    let (first, second) = (expected(1, 0.000_08, 10), expected(2, 70.0, 6));
    assert_eq!(histogram.exemplars, [second.clone(), first.clone()]);
    assert_eq!(histogram.bucket[1].exemplar, Some(first));
    assert_eq!(histogram.bucket[18].exemplar, Some(second));
    assert_eq!(histogram.bucket.iter().flat_map(|bucket| &bucket.exemplar).count(), 2);
}
