//! Both ends of the admin endpoint's language: what commands ask of a running server, and what it says.

pub(crate) mod client;
pub(crate) mod outcome;
pub(crate) mod parameter;
