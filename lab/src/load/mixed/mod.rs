//! The generator of mixed loads: all groups of clients in one thread around one `epoll`, with a histogram for each kind.
//!
//! One thread, because it shares the processors with the system under test: threads that wait for each other would cost more
//! than they bring, and the order in which things happened is known. It looks at every answer, status and body.
//!
//! A run has three parts. First all connections are opened and the load settles; then comes the measured time; after it the
//! load goes on until every request that was due in the measured time has its answer, or nobody wants to wait longer.
//! In an open loop latency counts from the moment a request was due, also when all connections were busy then.

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
    /// The load runs, and nothing is counted.
    pub settle: Duration,
    /// The measured time.
    pub measure: Duration,
    /// At most so long the load goes on for requests without an answer.
    pub tail: Duration,
}

/// A moment of a run, for whoever measures beside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    /// The measured time begins.
    Begin,
    End,
}

/// What the generator saw.
#[derive(Debug, Clone, Default)]
pub struct MixReport {
    /// Length of the measured time.
    pub seconds: f64,
    /// Answers of whatever status that came in it.
    pub answers: u64,
    /// Bytes that came in it.
    pub bytes: u64,
    /// Each kind of request.
    pub kinds: Vec<KindSample>,
    /// All right answers together.
    pub latency: Latency,
    /// Processor time of the generator in the measured time, in seconds.
    pub generator_cpu: f64,
    /// Connections that were opened in the measured time.
    pub opened: u64,
    /// How late the generator itself was with requests of an open loop that found a free connection.
    pub lateness: Latency,
}

/// Sends a load. `mark` is told when the measured time begins and ends, and must not take long.
pub fn run(load: &Prepared, phases: Phases, mark: &mut dyn FnMut(Mark), interrupt: &Interrupt) -> Result<MixReport> {
    let mut engine = engine::Engine::new(load)?;
    engine.open_all(interrupt)?;
    engine.go(phases, mark, interrupt)?;
    Ok(engine.report(phases))
}
