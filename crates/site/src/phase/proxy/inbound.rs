//! A request body that is streamed to an upstream server: enforces the size limit and the client's timeout.

use crate::site::Site;
use bytes::Bytes;
use howdah_protocol::{BodyError, BodySource, RequestBody};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::{Instant, Sleep, sleep_until};

/// The client's error in sending its body.
#[derive(Debug)]
pub(super) enum BodyFault {
    TooLarge,
    TooSlow,
    Broken(String),
}

/// Records the error for the responder.
pub(super) type BodyFaultSlot = Arc<Mutex<Option<BodyFault>>>;

/// A body that is watched for errors.
#[derive(Debug)]
pub(super) struct Inbound {
    body: RequestBody,
    left: u64,
    pause: Duration,
    since: Instant,
    timer: Option<Pin<Box<Sleep>>>,
    trouble: BodyFaultSlot,
}

impl Inbound {
    /// Wraps a body. `left` is the maximum number of bytes.
    pub(super) fn watch(body: RequestBody, site: &Site, left: u64) -> (RequestBody, BodyFaultSlot) {
        let trouble = BodyFaultSlot::default();
        if body.is_none() {
            return (body, trouble);
        }
        let announced = body.announced();
        let pause = site.settings.http.client_timeout;
        let watched = Self { body, left, pause, since: Instant::now(), timer: None, trouble: trouble.clone() };
        (RequestBody::new(Box::new(watched), announced), trouble)
    }

    fn fail(&mut self, trouble: BodyFault) -> BodyError {
        let error = format!("{trouble:?}").into();
        *self.trouble.lock().unwrap_or_else(PoisonError::into_inner) = Some(trouble);
        error
    }

    /// Ready when the client has been silent for too long.
    fn poll_pause(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            let end = self.since + self.pause;
            let timer = self.timer.get_or_insert_with(|| Box::pin(sleep_until(end)));
            if timer.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
            if Instant::now() >= end {
                return Poll::Ready(());
            }
            timer.as_mut().reset(end);
        }
    }
}

impl BodySource for Inbound {
    fn poll_part(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, BodyError>>> {
        match self.body.poll_part(cx) {
            Poll::Ready(Some(Ok(data))) => {
                self.since = Instant::now();
                match self.left.checked_sub(data.len() as u64) {
                    Some(left) => self.left = left,
                    None => return Poll::Ready(Some(Err(self.fail(BodyFault::TooLarge)))),
                }
                Poll::Ready(Some(Ok(data)))
            }
            Poll::Ready(Some(Err(error))) => Poll::Ready(Some(Err(self.fail(BodyFault::Broken(error.to_string()))))),
            Poll::Ready(None) => Poll::Ready(None),
            Poll::Pending => match self.poll_pause(cx) {
                Poll::Ready(()) => Poll::Ready(Some(Err(self.fail(BodyFault::TooSlow)))),
                Poll::Pending => Poll::Pending,
            },
        }
    }
}
