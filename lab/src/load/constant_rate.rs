//! The open-loop generator: requests are due at fixed times, whether or not the server keeps up.
//!
//! Each connection is a thread with blocking reads; it takes the next due time from a shared counter, sleeps until
//! then, and sends. Latency counts from the due time, so the wait behind a slow response is part of the result (the
//! correction for "coordinated omission", as in wrk2). A closed loop would silently send nothing in that time.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;

use super::client::Connection;
use super::{LoadReport, PERCENTILES, Shape, Target};
use crate::interrupt::Interrupt;
use crate::record::{Errors, Latency};
use crate::sample::proc_tree;
use crate::stats;

const TIMEOUT: Duration = Duration::from_secs(10);

#[derive(Debug, Default)]
struct ConnectionTotals {
    latencies_us: Vec<f64>,
    statuses: BTreeMap<u16, u64>,
    errors: Errors,
    bytes: u64,
}

/// Offers `rate` requests per second over `shape.connections` connections.
pub fn run(target: &Target, shape: Shape, rate: f64, interrupt: &Interrupt) -> Result<LoadReport> {
    let total = (rate * shape.seconds).ceil().max(1.0) as u64;
    let next = AtomicU64::new(0);
    let before = proc_tree::own_seconds();
    let start = Instant::now() + Duration::from_millis(20);
    let mut totals = ConnectionTotals::default();
    thread::scope(|scope| {
        let workers: Vec<_> = (0..shape.connections)
            .map(|_| scope.spawn(|| connection_loop(target, start, rate, total, &next, interrupt)))
            .collect();
        for worker in workers {
            if let Ok(part) = worker.join() {
                totals.add(part);
            }
        }
    });
    let elapsed = start.elapsed().as_secs_f64();
    interrupt.check()?;
    let requests = totals.latencies_us.len() as u64;
    let latency = summarise(&mut totals.latencies_us);
    totals.errors.status =
        totals.statuses.iter().filter(|(status, _)| !(200..300).contains(*status)).map(|(_, n)| n).sum();
    Ok(LoadReport {
        seconds: elapsed,
        requests,
        bytes: totals.bytes,
        errors: totals.errors,
        statuses: totals.statuses,
        latency,
        generator_cpu: proc_tree::own_seconds() - before,
        command: vec![
            "built-in constant rate".into(),
            format!("{rate:.1}/s"),
            format!("{} connections", shape.connections),
            format!("{} s", shape.seconds),
            target.url(),
        ],
    })
}

fn connection_loop(
    target: &Target,
    start: Instant,
    rate: f64,
    total: u64,
    next: &AtomicU64,
    interrupt: &Interrupt,
) -> ConnectionTotals {
    // The kernel may otherwise merge this thread's wake-ups with others that are up to 50 us away.
    let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
    let request = target.request();
    let mut totals = ConnectionTotals::default();
    let mut connection = None;
    // A server that has stopped responding must not block the lab for the whole backlog.
    let give_up = start + Duration::from_secs_f64(total as f64 / rate) + TIMEOUT;
    loop {
        let ticket = next.fetch_add(1, Ordering::Relaxed);
        if ticket >= total || interrupt.is_raised() {
            return totals;
        }
        let due = start + Duration::from_secs_f64(ticket as f64 / rate);
        thread::sleep(due.saturating_duration_since(Instant::now()));
        if Instant::now() > give_up {
            totals.errors.timeout += 1;
            continue;
        }
        let Ok(mut open) = connection.take().map_or_else(|| Connection::to(target, TIMEOUT), Ok) else {
            totals.errors.connect += 1;
            continue;
        };
        match open.exchange(&request, None) {
            Ok(head) => {
                totals.latencies_us.push(due.elapsed().as_secs_f64() * 1e6);
                *totals.statuses.entry(head.status).or_default() += 1;
                totals.bytes += head.wire_bytes;
                connection = (!head.closes).then_some(open);
            }
            Err(error) => match error.kind() {
                ErrorKind::WouldBlock | ErrorKind::TimedOut => totals.errors.timeout += 1,
                ErrorKind::BrokenPipe => totals.errors.write += 1,
                _ => totals.errors.read += 1,
            },
        }
    }
}

impl ConnectionTotals {
    fn add(&mut self, other: Self) {
        self.latencies_us.extend(other.latencies_us);
        self.bytes += other.bytes;
        for (status, count) in other.statuses {
            *self.statuses.entry(status).or_default() += count;
        }
        self.errors.connect += other.errors.connect;
        self.errors.read += other.errors.read;
        self.errors.write += other.errors.write;
        self.errors.timeout += other.errors.timeout;
    }
}

fn summarise(latencies_us: &mut [f64]) -> Latency {
    if latencies_us.is_empty() {
        return Latency::default();
    }
    let (mean, stdev) = stats::mean_and_deviation(latencies_us);
    latencies_us.sort_by(f64::total_cmp);
    Latency {
        mean,
        stdev,
        max: latencies_us[latencies_us.len() - 1],
        percentiles: PERCENTILES.iter().map(|p| (*p, stats::nearest_rank(latencies_us, *p))).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::TcpListener;

    /// Responds on any number of connections; every request whose number is a multiple of `slow_every` waits.
    fn server(status: &'static str, slow_every: u64, wait: Duration) -> std::net::SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let count = std::sync::Arc::new(AtomicU64::new(1));
        thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(mut stream) = stream else { return };
                let count = count.clone();
                thread::spawn(move || {
                    let mut request = [0; 1024];
                    while stream.read(&mut request).unwrap_or(0) > 0 {
                        if count.fetch_add(1, Ordering::Relaxed).is_multiple_of(slow_every) {
                            thread::sleep(wait);
                        }
                        let reply = format!("HTTP/1.1 {status}\r\nContent-Length: 2\r\n\r\nok");
                        if stream.write_all(reply.as_bytes()).is_err() {
                            return;
                        }
                    }
                });
            }
        });
        address
    }

    fn shape(connections: u32) -> Shape {
        Shape { connections, threads: 1, seconds: 0.5 }
    }

    fn target(address: std::net::SocketAddr) -> Target {
        Target { address, path: "/".into(), accept_encoding: "gzip".into(), tls: None }
    }

    #[test]
    fn a_stall_shows_in_every_request_that_was_due_meanwhile() {
        // One connection, 200 requests per second, one stall of 200 ms: 40 requests come due during the stall, so at
        // least 10 % of all latencies are long. Without the correction only one of 100 would be.
        let address = server("200 OK", 50, Duration::from_millis(200));
        let report = run(&target(address), shape(1), 200.0, &Interrupt::default()).unwrap();
        assert_eq!(report.requests, 100);
        assert!(report.latency.at(90.0).unwrap() > 50_000.0, "{:?}", report.latency);
    }

    #[test]
    fn statuses_are_counted_and_only_2xx_succeeds() {
        let address = server("302 Found", u64::MAX, Duration::ZERO);
        let report = run(&target(address), shape(2), 100.0, &Interrupt::default()).unwrap();
        assert_eq!(report.statuses.get(&302), Some(&50));
        assert_eq!(report.errors.status, 50);
    }

    #[test]
    fn no_listener_means_errors_and_no_replies() {
        let address = crate::systems::free_address().unwrap();
        let report = run(&target(address), shape(1), 50.0, &Interrupt::default()).unwrap();
        assert_eq!(report.requests, 0);
        assert_eq!(report.errors.connect, 25);
    }

    #[test]
    fn an_interrupt_ends_the_run() {
        let address = server("200 OK", u64::MAX, Duration::ZERO);
        let interrupt = Interrupt::default();
        interrupt.raise();
        assert!(run(&target(address), shape(1), 50.0, &interrupt).is_err());
    }
}
