//! Informational responses of one request in HTTP/2 and HTTP/3. Any thread may send them; they go to the request's
//! stream, and are dropped once the response has begun.

use crate::connection::Connection;
use crate::informational::{self, Allowance, SendResult, Sink};
use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A stream that informational responses are written to.
pub(crate) trait InformationalWriter: Send {
    fn write_informational(&mut self, status: StatusCode, fields: HeaderMap);
}

/// A request's stream, for senders of informational responses.
pub(crate) struct StreamSink<S: InformationalWriter> {
    connection: Arc<Connection>,
    state: Mutex<State<S>>,
}

pub(crate) struct State<S> {
    pub(crate) stream: S,
    /// `false` from the moment when the response begins.
    pub(crate) open: bool,
    allowance: Allowance,
}

impl<S: InformationalWriter> StreamSink<S> {
    pub(crate) fn new(connection: Arc<Connection>, stream: S) -> Self {
        Self { connection, state: Mutex::new(State { stream, open: true, allowance: Allowance::default() }) }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State<S>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<S: InformationalWriter> std::fmt::Debug for StreamSink<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("StreamSink")
    }
}

impl<S: InformationalWriter> Drop for StreamSink<S> {
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        state.allowance.give_back(self.connection.informational.used());
    }
}

impl<S: InformationalWriter> Sink for StreamSink<S> {
    fn send(&self, _: u64, status: u16, headers: &[(Bytes, Bytes)]) -> SendResult {
        let Some(status) = informational::sendable(status) else { return SendResult::Done };
        let Some((fields, bytes)) = informational::fields(headers) else { return SendResult::Done };
        let mut state = self.lock();
        if !state.open {
            return SendResult::Done;
        }
        let taken = state.allowance.take(self.connection.informational.used(), bytes);
        if taken == SendResult::Done {
            state.stream.write_informational(status, fields);
        }
        taken
    }
}
