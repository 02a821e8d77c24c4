//! `howdah upgrade`: another process, of a newer program as a rule, takes this one's place without a closed port.
//!
//! The running server starts its successor and gives it copies of its listening sockets (`hand_over`). The successor reads the
//! settings, starts its pools, and says so when every pool can serve (`take_over`). Until then nothing has changed, and whatever
//! goes wrong ends the successor alone. Then it accepts, the old server accepts no more and lets its connections go with their
//! next response, and ends when they have gone or their time is over.
//!
//! Both talk over a pair of sockets that keep message boundaries, of which the successor finds its end as its standard input.

mod hand_over;
mod messages;
mod successor;
mod take_over;
mod under_way;

pub(crate) use hand_over::{HandOver, Replaced, Sockets};
pub(crate) use take_over::{TakeOver, TakingOver};
pub(crate) use under_way::UnderWay;
