//! The lab: starts PHP runtimes side by side, gives them the same work, checks the responses, measures, and explains.
//!
//! Reading order: [`cli`] parses the request, [`plan`] turns it into systems and cases, [`stage`] prepares applications
//! and services, [`runner`] measures in interleaved rounds into the types of [`record`], and [`report`] renders those.
//! [`reproduce`] does that with the method of a published comparison, [`choose`] with a team's own paths.

#![forbid(unsafe_code)]

pub mod apps;
pub mod cases;
pub mod certificate;
pub mod choose;
pub mod cli;
pub mod clock;
pub mod counts;
pub mod descriptors;
pub mod doctor;
pub mod explain;
pub mod figures;
pub mod goals;
pub mod guard;
pub mod interrupt;
pub mod jit;
pub mod load;
pub mod names;
pub mod outset;
pub mod plan;
pub mod programs;
pub mod quick;
pub mod record;
pub mod report;
pub mod reproduce;
pub mod runner;
pub mod sample;
pub mod services;
pub mod site;
pub mod stage;
pub mod stats;
pub mod systems;
pub mod view;
pub mod warn;
