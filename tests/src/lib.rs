//! Harness of Howdah's black-box tests: starts a real server with its own directory, talks to it byte by byte, stops it
//! and checks what it leaves behind. The scenarios are in `tests/`, each named after a behaviour. Those of `scenario!`
//! and `script_scenario!` also run on nginx with PHP-FPM, which validates their expectations.

#![forbid(unsafe_code)]
// A test helper fails a test by panicking; a `# Panics` section on each would say nothing.
#![allow(clippy::missing_panics_doc)]

pub mod apache;
pub mod at_once;
pub mod client;
pub mod collector;
pub mod compare;
mod extensions;
pub mod fpm;
pub mod fronts;
pub mod gate;
pub mod h2;
pub mod howdah;
pub mod modes;
pub mod nginx;
pub mod pebble;
mod place;
pub mod process;
pub mod prometheus;
pub mod reference;
pub mod relay;
mod report;
pub mod request;
pub mod response;
pub mod scripts;
pub mod servers;
pub mod service;
pub mod setup;
pub mod site;
pub mod tls;
pub mod upstream;
pub mod versions;
pub mod websocket;

pub use client::{Conn, Target};
pub use collector::Collector;
pub use modes::{Backend, Mode};
pub use prometheus::Prometheus;
pub use request::{Part, Request, multipart};
pub use response::{Response, clip};
pub use setup::Setup;
pub use site::Site;
pub use upstream::Upstream;
pub use versions::{Version, server_protocol};

use howdah_skip::skip;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::Duration;

/// Runs one scenario on one server: starts the server, runs the body, stops the server and checks what it leaves
/// behind. Does nothing for modes that this run of the tests excludes (`HOWDAH_TEST_MODES`), and for scenarios about
/// memory under the address sanitizer; records a skip for a requirement that the machine or the HTTP version lacks.
pub fn run(backend: impl Into<Backend>, setup: impl FnOnce(Setup) -> Setup, body: impl FnOnce(&mut Site)) {
    report::failures_at_once();
    let backend = backend.into();
    if !backend.mode().is_none_or(Mode::is_selected) {
        return;
    }
    let setup = setup(Setup::default());
    if setup.measures_memory && std::env::var_os("HOWDAH_TEST_SANITIZED").is_some() {
        return;
    }
    if let Some((lack, why)) = &setup.lack {
        skip!(lack, "{why}");
    }
    if let Some(why) = setup.only_in_http1(backend) {
        skip!("http1", "{why}");
    }
    let mut site = Site::start(backend, &setup);
    let outcome = catch_unwind(AssertUnwindSafe(|| body(&mut site)));
    match outcome {
        Ok(()) => site.finish(),
        Err(panic) => {
            eprintln!("log of the server:\n{}", site.log());
            site.abandon();
            resume_unwind(panic)
        }
    }
}

/// Declares that the scenario may take longer than a minute, the runner's default limit.
pub fn time_limit(seconds: u64, why: &str) {
    eprintln!("time limit: {seconds} s, {why}");
}

/// A time limit of the server that must expire in a scenario, but not during PHP's start: ten times as long in `make
/// test-stress`, where everything is slow.
pub fn limit(milliseconds: u64) -> Duration {
    patience(Duration::from_millis(milliseconds))
}

/// A time that a test waits: like [`limit`] and the runner's time limits, ten times as long in `make test-stress`.
pub fn patience(usual: Duration) -> Duration {
    usual * if is_stressed() { 10 } else { 1 }
}

/// A number of connections that are opened one after the other: a tenth in `make test-stress`, where the first would
/// otherwise time out before the last is open.
pub fn crowd(usual: usize) -> usize {
    usual / if is_stressed() { 10 } else { 1 }
}

pub(crate) fn is_stressed() -> bool {
    std::env::var_os("HOWDAH_TEST_STRESS").is_some()
}

/// Number of repetitions of a scenario that needs many to prove something: the environment variable `name`, which `make
/// test-long` sets, else `usual`. Declares a time limit for `per_second` repetitions per second on a slow machine.
pub fn repetitions(name: &str, usual: u64, per_second: u64) -> u64 {
    let number =
        std::env::var(name).map_or(usual, |text| text.parse().unwrap_or_else(|e| panic!("{name}={text}: {e}")));
    time_limit(60 + number / per_second, &format!("{number} repetitions"));
    number
}
