//! HTTP/3 through the public interface: a front with a handler of its own, and clients over the network of this machine.
//! What is behind the handler is tried elsewhere; here it is everything up to it, with clients that follow the rules (`h3`)
//! and with some that write their own bytes.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod connections;
mod hostile;
mod line;
mod requests;
mod support;
