//! The events of a connection, and the application that handles them.

use crate::connections::Link;
use bytes::Bytes;
use std::pin::Pin;

/// An event for the application.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A message, and `true` if it is binary.
    Message(Bytes, bool),
    /// The connection has ended, with this code and reason.
    Close(u16, Bytes),
}

/// The outcome of an event: a status of HTTP.
pub type Handled = Pin<Box<dyn Future<Output = u16> + Send>>;

/// Handles the events of connections. Those of one connection come one after the other.
pub trait Events: Send + Sync {
    /// Handles an event.
    fn handle(&self, link: &Link, event: Event) -> Handled;
}
