//! The generator of mixed loads: all groups of clients in one thread around one `epoll`, with a histogram for each
//! kind.
//!
//! One thread, because it shares the processors with the system under test: synchronizing threads would cost more than
//! they gain, and the order of events is known. It checks every response, status and body.
//!
//! A run has three parts. First all connections are opened and the load settles; then comes the measured period; after
//! it, the load continues until every request that was due in the measured period has its response or has timed out. In
//! an open loop, latency counts from the time a request was due, also when all connections were busy then.

pub mod connection;
mod engine;
pub mod random;
pub mod reply;
pub mod requests;
pub mod tally;

use std::time::Duration;

use anyhow::Result;

use crate::interrupt::Interrupt;
use crate::record::{KindSample, Latency};
use requests::Prepared;

/// The parts of a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Phases {
    /// Duration of load that is not counted.
    pub settle: Duration,
    /// The measured period.
    pub measure: Duration,
    /// Maximum time that the load continues for requests without a response.
    pub tail: Duration,
}

/// An event in a run, for a caller that takes other measurements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    /// The measured period begins.
    Begin,
    End,
}

/// The generator's results.
#[derive(Debug, Clone, Default)]
pub struct MixReport {
    /// Length of the measured period.
    pub seconds: f64,
    /// Responses with any status in that period.
    pub responses: u64,
    /// Bytes received in that period.
    pub bytes: u64,
    /// Each kind of request.
    pub kinds: Vec<KindSample>,
    /// All correct responses together.
    pub latency: Latency,
    /// Processor time of the generator in the measured period, in seconds.
    pub generator_cpu: f64,
    /// Connections that were opened in the measured period.
    pub opened: u64,
    /// Delay of the generator itself with requests of an open loop that found an idle connection.
    pub lateness: Latency,
}

/// Sends a load. Calls `mark` when the measured period begins and ends; it must not take long.
pub fn run(load: &Prepared, phases: Phases, mark: &mut dyn FnMut(Mark), interrupt: &Interrupt) -> Result<MixReport> {
    let mut engine = engine::Engine::new(load)?;
    engine.open_all(interrupt)?;
    engine.run(phases, mark, interrupt)?;
    Ok(engine.report(phases))
}
