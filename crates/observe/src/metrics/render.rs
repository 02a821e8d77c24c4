//! The samples of each metric, read from the cells of a server.

use super::format::Format;
use super::table::{Id, TABLE};
use super::text::{Page, Seconds};
use super::{Metrics, PoolMetrics};
use crate::connection_pool::ConnectionPool;
use crate::exemplar::Exemplar;
use crate::requests::{CLASSES, Front};
use howdah_budget::Budget;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

impl Metrics {
    /// All metrics in one of the collectors' formats.
    pub fn render(&self, format: Format) -> String {
        let mut pools = self.pools.read().clone();
        pools.retain(|pool| !pool.is_gone.load(Relaxed));
        let mut page = Page::new(format, 8192 + pools.len() * 8192);
        for metric in TABLE {
            page.open(metric);
            self.render_one(metric.id, &pools, &mut page);
        }
        page.close()
    }

    /// The samples of one metric.
    fn render_one(&self, id: Id, pools: &[Arc<PoolMetrics>], page: &mut Page) {
        match id {
            Id::Requests | Id::SiteRequests | Id::SiteDuration | Id::SiteBytes => self.of_routes(id, page),
            Id::RequestDuration => {
                let exemplars = Exemplar::newest(self.requests.all().iter().flat_map(|route| route.exemplars()));
                page.durations(&[], &self.durations(), &exemplars);
            }
            Id::UnknownHosts => page.sample(&[], self.unknown_hosts.get()),
            Id::Rejected => self.rejected.all().iter().for_each(|(reason, count)| page.sample(&[reason], *count)),
            Id::ConnectionsOpen => page.sample(&[], self.connections_open.get()),
            Id::ConnectionsAccepted => page.sample(&[], self.connections_accepted.get()),
            Id::ConnectionsDisplaced => page.sample(&[], self.connections_displaced.get()),
            Id::ConnectionsUpgraded => page.sample(&[], self.connections_upgraded.get()),
            Id::WebSocketMessages => {
                page.sample(&["received"], self.websocket_received.get());
                page.sample(&["sent"], self.websocket_sent.get());
            }
            Id::MercureSubscribers => page.sample(&[], self.mercure_subscribers.get()),
            Id::MercureUpdates => page.sample(&[], self.mercure_updates.get()),
            Id::UpstreamUp | Id::UpstreamActive | Id::UpstreamRequests | Id::UpstreamFailures => {
                self.upstream_samples(id, page)
            }
            Id::TlsHandshakes => {
                let resumed = self.tls_resumed.get();
                page.sample(&["new"], self.tls_handshakes.get().saturating_sub(resumed));
                page.sample(&["resumed"], resumed);
                page.sample(&["failed"], self.tls_handshakes_failed.get());
            }
            Id::Budget => {
                for budget in self.both_budgets() {
                    page.sample(&[budget.kind().name(), "used"], budget.used());
                    page.sample(&[budget.kind().name(), "limit"], budget.limit());
                }
            }
            Id::BudgetRefused => {
                self.both_budgets().for_each(|budget| page.sample(&[budget.kind().name()], budget.refused()));
            }
            Id::Spans => {
                page.sample(&["sent"], self.spans_sent.get());
                page.sample(&["failed"], self.spans_failed.get());
                page.sample(&["dropped"], self.spans_dropped.get());
            }
            Id::Processor => page.sample(&[], Seconds(self.processor_time.us())),
            Id::CompressionCache => {
                page.sample(&["hit"], self.compression_cache_hits.get());
                page.sample(&["miss"], self.compression_cache_misses.get());
            }
            Id::MemoryPressure => page.sample(&[], self.memory_pressure.get()),
            Id::LogDropped => {
                page.sample(&["access"], self.access_log_dropped.get());
                page.sample(&["error"], self.error_log_dropped());
                page.sample(&["slow"], self.slow_log_dropped.get());
            }
            Id::CertificateExpiry => {
                for (name, until) in &self.certificates.lock().expiry {
                    page.sample(&[name], *until);
                }
            }
            Id::AcmeOrders => {
                let certificates = self.certificates.lock();
                page.sample(&["issued"], certificates.orders);
                page.sample(&["failed"], certificates.failures);
            }
            Id::PasswordChecks => page.sample(&[], self.password_checks.get()),
            Id::PasswordChecksOpen => {
                page.sample(&["running"], self.password_checks_running.get());
                page.sample(&["waiting"], self.password_checks_waiting.get());
            }
            Id::Panics => page.sample(&[], self.request_panics.get()),
            Id::QueueLength => pools.iter().for_each(|pool| page.sample(&[&pool.name], pool.queue_length.get())),
            Id::QueueWait => pools.iter().for_each(|pool| page.histogram(&[&pool.name], &pool.queue_wait)),
            Id::ColdStarts => pools.iter().for_each(|pool| page.histogram(&[&pool.name], &pool.cold_starts)),
            Id::Workers => pools.iter().for_each(|pool| page.sample(&[&pool.name], pool.workers.get())),
            Id::WorkersBusy => pools.iter().for_each(|pool| page.sample(&[&pool.name], pool.workers_busy.get())),
            Id::InFlight => pools.iter().for_each(|pool| page.sample(&[&pool.name], pool.in_flight.get())),
            Id::Restarts => pools.iter().for_each(|pool| page.labelled(&pool.name, &pool.restarts)),
            Id::Faults => pools.iter().for_each(|pool| page.labelled(&pool.name, &pool.faults)),
            Id::Resubmitted => pools.iter().for_each(|pool| page.labelled(&pool.name, &pool.resubmitted)),
            Id::Compared => pools.iter().for_each(|pool| page.labelled(&pool.name, &pool.compared)),
            Id::DemotedRoutes => pools.iter().for_each(|pool| page.sample(&[&pool.name], pool.demoted_routes.get())),
            Id::SnapshotEvents => {
                for pool in pools {
                    page.sample(&[&pool.name, "session_reset"], pool.sessions_reset.get());
                    page.sample(&[&pool.name, "worker_replaced"], pool.workers_unfit.get());
                }
            }
            Id::PoolMemory => pools.iter().for_each(|pool| page.sample(&[&pool.name], pool.memory.get())),
            Id::WorkersRelieved => {
                pools.iter().for_each(|pool| page.sample(&[&pool.name], pool.workers_relieved.get()))
            }
            Id::PhpDuration => pools.iter().for_each(|pool| page.histogram(&[&pool.name], &pool.php_time)),
            Id::Restores => pools.iter().for_each(|pool| page.histogram(&[&pool.name], &pool.restores)),
            Id::PoolProcessor => {
                for pool in pools {
                    page.sample(&[&pool.name], Seconds(pool.processor_time.us()));
                }
            }
            Id::PooledLimit | Id::PooledConnections | Id::PooledWaiting | Id::PooledWaitTime | Id::PooledEvents => {
                for pool in pools {
                    pool.connection_pools.lock().iter().for_each(|of| connection_pool(id, &pool.name, of, page));
                }
            }
        }
    }
}

impl Metrics {
    /// The samples of one request metric.
    fn of_routes(&self, id: Id, page: &mut Page) {
        let routes = self.requests.all();
        let classes = || Front::ALL.into_iter().flat_map(|front| (0..CLASSES.len()).map(move |class| (front, class)));
        if id == Id::Requests {
            for (front, class) in classes() {
                let all: u64 = routes.iter().map(|route| route.answered(front, class)).sum();
                page.sample(&[front.label(), CLASSES[class]], all);
            }
            return;
        }
        for route in &routes {
            let of = [&*route.site, &*route.route];
            match id {
                Id::SiteDuration => page.durations(&of, &route.durations(), &route.exemplars()),
                Id::SiteBytes => page.sample(&of, route.bytes()),
                _ => {
                    // Skips zero counts, which would be one line per site.
                    let seen = classes().map(|(front, class)| (front, class, route.answered(front, class)));
                    for (front, class, count) in seen.filter(|(.., count)| *count > 0) {
                        page.sample(&[of[0], of[1], front.label(), CLASSES[class]], count);
                    }
                }
            }
        }
    }

    fn upstream_samples(&self, id: Id, page: &mut Page) {
        for upstream in self.upstreams.all() {
            let of = [&*upstream.proxy, &*upstream.server];
            match id {
                Id::UpstreamUp => page.sample(&of, upstream.up.get()),
                Id::UpstreamActive => page.sample(&of, upstream.active.get()),
                Id::UpstreamRequests => page.sample(&of, upstream.requests.get()),
                _ => {
                    for (kind, count) in upstream.failures.all() {
                        page.sample(&[of[0], of[1], kind], count);
                    }
                }
            }
        }
    }

    fn both_budgets(&self) -> impl Iterator<Item = &Budget> {
        self.budgets().into_iter().flat_map(|budgets| [budgets.memory, budgets.spool])
    }
}

/// The samples of one connection pool metric.
fn connection_pool(id: Id, pool: &str, numbers: &ConnectionPool, page: &mut Page) {
    let of = [pool, &numbers.name];
    match id {
        Id::PooledLimit => page.sample(&of, numbers.limit),
        Id::PooledConnections => {
            page.sample(&[pool, &numbers.name, "idle"], numbers.idle);
            page.sample(&[pool, &numbers.name, "in_use"], numbers.in_use);
        }
        Id::PooledWaiting => page.sample(&of, numbers.waiting),
        Id::PooledWaitTime => page.sample(&of, Seconds(numbers.wait_us)),
        _ => {
            for (event, count) in [
                ("acquired", numbers.acquired),
                ("waited", numbers.waits),
                ("timed_out", numbers.timeouts),
                ("opened", numbers.opened),
                ("closed", numbers.closed),
                ("open_failed", numbers.open_failures),
                ("check_failed", numbers.check_failures),
                ("forgotten", numbers.forgotten),
                ("open_transaction", numbers.open_transactions),
            ] {
                page.sample(&[pool, &numbers.name, event], count);
            }
        }
    }
}
