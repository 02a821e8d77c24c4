//! The running server: start to stop (`serve`), the revision that serves requests and its reload, the upgrade to
//! another process, pools, certificates, and the admin endpoint. Commands use this module; it depends on none of them.

mod admin;
mod backends;
mod certificates;
pub(crate) mod checks;
mod comparison;
pub(crate) mod detected;
pub(crate) mod fd_store;
mod fpm_status;
pub(crate) mod identity;
mod listening;
mod memory;
mod orders;
pub(crate) mod own_program;
pub(crate) mod php_hosts;
mod php_limits;
mod pid_file;
pub(crate) mod pools;
pub(crate) mod programs;
pub(crate) mod reload;
mod revision;
pub(crate) mod serve;
pub(crate) mod service;
mod shared;
mod signals;
pub(crate) mod socket_files;
mod tls;
mod traces;
pub(crate) mod upgrade;
mod watch;
