//! `howdah upgrade`: another process, usually of a newer program, replaces this one without closing a port.
//!
//! The running server starts its successor and gives it copies of its listening sockets (`hand_over`). The successor
//! reads the settings, starts its pools, and reports when every pool without a fallback can serve (`take_over`).
//! Until then nothing has changed, and any failure ends only the successor. Then the successor accepts. The old server
//! stops accepting, closes each HTTP/1 and FastCGI connection after its next response, sends GOAWAY on the others, and
//! ends when all are closed or their time is over.
//!
//! The two talk over a socket pair that keeps message boundaries; the successor's end is its standard input.

mod hand_over;
mod in_progress;
mod messages;
mod successor;
mod take_over;

pub(crate) use hand_over::{HandOver, ReadySuccessor, Sockets};
pub(crate) use in_progress::UpgradeInProgress;
pub(crate) use take_over::{TakeOver, TakingOver};
