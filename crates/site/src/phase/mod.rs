//! The phases of a request, in the order in which `service` runs them, and what several of them need (`request_path`,
//! `withheld`). The names are the same in traces and metrics.

pub mod access_log;
pub mod compress;
pub mod limits;
pub mod php;
pub(crate) mod proxy;
pub(crate) mod request_path;
pub mod route;
pub mod static_files;
pub mod withheld;
