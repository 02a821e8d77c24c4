use super::*;
use crate::{Front, RequestMetrics};
use std::time::{Duration, UNIX_EPOCH};

#[test]
fn names_follow_the_rules() {
    for (at, metric) in TABLE.iter().enumerate() {
        assert!(TABLE[..at].iter().all(|other| other.name != metric.name), "{} twice", metric.name);
        assert_eq!(metric.kind == MetricKind::Counter, metric.name.ends_with("_total"), "{}", metric.name);
        assert!(metric.kind != MetricKind::Histogram || metric.name.ends_with("_seconds"), "{}", metric.name);
        assert!(metric.help.ends_with('.') && !metric.help.contains('\n'), "{}", metric.name);
    }
}

#[test]
fn render_shows_each_metric_with_its_labels() {
    let metrics = Metrics::new();
    let pool = metrics.pool("de\"fault");
    metrics.requests.of("a", "b").count(Front::Php, 200, Duration::from_micros(80), 1024);
    metrics.requests.of("a", "b").count(Front::Error, 503, Duration::from_millis(2), 10);
    metrics.connections_open.inc();
    pool.queue_wait.observe(Duration::from_micros(10));
    pool.faults.inc("queue_full");
    pool.restarts.inc("died");
    pool.php_time.observe_us(1_250_000);
    pool.restores.observe_us(70);
    let connections = ConnectionPool { name: "a\"b".into(), idle: 3, wait_us: 1500, ..ConnectionPool::default() };
    pool.set_connection_pools(vec![connections]);
    let text = metrics.render(Format::Text);
    for line in [
        "# TYPE howdah_requests_total counter",
        "howdah_requests_total{front=\"php\",status=\"2xx\"} 1",
        "howdah_requests_total{front=\"error\",status=\"5xx\"} 1",
        "howdah_request_duration_seconds_bucket{le=\"0.00005\"} 0",
        "howdah_request_duration_seconds_bucket{le=\"0.0001\"} 1",
        "howdah_request_duration_seconds_bucket{le=\"+Inf\"} 2",
        "howdah_request_duration_seconds_sum 0.00208",
        "howdah_request_duration_seconds_count 2",
        "howdah_site_requests_total{site=\"a\",route=\"b\",front=\"php\",status=\"2xx\"} 1",
        "howdah_site_request_duration_seconds_bucket{site=\"a\",route=\"b\",le=\"0.0001\"} 1",
        "howdah_site_sent_bytes_total{site=\"a\",route=\"b\"} 1034",
        "howdah_pool_php_duration_seconds_count{pool=\"de\\\"fault\"} 1",
        "howdah_pool_snapshot_restore_seconds_bucket{pool=\"de\\\"fault\",le=\"0.0001\"} 1",
        "howdah_connections_open 1",
        "howdah_pool_queue_wait_seconds_bucket{pool=\"de\\\"fault\",le=\"0.00005\"} 1",
        "howdah_pool_faults_total{pool=\"de\\\"fault\",kind=\"queue_full\"} 1",
        "howdah_pool_worker_restarts_total{pool=\"de\\\"fault\",reason=\"died\"} 1",
        "howdah_pool_php_duration_seconds_sum{pool=\"de\\\"fault\"} 1.25",
        "howdah_connection_pool_connections{pool=\"de\\\"fault\",name=\"a\\\"b\",state=\"idle\"} 3",
        "howdah_connection_pool_wait_seconds_total{pool=\"de\\\"fault\",name=\"a\\\"b\"} 0.0015",
    ] {
        assert!(text.lines().any(|have| have == line), "missing: {line}\n{text}");
    }
    for metric in TABLE {
        assert_eq!(text.matches(&format!("# TYPE {} ", metric.name)).count(), 1);
    }
    assert_eq!(metrics.durations().count, 2);
}

#[test]
fn a_pool_is_made_once() {
    let metrics = Metrics::new();
    metrics.pool("a").replays.inc();
    assert_eq!(metrics.pool("a").replays.get(), 1);
    assert_eq!(metrics.pool("b").replays.get(), 0);
}

#[test]
fn an_unknown_status_is_counted() {
    let metrics = Metrics::new();
    metrics.requests.of("a", "b").count(Front::Php, 0, Duration::ZERO, 0);
    metrics.requests.of("a", "b").count(Front::Php, 999, Duration::ZERO, 0);
    assert_eq!(metrics.durations().count, 2);
}

#[test]
fn openmetrics_has_the_trace_of_a_request_as_an_exemplar() {
    let metrics = Metrics::new();
    let count = |cells: &RequestMetrics, us, trace, second: u64| {
        let (took, at) = (Duration::from_micros(us), UNIX_EPOCH + Duration::from_millis(second * 1000 + 7));
        cells.count(Front::Php, 200, took, 0);
        cells.note_trace(trace, 0xab, took, at);
    };
    let (one, other) = (metrics.requests.of("a", "b"), metrics.requests.of("c", ""));
    count(&one, 80, 1, 10);
    count(&one, 90, 2, 11);
    count(&other, 70, 3, 5);
    count(&other, 70_000_000, 4, 6);
    let text = metrics.render(Format::OpenMetrics);
    let id = |trace: u128| format!("# {{trace_id=\"{trace:032x}\",span_id=\"00000000000000ab\"}}");
    for line in [
        "# TYPE howdah_requests counter".to_owned(),
        "howdah_requests_total{front=\"php\",status=\"2xx\"} 4".to_owned(),
        format!("howdah_request_duration_seconds_bucket{{le=\"0.0001\"}} 3 {} 0.00009 11.007", id(2)),
        format!("howdah_request_duration_seconds_bucket{{le=\"+Inf\"}} 4 {} 70 6.007", id(4)),
        format!(
            "howdah_site_request_duration_seconds_bucket{{site=\"c\",route=\"\",le=\"0.0001\"}} 1 {} 0.00007 5.007",
            id(3)
        ),
    ] {
        assert!(text.lines().any(|have| have == line), "missing: {line}\n{text}");
    }
    assert!(text.ends_with("\n# EOF\n") && text.matches("# EOF").count() == 1);
    assert!(!metrics.render(Format::Text).contains("trace_id"), "the older format has no exemplars");
}
