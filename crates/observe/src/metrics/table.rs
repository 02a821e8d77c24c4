//! The table of metrics: each name once, with its kind, labels and description.

use std::fmt::Write as _;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetricKind {
    /// Only grows.
    Counter,
    /// Goes up and down.
    Gauge,
    /// Counts of durations by bucket.
    Histogram,
}

impl MetricKind {
    /// The kind's name in Prometheus' text format.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        }
    }
}

/// One metric: a row of the table.
#[derive(Debug, Clone, Copy)]
pub struct Metric {
    pub(super) id: Id,
    pub name: &'static str,
    pub kind: MetricKind,
    pub labels: &'static [&'static str],
    /// Its meaning.
    pub help: &'static str,
}

/// The table of metrics, each name once.
macro_rules! metrics {
    ($($id:ident $name:literal $kind:ident [$($label:literal),*] $help:literal;)+) => {
        /// A metric of the table.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(super) enum Id { $($id),+ }

        /// Every metric, in the order in which they are rendered.
        pub const TABLE: &[Metric] = &[$(
            Metric { id: Id::$id, name: $name, kind: MetricKind::$kind, labels: &[$($label),*], help: $help }
        ),+];
    };
}

metrics! {
    Requests "howdah_requests_total" Counter ["front", "status"]
        "Responses, by source (php, static, proxy, error) and class of status; events of WebSockets and webhooks included.";
    RequestDuration "howdah_request_duration_seconds" Histogram []
        "Time from the end of a request's header to the end of its response.";
    SiteRequests "howdah_site_requests_total" Counter ["site", "route", "front", "status"]
        "Responses by site and route: the `name` of a `[[rule]]` with `pool`, `proxy` or `websocket`, or its path; else empty.";
    SiteDuration "howdah_site_request_duration_seconds" Histogram ["site", "route"]
        "Request duration by site and route.";
    SiteBytes "howdah_site_sent_bytes_total" Counter ["site", "route"] "Bytes of response bodies sent, by site and route.";
    UnknownHosts "howdah_unknown_host_requests_total" Counter []
        "Requests refused because no site has their host.";
    Rejected "howdah_rejected_requests_total" Counter ["reason"]
        "Malformed or premature requests, by reason. They are not counted as responses.";
    ConnectionsOpen "howdah_connections_open" Gauge [] "Connections that are open.";
    ConnectionsAccepted "howdah_connections_accepted_total" Counter [] "Connections accepted.";
    ConnectionsDisplaced "howdah_connections_displaced_total" Counter []
        "Connections closed at `http.max_connections` to accept new ones: idle, slow to send a header, or else after a response.";
    ConnectionsUpgraded "howdah_connections_upgraded" Gauge []
        "Open connections that were upgraded (WebSocket); in HTTP/2 and HTTP/3 upgraded streams.";
    WebSocketMessages "howdah_websocket_messages_total" Counter ["direction"]
        "Messages of WebSocket connections with a `websocket` rule, received from clients and sent to them.";
    MercureSubscribers "howdah_mercure_subscribers" Gauge [] "Subscribers of Mercure hubs.";
    MercureUpdates "howdah_mercure_updates_total" Counter [] "Updates published to Mercure hubs.";
    TlsHandshakes "howdah_tls_handshakes_total" Counter ["result"]
        "TLS handshakes by result: new, resumed, failed (such as no common version, cipher or certificate, or no TLS).";
    Processor "howdah_processor_seconds_total" Counter [] "Processor time of the server itself, without PHP.";
    Budget "howdah_budget_bytes" Gauge ["budget", "kind"]
        "Bytes of `http.memory` and `http.spool`, by kind: used, and the limit.";
    BudgetRefused "howdah_budget_refused_total" Counter ["budget"]
        "Reservations refused for lack of room: a request got 503, a response went to a file, a worker had to wait.";
    MemoryPressure "howdah_memory_pressure_percent" Gauge []
        "Percent of the last ten seconds in which a process waited for memory; 0 if the kernel does not report it.";
    CompressionCache "howdah_compression_cache_total" Counter ["result"]
        "Bodies whose compressed form was taken from the cache (hit), or had to be made (miss).";
    LogDropped "howdah_log_dropped_total" Counter ["log"]
        "Lines lost because a log (access, error, slow) was not writable or too slow.";
    Spans "howdah_telemetry_spans_total" Counter ["result"]
        "Spans by result: sent to the collector, failed (not accepted), dropped (queue full).";
    CertificateExpiry "howdah_certificate_expiry_timestamp_seconds" Gauge ["name"]
        "Expiry of the certificate that the server obtained or created for a name, since the epoch; 0 if there is none.";
    AcmeOrders "howdah_acme_orders_total" Counter ["result"] "Attempts to obtain a certificate by ACME, by result: issued, failed.";
    PasswordChecks "howdah_password_checks_total" Counter [] "Passwords that had to be verified.";
    PasswordChecksOpen "howdah_password_checks_open" Gauge ["state"]
        "Password checks by state: running (a few at once) or waiting.";
    Panics "howdah_request_panics_total" Counter []
        "Requests that ended in a bug of the server. The log has each; please report it.";
    UpstreamUp "howdah_upstream_up" Gauge ["proxy", "server"]
        "1 while an upstream server gets requests, 0 while it is out.";
    UpstreamActive "howdah_upstream_active" Gauge ["proxy", "server"]
        "Running requests of an upstream server, upgraded connections included.";
    UpstreamRequests "howdah_upstream_requests_total" Counter ["proxy", "server"] "Requests sent to an upstream server.";
    UpstreamFailures "howdah_upstream_failures_total" Counter ["proxy", "server", "kind"]
        "Failures of an upstream server, by kind: connect, timeout, broken (before its response), cut (within it).";
    QueueLength "howdah_pool_queue_length" Gauge ["pool"] "Requests that wait for a worker.";
    QueueWait "howdah_pool_queue_wait_seconds" Histogram ["pool"] "Time from the end of a request's header until a worker took it.";
    ColdStarts "howdah_pool_cold_start_wait_seconds" Histogram ["pool"]
        "Time that requests waited in an on-demand pool without a worker.";
    Workers "howdah_pool_workers" Gauge ["pool"] "Workers, busy or idle.";
    WorkersBusy "howdah_pool_workers_busy" Gauge ["pool"] "Workers that are running a request.";
    InFlight "howdah_pool_in_flight" Gauge ["pool"] "Requests assigned to workers.";
    PoolMemory "howdah_pool_memory_bytes" Gauge ["pool"]
        "Memory of all workers and a snapshot's template, shared memory counted proportionally (PSS); only with `max_pool_memory`.";
    WorkersRelieved "howdah_pool_workers_relieved_total" Counter ["pool"]
        "Idle workers stopped because memory was short.";
    Restarts "howdah_pool_worker_restarts_total" Counter ["pool", "reason"] "Workers that ended, by reason.";
    Faults "howdah_pool_faults_total" Counter ["pool", "kind"] "Requests that could not be answered, by kind of fault.";
    Resubmitted "howdah_pool_resubmitted_total" Counter ["pool", "reason"]
        "Requests moved to another worker, by reason: their worker died (worker_died: in their code, bystander: in another request's, not_begun: before it started them) or returned them.";
    Compared "howdah_pool_compared_total" Counter ["pool", "result"]
        "Responses compared with classic mode (`compare_one_in`), by result: same, slower (same content), differs, inconclusive (classic mode failed, or nothing to compare), skipped (no idle worker).";
    DemotedRoutes "howdah_pool_demoted_routes" Gauge ["pool"]
        "Routes that run in classic mode because their responses differed, they were slower, or their requests killed workers.";
    SnapshotEvents "howdah_pool_snapshot_events_total" Counter ["pool", "event"]
        "Snapshot mode: sessions of connections opened at boot that were reset after a request (session_reset), and workers replaced because a request's changes could not be undone (worker_replaced).";
    PhpDuration "howdah_pool_php_duration_seconds" Histogram ["pool"] "Time that requests ran in PHP.";
    Restores "howdah_pool_snapshot_restore_seconds" Histogram ["pool"]
        "Snapshot mode: time to restore a worker after a request.";
    PoolProcessor "howdah_pool_processor_seconds_total" Counter ["pool"]
        "Processor time of the pool's workers, including programs that they started and waited for.";
    PooledLimit "howdah_connection_pool_limit" Gauge ["pool", "name"]
        "Connections that a connection pool may have open, over all workers.";
    PooledConnections "howdah_connection_pool_connections" Gauge ["pool", "name", "state"]
        "Open connections of a connection pool, by state: idle, in_use.";
    PooledWaiting "howdah_connection_pool_waiting" Gauge ["pool", "name"]
        "Coroutines that wait for a connection.";
    PooledEvents "howdah_connection_pool_events_total" Counter ["pool", "name", "event"]
        "Events of a connection pool: acquired, waited (for a free connection), timed_out (none came in time), opened, closed, open_failed, check_failed (a check or a reset), forgotten (returned only when its coroutine ended), open_transaction (returned with one).";
    PooledWaitTime "howdah_connection_pool_wait_seconds_total" Counter ["pool", "name"]
        "Time that coroutines waited for connections.";
}

/// The documentation page of all metrics.
pub fn reference() -> String {
    let mut page = String::from(
        "# Metrics\n\n<!-- Generated from the table in crates/observe/src/metrics/table.rs; run `make generate` to update it. -->\n\n\
         Name, kind, labels, meaning. Times are in seconds.\n\n",
    );
    for metric in TABLE {
        let labels: String = metric.labels.iter().map(|label| format!(", `{label}`")).collect();
        let _ = writeln!(page, "- `{}` ({}{labels}): {}", metric.name, metric.kind.word(), metric.help);
    }
    howdah_config::reference::wrapped(&page)
}
