//! Knowledge of an application that a pool gathers from its traffic: requests that warm a new generation up, and routes
//! that run in classic mode because they differed elsewhere.

pub(crate) mod demotions;
mod kept_file;
pub(crate) mod learned;
mod routes;
pub(crate) mod target;
pub(crate) mod warm_up;
