//! The phases of a request, in the order in which `service` runs them, each of which may use what
//! the crate keeps below them: the exchange, its site, and what a site consists of.

pub mod access_log;
pub mod compress;
pub mod htaccess;
pub mod limits;
pub mod php;
pub(crate) mod proxy;
pub mod route;
pub mod rules;
mod traces;
