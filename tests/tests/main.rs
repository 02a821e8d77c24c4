//! Black-box scenarios, in folders by area. One binary, so that linking happens once.
//!
//! A test's path contains its area, and the mode if there is only one: `cargo test --test scenarios snapshot::`.

// Everything here is a test or a test helper.
#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "async/mod.rs"]
mod async_mode;
mod difference;
mod doctor;
mod examples;
mod guides;
mod server;
mod snapshot;
mod worker;
