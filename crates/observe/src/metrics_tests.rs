use super::*;
use std::time::Duration;

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
    let text = metrics.render();
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
        "howdah_sent_bytes_total 1034",
        "howdah_connections_open 1",
        "howdah_pool_queue_wait_seconds_bucket{pool=\"de\\\"fault\",le=\"0.00005\"} 1",
        "howdah_pool_faults_total{pool=\"de\\\"fault\",kind=\"queue_full\"} 1",
        "howdah_pool_worker_restarts_total{pool=\"de\\\"fault\",reason=\"died\"} 1",
        "howdah_pool_php_seconds_total{pool=\"de\\\"fault\"} 1.25",
        "howdah_connection_pool_idle{pool=\"de\\\"fault\",name=\"a\\\"b\"} 3",
        "howdah_connection_pool_wait_seconds_total{pool=\"de\\\"fault\",name=\"a\\\"b\"} 0.0015",
    ] {
        assert!(text.lines().any(|have| have == line), "missing: {line}\n{text}");
    }
    for metric in TABLE {
        assert_eq!(text.matches(&format!("# TYPE {} ", metric.name)).count(), 1);
    }
    assert_eq!(metrics.requests_total(), 2);
}

#[test]
fn a_pool_is_made_once() {
    let metrics = Metrics::new();
    metrics.pool("a").replays.inc();
    assert_eq!(metrics.pool("a").replays.get(), 1);
    assert_eq!(metrics.pool("b").replays.get(), 0);
}

#[test]
fn a_strange_status_is_counted_somewhere() {
    let metrics = Metrics::new();
    metrics.requests.of("a", "b").count(Front::Php, 0, Duration::ZERO, 0);
    metrics.requests.of("a", "b").count(Front::Php, 999, Duration::ZERO, 0);
    assert_eq!(metrics.requests_total(), 2);
}
