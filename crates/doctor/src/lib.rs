//! `howdah doctor`: finds the modes that are safe for each route of an application.
//!
//! ```text
//! run ── place, settings, server   the application, started in every mode with its settings
//!     ├─ pages, visitor, client    requests and visitors
//!     ├─ state, php/probe.php      state that stays in PHP between two requests
//!     ├─ isolated, interleaved     state left by each page, its victims, and its cause
//!     ├─ cost                      costs of each mode
//!     └─ verdict, report           the results, as text, JSON and a page
//! against                          the application compared with the server that it is to leave
//! shadow                           the same with live requests, as a proxy in front of that server
//! ```
//!
//! This crate does not depend on others of the project. Its servers are processes of the `howdah` program, and it gets
//! their settings as text. The server uses `compare` too, to compare a share of its responses.
#![forbid(unsafe_code)]

mod access;
pub mod against;
mod client;
pub mod compare;
mod cost;
mod findings;
mod interleaved;
mod interrupted;
mod isolated;
mod mode;
mod pages;
mod place;
mod report;
mod run;
mod server;
mod settings;
pub mod shadow;
mod state;
mod subject;
pub mod traffic;
mod verdict;
mod visitor;

pub use cost::Cost;
pub use findings::{Finding, Severity};
pub use mode::Mode;
pub use report::{page, text};
pub use run::{Options, run};
pub use verdict::{Advice, ModeReport, Report};
