//! The rules of a site: conditions on requests, and actions for requests that meet them.
//!
//! This crate knows neither sockets, sites nor settings. A [`Rule`] is read from a tree of values ([`read()`]). Rules
//! are compiled into [`Rules`], and [`Rules::evaluate`] returns what the site must do for a request: an [`Outcome`].
#![forbid(unsafe_code)]

pub mod auth;
mod conditions;
mod describe;
mod evaluate;
#[cfg(any(test, feature = "fuzz"))]
pub mod fuzz;
pub mod host;
mod index;
pub mod keys;
pub mod limit;
mod names;
pub mod outcome;
mod password;
pub mod path;
pub mod pattern;
pub mod presets;
pub mod quantity;
pub mod query;
mod read;
mod read_actions;
mod read_response;
pub mod regex;
pub mod request;
pub mod response;
pub mod rule;
mod run;
pub mod template;
#[cfg(test)]
mod testing;
pub mod trace;
pub mod tree;
pub mod users;

pub use evaluate::Rules;
pub use names::Name;
pub use outcome::{Access, Attempt, Failure, Numbers, Outcome, Stop};
pub use read::read;
pub use request::{Files, NoFiles, Request};
pub use rule::{Action, Conditions, Kind, Place, Route, Rule, Share, Times};
pub use tree::{Entry, Node, Problem, Tree};
