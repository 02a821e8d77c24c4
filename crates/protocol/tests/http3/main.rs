//! HTTP/3 through the public interface: a front with a test handler, and clients over the network of this machine. The
//! rest is tested elsewhere; this covers everything up to the handler, with clients that follow the rules (`h3`) and
//! with some that write their own bytes.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod connections;
mod hostile;
mod line;
mod requests;
mod support;
