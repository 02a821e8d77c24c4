//! The phases of a request, in the order in which `service` runs them. The names are the same in traces and metrics.

pub mod access_log;
pub mod compress;
pub mod limits;
pub mod php;
pub mod route;
pub mod static_files;
