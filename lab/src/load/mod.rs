//! Sends load to a system. [`RealLoad`] chooses between three generators: `wrk` measures throughput in a closed loop
//! (each connection sends its next request when the response has arrived), the constant-rate generator of this crate
//! latency in an open loop, and [`tls`] sends load over TLS in a closed loop. All report the same [`LoadReport`]. [`ab`]
//! and [`vegeta`] replace them where a published comparison used those. [`mixed`] sends several kinds of requests at
//! once, in any rhythm, and reports each kind.

pub mod ab;
pub mod client;
pub mod constant_rate;
pub mod floor;
pub mod mixed;
pub mod program;
pub mod tls;
pub mod vegeta;
pub mod wrk;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::Result;

use crate::cases::{Connections, Protocol};
use crate::interrupt::Interrupt;
use crate::record::{Errors, Latency};

/// The requests to a system.
#[derive(Debug, Clone, PartialEq)]
pub struct Target {
    /// Address of the system.
    pub address: SocketAddr,
    /// Path and query.
    pub path: String,
    /// Value of `Accept-Encoding`.
    pub accept_encoding: String,
    /// Parameters of TLS, if it is used.
    pub tls: Option<Tls>,
}

/// Parameters of TLS.
#[derive(Debug, Clone, PartialEq)]
pub struct Tls {
    pub protocol: Protocol,
    pub connections: Connections,
    /// PEM file with the authority that signed the certificate.
    pub authority: PathBuf,
}

impl Target {
    /// Returns the request as bytes.
    pub fn request(&self) -> Vec<u8> {
        format!(
            "GET {} HTTP/1.1\r\nHost: {}\r\nAccept-Encoding: {}\r\n\r\n",
            self.path, self.address, self.accept_encoding
        )
        .into_bytes()
    }

    /// Returns the URL, for people and for generators.
    pub fn url(&self) -> String {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        format!("{scheme}://{}{}", self.address, self.path)
    }
}

/// Amount and duration of the load.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Shape {
    /// Connections, all persistent.
    pub connections: u32,
    /// Threads of the closed-loop generator.
    pub threads: u32,
    /// Length in seconds.
    pub seconds: f64,
}

/// A generator's results.
#[derive(Debug, Clone, Default)]
pub struct LoadReport {
    /// Measured length in seconds.
    pub seconds: f64,
    /// Replies with any status.
    pub requests: u64,
    /// Bytes received.
    pub bytes: u64,
    /// Failures.
    pub errors: Errors,
    /// Replies by status, where counted.
    pub statuses: BTreeMap<u16, u64>,
    pub latency: Latency,
    /// Processor time of the generator, in seconds.
    pub generator_cpu: f64,
    /// Command line, or a description of a built-in generator.
    pub command: Vec<String>,
}

/// The percentiles that all generators report.
pub const PERCENTILES: [f64; 9] = [50.0, 75.0, 90.0, 95.0, 97.5, 99.0, 99.9, 99.99, 100.0];

/// A source of load.
pub trait Load {
    /// Name and version.
    fn name(&self) -> String;

    /// Sends as many requests as the connections can carry.
    fn closed(&self, target: &Target, shape: Shape, interrupt: &Interrupt) -> Result<LoadReport>;

    /// Sends `rate` requests per second; latency counts from the time each request was due.
    fn constant(&self, target: &Target, shape: Shape, rate: f64, interrupt: &Interrupt) -> Result<LoadReport>;
}

/// The generators for real measurements.
#[derive(Debug)]
pub struct RealLoad {
    wrk: wrk::Wrk,
}

impl RealLoad {
    /// Finds the generators; the error names a missing one.
    pub fn find() -> Result<Self> {
        Ok(Self { wrk: wrk::Wrk::find()? })
    }
}

impl Load for RealLoad {
    fn name(&self) -> String {
        self.wrk.version.clone()
    }

    fn closed(&self, target: &Target, shape: Shape, interrupt: &Interrupt) -> Result<LoadReport> {
        match &target.tls {
            None => self.wrk.run(target, shape, interrupt),
            Some(tls) => tls::run(target, tls, shape, interrupt),
        }
    }

    fn constant(&self, target: &Target, shape: Shape, rate: f64, interrupt: &Interrupt) -> Result<LoadReport> {
        constant_rate::run(target, shape, rate, interrupt)
    }
}
