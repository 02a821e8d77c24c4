//! WebSocket (RFC 6455) with permessage-deflate (RFC 7692).
//!
//! `frames` reads what a client sends and `message` makes what it gets, both without I/O; `deflate` compresses; `handshake`
//! judges the request that asks for a connection. `session` talks to one client in its connection's task, and
//! `connections` finds the open ones by their ids; channels are those of the site's hub (`howdah_live`). An application gets events by the trait in `events`.

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
pub use events::{Event, Events, Handled};
pub use frames::{Incoming, Receiver};
pub use handshake::{Accepted, Rejected, judge, same_origin};
pub use message::message;
pub use session::Session;

/// Maximum size of a message, in either direction, in bytes.
pub const MAX_MESSAGE: usize = 1 << 20;
