//! The front as a client sees it: a real listener and raw sockets, with a stand-in for PHP.
// A panic is how a test fails; settings are changed one by one so that each line says what a test needs.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::field_reassign_with_default)]

mod hostile;
mod http1;
mod http2;
mod limits;
mod log;
mod php;
mod shutdown;
mod support;
