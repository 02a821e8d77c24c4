//! The generator of load over TLS: a closed loop, like `wrk`, over HTTP/1.1, HTTP/2 or HTTP/3.
//!
//! `wrk` can neither resume sessions nor speak anything but HTTP/1.1, so this generator sends all load over TLS. Each
//! thread has a part of the clients; a client has one connection with one request at a time. All clients use TLS 1.3
//! with the same group and cipher, the first choices of browsers, so that every system has the same cryptographic work.
//! Certificates are checked when responses are checked, before and after the load, and not during it, because that
//! would be the client's work.

mod clients;
mod http1;
mod link;
mod session;

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use super::mixed::tally::Latencies;
use super::{LoadReport, Shape, Target, Tls};
use crate::cases::Connections;
use crate::interrupt::Interrupt;
use crate::record::Errors;
use crate::sample::proc_tree;

pub use session::{Checked, checked};

/// Maximum time that a client waits for its response.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(10);

/// A response, read to its end.
#[derive(Debug)]
struct Response {
    status: u16,
    /// Size on the wire of HTTP/1.1, or an approximation of it.
    bytes: u64,
    /// `true` if the connection closes with it.
    closes: bool,
}

/// Results of some clients.
#[derive(Debug)]
struct ClientTotals {
    latencies: Latencies,
    responses: u64,
    bytes: u64,
    errors: Errors,
    /// Handshakes of clients that have connected before, and those of them that resumed their session.
    again: u64,
    resumed: u64,
}

impl ClientTotals {
    fn new() -> Result<Self> {
        let latencies = Latencies::new()?;
        Ok(Self { latencies, responses: 0, bytes: 0, errors: Errors::default(), again: 0, resumed: 0 })
    }

    fn add(&mut self, other: &Self) {
        self.latencies.merge(&other.latencies);
        self.responses += other.responses;
        self.bytes += other.bytes;
        self.errors.connect += other.errors.connect;
        self.errors.read += other.errors.read;
        self.errors.timeout += other.errors.timeout;
        self.errors.status += other.errors.status;
        self.again += other.again;
        self.resumed += other.resumed;
    }
}

/// Sends as many requests as the connections can carry.
pub fn run(target: &Target, tls: &Tls, shape: Shape, interrupt: &Interrupt) -> Result<LoadReport> {
    let threads = shape.threads.clamp(1, shape.connections.max(1));
    let before = proc_tree::own_seconds();
    let start = Instant::now();
    let until = start + Duration::from_secs_f64(shape.seconds);
    let mut totals = ClientTotals::new()?;
    thread::scope(|scope| {
        let parts: Vec<_> = (0..threads)
            .map(|thread| {
                let clients = shape.connections / threads + u32::from(thread < shape.connections % threads);
                scope.spawn(move || clients::run(target, tls, clients, until, interrupt))
            })
            .collect();
        for part in parts {
            totals.add(&part.join().map_err(|_| anyhow::anyhow!("a thread of the generator ended"))??);
        }
        Ok::<_, anyhow::Error>(())
    })?;
    let seconds = start.elapsed().as_secs_f64();
    interrupt.check()?;
    if totals.responses == 0 {
        bail!("no response arrived: {:?}", totals.errors);
    }
    check_handshakes(tls.connections, &totals)?;
    Ok(LoadReport {
        seconds,
        requests: totals.responses,
        bytes: totals.bytes,
        errors: totals.errors,
        latency: totals.latencies.summary(),
        generator_cpu: proc_tree::own_seconds() - before,
        command: vec![
            "built-in closed loop over TLS".into(),
            format!("{:?}", tls.connections),
            tls.protocol.description().into(),
            format!("{threads} threads"),
            format!("{} connections", shape.connections),
            format!("{} s", shape.seconds),
            target.url(),
        ],
        ..LoadReport::default()
    })
}

/// Rejects a run whose handshakes were of the wrong kind.
fn check_handshakes(connections: Connections, totals: &ClientTotals) -> Result<()> {
    let share = totals.resumed as f64 / (totals.again as f64).max(1.0);
    match connections {
        Connections::New if totals.resumed > 0 => bail!("{} handshakes were not full ones", totals.resumed),
        Connections::Resumed if share < 0.95 => bail!(
            "the system resumed {} of {} sessions, so this is no measurement of resumed handshakes",
            totals.resumed,
            totals.again
        ),
        _ => Ok(()),
    }
}

#[cfg(test)]
#[path = "generator_tests.rs"]
mod tests;
