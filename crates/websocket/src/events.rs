//! The events of a connection, and the application that handles them.

use crate::close::Close;
use crate::connections::Link;
use bytes::Bytes;
use howdah_live::Update;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

/// An event for the application.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A message, and `true` if it is binary.
    Message(Bytes, bool),
    /// The connection has ended, with this code and reason.
    Close(u16, Bytes),
}

/// The outcome of an event: an HTTP status.
pub type HandlerFuture = Pin<Box<dyn Future<Output = u16> + Send>>;

/// Output of an application to a connection that it holds itself.
#[derive(Debug)]
pub enum Outgoing {
    Message(Update),
    /// The close; nothing follows.
    Close(Close),
    /// The application ends soon: the client must connect again.
    Reconnect,
}

/// Handles the events of a connection, one after the other.
pub trait Events: Send + Sync {
    /// Handles an event.
    fn handle(&self, link: &Link, event: Event) -> HandlerFuture;

    /// The next output of an application that holds the connection itself. Called once everything before is written, so
    /// a slow client suspends the application.
    fn poll_outgoing(&mut self, _: &mut Context<'_>) -> Poll<Outgoing> {
        Poll::Pending
    }

    /// Called at the connection's end. Returns the time limit for handling what is left; `None` for no limit.
    fn teardown_timeout(&self) -> Option<Duration> {
        None
    }
}
