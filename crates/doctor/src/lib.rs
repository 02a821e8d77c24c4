//! `howdah doctor`: which mode is safe for which route of an application.
//!
//! ```text
//! run ── place, settings, server   the application, started in every mode with its own settings
//!     ├─ pages, visitor, client    what is asked for, and by whom
//!     ├─ state, php/probe.php      what stays in PHP between two requests
//!     ├─ alone, together           what each page leaves, who sees it, and who is to blame
//!     ├─ cost                      what each mode costs and brings
//!     └─ verdict, report           what follows, as text, JSON and a page
//! ```
//!
//! It knows no other crate of the project: servers are processes of the `howdah` program, whose settings it is given as
//! text. `compare` says whether two responses differ; the server that compares a share of its requests uses it too.
#![forbid(unsafe_code)]

mod access;
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
