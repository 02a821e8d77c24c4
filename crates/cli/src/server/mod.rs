//! The running server: start to stop (`serve`), the edition that serves requests and its reload, the upgrade to another
//! process, pools, certificates, and the admin endpoint. Commands use this module; it depends on none of them.

mod admin;
mod certificates;
pub(crate) mod checks;
mod comparison;
mod edition;
pub(crate) mod found;
mod fpm_status;
pub(crate) mod identity;
pub(crate) mod kept_sockets;
mod listening;
mod memory;
mod orders;
pub(crate) mod own_program;
pub(crate) mod php_hosts;
mod pid_file;
pub(crate) mod pools;
pub(crate) mod programs;
pub(crate) mod reload;
pub(crate) mod serve;
pub(crate) mod service;
mod shared;
mod signals;
pub(crate) mod socket_files;
mod tls;
mod traces;
pub(crate) mod upgrade;
mod watch;
mod ways;
