//! The samples of each metric, from the cells of a server.

use super::format::Format;
use super::page::Page;
use super::sample::{Number, Seconds};
use super::table::{Id, TABLE};
use super::{Metrics, PoolMetrics};
use crate::connection_pool::ConnectionPool;
use crate::exemplar::Exemplar;
use crate::requests::{CLASSES, Front};
use howdah_budget::Budget;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

impl Metrics {
    /// All metrics in one of the formats that collectors read.
    #[must_use]
    pub fn render(&self, format: Format) -> Vec<u8> {
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
            Id::BytesSent => page.sample(&[], self.bytes_sent()),
            Id::ConnectionsOpen => page.sample(&[], self.connections_open.get()),
            Id::ConnectionsAccepted => page.sample(&[], self.connections_accepted.get()),
            Id::ConnectionsDisplaced => page.sample(&[], self.connections_displaced.get()),
            Id::ConnectionsUpgraded => page.sample(&[], self.connections_upgraded.get()),
            Id::UpstreamUp
            | Id::UpstreamActive
            | Id::UpstreamRequests
            | Id::UpstreamConnections
            | Id::UpstreamFailures => self.upstream_samples(id, page),
            Id::TlsHandshakes => {
                let resumed = self.tls_resumed.get();
                page.sample(&["new"], self.tls_handshakes.get().saturating_sub(resumed));
                page.sample(&["resumed"], resumed);
            }
            Id::TlsHandshakesFailed => page.sample(&[], self.tls_handshakes_failed.get()),
            Id::BudgetUsed => self.budget(page, Budget::used),
            Id::BudgetLimit => self.budget(page, Budget::limit),
            Id::BudgetRefused => self.budget(page, Budget::refused),
            Id::Spans => {
                page.sample(&["sent"], self.spans_sent.get());
                page.sample(&["failed"], self.spans_failed.get());
                page.sample(&["dropped"], self.spans_dropped.get());
            }
            Id::ErrorLogDropped => page.sample(&[], self.error_log_dropped()),
            Id::Processor => page.sample(&[], Seconds(self.processor_time.us())),
            Id::CompressionIn => page.sample(&[], self.compression_in.get()),
            Id::CompressionOut => page.sample(&[], self.compression_out.get()),
            Id::CompressionCacheHits => page.sample(&[], self.compression_cache_hits.get()),
            Id::CompressionCacheMisses => page.sample(&[], self.compression_cache_misses.get()),
            Id::MemoryPressure => page.sample(&[], self.memory_pressure.get()),
            Id::AccessLogDropped => page.sample(&[], self.access_log_dropped.get()),
            Id::SlowLogDropped => page.sample(&[], self.slow_log_dropped.get()),
            Id::CertificateExpiry => {
                for (name, until) in &self.certificates.lock().expiry {
                    page.sample(&[name], *until);
                }
            }
            Id::AcmeOrders => page.sample(&[], self.certificates.lock().orders),
            Id::AcmeFailures => page.sample(&[], self.certificates.lock().failures),
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
            Id::Replays => pools.iter().for_each(|pool| page.sample(&[&pool.name], pool.replays.get())),
            Id::Resubmitted => pools.iter().for_each(|pool| page.labelled(&pool.name, &pool.resubmitted)),
            Id::Compared => pools.iter().for_each(|pool| page.labelled(&pool.name, &pool.compared)),
            Id::DemotedRoutes => pools.iter().for_each(|pool| page.sample(&[&pool.name], pool.demoted_routes.get())),
            Id::SessionsReset => pools.iter().for_each(|pool| page.sample(&[&pool.name], pool.sessions_reset.get())),
            Id::PoolMemory => pools.iter().for_each(|pool| page.sample(&[&pool.name], pool.memory.get())),
            Id::WorkersRelieved => {
                pools.iter().for_each(|pool| page.sample(&[&pool.name], pool.workers_relieved.get()))
            }
            Id::WorkersUnfit => pools.iter().for_each(|pool| page.sample(&[&pool.name], pool.workers_unfit.get())),
            Id::PhpDuration => pools.iter().for_each(|pool| page.histogram(&[&pool.name], &pool.php_time)),
            Id::Restores => pools.iter().for_each(|pool| page.histogram(&[&pool.name], &pool.restores)),
            Id::PhpTime => {
                for pool in pools {
                    page.sample(&[&pool.name], Seconds(pool.php_time.snapshot().sum_us));
                }
            }
            Id::PoolProcessor => {
                for pool in pools {
                    page.sample(&[&pool.name], Seconds(pool.processor_time.us()));
                }
            }
            Id::PooledLimit => connections(page, pools, |numbers| numbers.limit),
            Id::PooledOpen => connections(page, pools, |numbers| numbers.open),
            Id::PooledIdle => connections(page, pools, |numbers| numbers.idle),
            Id::PooledInUse => connections(page, pools, |numbers| numbers.in_use),
            Id::PooledWaiting => connections(page, pools, |numbers| numbers.waiting),
            Id::PooledWaitMax => connections(page, pools, |numbers| Seconds(numbers.wait_max_us)),
            Id::PooledAcquired => connections(page, pools, |numbers| numbers.acquired),
            Id::PooledWaits => connections(page, pools, |numbers| numbers.waits),
            Id::PooledWaitTime => connections(page, pools, |numbers| Seconds(numbers.wait_us)),
            Id::PooledTimeouts => connections(page, pools, |numbers| numbers.timeouts),
            Id::PooledOpened => connections(page, pools, |numbers| numbers.opened),
            Id::PooledClosed => connections(page, pools, |numbers| numbers.closed),
            Id::PooledOpenFailures => connections(page, pools, |numbers| numbers.open_failures),
            Id::PooledCheckFailures => connections(page, pools, |numbers| numbers.check_failures),
            Id::PooledForgotten => connections(page, pools, |numbers| numbers.forgotten),
            Id::PooledTransactions => connections(page, pools, |numbers| numbers.open_transactions),
        }
    }
}

impl Metrics {
    /// The samples of one metric of requests.
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
                    // What has never happened needs no line for each site.
                    let seen = classes().map(|(front, class)| (front, class, route.answered(front, class)));
                    for (front, class, count) in seen.filter(|(.., count)| *count > 0) {
                        page.sample(&[of[0], of[1], front.label(), CLASSES[class]], count);
                    }
                }
            }
        }
    }

    /// The samples of one metric of servers that requests are handed on to.
    fn upstream_samples(&self, id: Id, page: &mut Page) {
        for upstream in self.upstreams.all() {
            let of = [&*upstream.proxy, &*upstream.server];
            match id {
                Id::UpstreamUp => page.sample(&of, upstream.up.get()),
                Id::UpstreamActive => page.sample(&of, upstream.active.get()),
                Id::UpstreamRequests => page.sample(&of, upstream.requests.get()),
                Id::UpstreamConnections => page.sample(&of, upstream.connections.get()),
                _ => {
                    for (kind, count) in upstream.failures.all() {
                        page.sample(&[of[0], of[1], kind], count);
                    }
                }
            }
        }
    }

    /// One number of each budget.
    fn budget(&self, page: &mut Page, number: impl Fn(&Budget) -> u64) {
        for budget in self.budgets().iter().flat_map(|budgets| [budgets.memory, budgets.spool]) {
            page.sample(&[budget.kind().name()], number(budget));
        }
    }
}

/// One number of each connection pool.
fn connections<V: Into<Number>>(page: &mut Page, pools: &[Arc<PoolMetrics>], number: impl Fn(&ConnectionPool) -> V) {
    for pool in pools {
        for connections in &*pool.connection_pools.lock() {
            page.sample(&[&pool.name, &connections.name], number(connections));
        }
    }
}
