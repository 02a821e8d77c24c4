//! `howdah doctor`: which mode is safe for which route of an application.
//!
//! ```text
//! run ── place, settings, server   the application, started in every mode with its settings
//!     ├─ pages, visitor, client    requests and visitors
//!     ├─ state, php/probe.php      state that stays in PHP between two requests
//!     ├─ alone, together           state left by each page, its victims, and its cause
//!     ├─ cost                      costs of each mode
//!     └─ verdict, report           the results, as text, JSON and a page
//! against                          the application compared with the server that it is to leave
//! ```
//!
//! It knows no other crate of the project: servers are processes of the `howdah` program, whose settings it is given as
//! text. `compare` says whether two responses differ; the server that compares a share of its requests uses it too.
#![forbid(unsafe_code)]

mod access;
pub mod against;
mod alone;
mod client;
pub mod compare;
mod cost;
mod findings;
mod interrupted;
mod mode;
mod pages;
mod place;
mod report;
mod run;
mod server;
mod settings;
mod state;
mod subject;
mod together;
mod verdict;
mod visitor;

pub use cost::Cost;
pub use findings::{Finding, Severity};
pub use mode::Mode;
pub use report::{page, text};
pub use run::{Options, run};
pub use verdict::{Advice, ModeReport, Report};
