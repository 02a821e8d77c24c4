//! WebSocket (RFC 6455) with permessage-deflate (RFC 7692).
//!
//! `frames` parses a client's input and `message` encodes its output, both without I/O; `deflate` compresses;
//! `handshake` validates the opening request. `session` handles one client, and `connections` finds open connections by
//! id; channels belong to the site's hub (`howdah_live`). An application handles events through the trait in `events`.

mod close;
mod connections;
mod deflate;
mod ending;
mod events;
mod frames;
#[cfg(test)]
mod frames_tests;
#[cfg(any(test, feature = "fuzz"))]
pub mod fuzz;
mod handshake;
mod message;
mod session;

pub use close::Close;
pub use connections::{Connections, Link, Registered, new_id};
pub use deflate::Deflate;
pub use events::{Event, Events, HandlerFuture, Outgoing};
pub use frames::{Incoming, Receiver};
pub use handshake::{Accepted, Rejected, negotiate, same_origin};
pub use message::message;
pub use session::Session;

/// Maximum size in bytes of a message from a client, and of one from an application that holds the connection itself.
pub const MAX_MESSAGE: usize = 1 << 20;
