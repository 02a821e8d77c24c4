//! Processes of a pool: the programs that run as PHP, the launcher and the zygotes that start them, the states of a
//! worker, and how each of them ends.

pub mod end;
pub mod environment;
pub(crate) mod event;
pub mod launcher;
pub mod launcher_process;
mod launcher_protocol;
pub(crate) mod log_limit;
pub mod orphans;
pub(crate) mod php_check;
pub(crate) mod php_host;
pub(crate) mod profile;
pub mod program;
pub mod root_program;
pub mod settings_process;
pub(crate) mod worker_state;
pub(crate) mod zygote;
