//! HTTP/3 through the public interface: a front with a test handler, and clients over this machine's network. This
//! covers everything up to the handler, with clients that obey the protocol (`h3`) and with clients that write
//! arbitrary bytes.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod connections;
mod hostile;
mod line;
mod requests;
mod support;
