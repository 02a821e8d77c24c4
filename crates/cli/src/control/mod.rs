//! The protocol of the admin endpoint between commands and a running server.

pub(crate) mod client;
pub(crate) mod outcome;
pub(crate) mod parameter;
