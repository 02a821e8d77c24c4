//! The end of a connection, whatever the cause: messages already read are handled, up to the first failure, then the
//! close event. Both share one time limit.

use crate::close::Close;
use crate::connections::Registered;
use crate::events::{Event, Events, HandlerFuture};
use bytes::Bytes;
use std::collections::VecDeque;
use std::io;

/// The close for a handler's status; `None` if it reports success.
pub(crate) fn failure(status: u16) -> Option<Close> {
    match status {
        0..400 => None,
        413 => Some(Close::of(Close::MESSAGE_TOO_BIG, "the message is too large")),
        400..500 => Some(Close::of(Close::POLICY_VIOLATION, "the application refused the message")),
        503 => Some(Close::of(Close::TRY_AGAIN_LATER, "the application is overloaded")),
        _ => Some(Close::of(Close::INTERNAL_ERROR, "the application failed")),
    }
}

/// Work left at a connection's end: messages already read, then the close event.
pub(crate) struct Teardown {
    pub(crate) registered: Registered,
    pub(crate) events: Box<dyn Events>,
    pub(crate) handling: Option<HandlerFuture>,
    pub(crate) inbox: VecDeque<(Bytes, bool)>,
    pub(crate) close: (u16, Bytes),
    /// Number of messages received.
    pub(crate) messages: u64,
}

impl Teardown {
    /// State of a new connection, with the close event for one that ends without a close frame.
    pub(crate) fn new(registered: Registered, events: Box<dyn Events>) -> Self {
        let close = (Close::ABNORMAL, Bytes::new());
        Self { registered, events, handling: None, inbox: VecDeque::new(), close, messages: 0 }
    }

    pub(crate) fn begin(&mut self, event: Event) {
        self.handling = Some(self.events.handle(&self.registered.link, event));
    }

    pub(crate) async fn finish(self, error: Option<io::Error>) {
        let Self { registered, events, handling, inbox, close: (code, reason), messages } = self;
        let link = registered.link.clone();
        drop(registered);
        let (id, error) = (link.id(), error.map(tracing::field::display));
        let text = String::from_utf8_lossy(&reason);
        tracing::debug!(target: "howdah::websocket", id, code, reason = &*text, messages, error, "connection closed");
        let limit = events.teardown_timeout();
        let rest = async {
            if let Some(handling) = handling {
                handling.await;
            }
            for (data, binary) in inbox {
                if failure(events.handle(&link, Event::Message(data, binary)).await).is_some() {
                    break;
                }
            }
            events.handle(&link, Event::Close(code, reason.clone())).await;
        };
        match limit {
            Some(limit) => _ = tokio::time::timeout(limit, rest).await,
            None => rest.await,
        }
    }
}

/// The end of a connection, which also runs if the connection's task is dropped; `None` once it has begun.
pub(crate) struct TeardownGuard(pub(crate) Option<Teardown>);

impl Drop for TeardownGuard {
    fn drop(&mut self) {
        if let (Some(end), Ok(runtime)) = (self.0.take(), tokio::runtime::Handle::try_current()) {
            runtime.spawn(end.finish(None));
        }
    }
}
