//! Knowledge about an application that a pool gathers from its traffic: requests that warm up a new generation, and
//! routes that are demoted to classic mode.

pub(crate) mod demotions;
mod kept_file;
pub(crate) mod learned;
mod routes;
pub(crate) mod target;
pub(crate) mod warm_up;
