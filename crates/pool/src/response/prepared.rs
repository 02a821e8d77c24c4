//! Responses without a worker, for tests and fuzz targets of code that receives responses.

use crate::response::parts::Limits;
use crate::response::sink::Response;
use crate::response::sink::{self, Sink};
use crate::response::stats::RequestStats;
use bytes::Bytes;
use howdah_budget::Budgets;
use std::sync::Arc;

/// The writing side of such a response.
#[derive(Debug, Clone)]
pub struct ResponseWriter(Sink);

impl Response {
    /// Creates a response with this head; the writer supplies its body.
    pub fn prepared(status: u16, headers: Vec<(Bytes, Bytes)>) -> (ResponseWriter, Self) {
        Self::prepared_by(status, headers, RequestStats::default())
    }

    /// Like `prepared`, with stats.
    pub fn prepared_by(status: u16, headers: Vec<(Bytes, Bytes)>, stats: RequestStats) -> (ResponseWriter, Self) {
        let limits =
            Limits { memory: 1 << 20, budgets: Budgets::new(1 << 30, 1 << 30), temp_dir: std::env::temp_dir() };
        let (sink, body) = sink::new(Arc::new(limits), stats, None);
        (ResponseWriter(sink), Self { status, headers, route: None, body })
    }
}

impl ResponseWriter {
    /// Adds a part of the body.
    pub fn push(&self, data: Bytes, flush: bool) {
        self.0.push(data, flush);
        self.0.wake();
    }

    /// Completes the body.
    pub fn end(&self) {
        self.0.end();
        self.0.wake();
    }

    /// `true` if the response's body was dropped.
    pub fn is_gone(&self) -> bool {
        self.0.is_gone()
    }
}
