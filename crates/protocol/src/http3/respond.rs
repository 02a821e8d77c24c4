//! Informational responses of an HTTP/3 request. Other threads queue them here; the request's task, the only writer of
//! the stream, sends them before the response.

use super::head;
use crate::stream_sink::{InformationalWriter, StreamSink};
use bytes::{Bytes, BytesMut};
use http::{HeaderMap, StatusCode};
use std::task::{Context, Waker};

/// Informational responses that wait for the request's task.
#[derive(Default)]
pub(super) struct Waiting {
    bytes: BytesMut,
    task: Option<Waker>,
}

pub(super) type Respond = StreamSink<Waiting>;

impl InformationalWriter for Waiting {
    fn write_informational(&mut self, status: StatusCode, fields: HeaderMap) {
        head::put_response(&mut self.bytes, status, &fields);
        if let Some(task) = &self.task {
            task.wake_by_ref();
        }
    }
}

impl Respond {
    /// Refills `written` with queued responses once it has been sent. `None` if nothing is queued; the task is then
    /// woken by the next one.
    pub(super) fn take<'a>(&self, written: &'a mut Bytes, cx: &Context<'_>) -> Option<&'a mut Bytes> {
        if written.is_empty() {
            let mut state = self.lock();
            let waiting = &mut state.stream;
            if waiting.bytes.is_empty() {
                if !waiting.task.as_ref().is_some_and(|task| task.will_wake(cx.waker())) {
                    waiting.task = Some(cx.waker().clone());
                }
                return None;
            }
            *written = waiting.bytes.split().freeze();
        }
        Some(written)
    }

    /// Closes the queue; returns the waiting data.
    pub(super) fn close(&self) -> Bytes {
        let mut state = self.lock();
        state.open = false;
        state.stream.bytes.split().freeze()
    }
}
