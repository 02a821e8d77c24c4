//! All directives of PHP-FPM, and their effect here.

/// The effect of a directive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effect {
    /// Works as in PHP-FPM.
    Taken,
    /// Has no effect, for this reason.
    Dropped(&'static str),
    /// Ignoring it would be unsafe, so the server does not start. The text is the remedy.
    Refused(&'static str),
}

use Effect::{Dropped, Refused, Taken};

/// Directives of `[global]`.
const GLOBAL: &[(&str, Effect)] = &[
    ("pid", Taken),
    ("error_log", Taken),
    ("log_level", Taken),
    ("daemonize", Taken),
    ("process_control_timeout", Taken),
    ("syslog.facility", Dropped("messages go to the facility daemon")),
    ("syslog.ident", Dropped("messages are those of howdah")),
    ("log_limit", Dropped("lines have no such limit")),
    ("log_buffering", Dropped("messages are written by a separate thread")),
    ("emergency_restart_threshold", Dropped("each worker that dies is replaced; the others go on")),
    ("emergency_restart_interval", Dropped("each worker that dies is replaced; the others go on")),
    ("process.max", Dropped("pm.max_children limits each pool")),
    ("process.priority", Dropped("set Nice= in the unit")),
    ("rlimit_files", Dropped("the server takes what its hard limit allows")),
    ("rlimit_core", Dropped("set LimitCORE= in the unit")),
    ("events.mechanism", Dropped("it is epoll")),
    ("systemd_interval", Dropped("WatchdogSec= of the unit sets it")),
];

/// Directives of pools.
const POOL: &[(&str, Effect)] = &[
    ("prefix", Taken),
    ("user", Taken),
    ("group", Taken),
    ("listen", Taken),
    ("listen.owner", Taken),
    ("listen.group", Taken),
    ("listen.mode", Taken),
    ("listen.allowed_clients", Taken),
    ("listen.backlog", Dropped("4096 connections may wait, and requests wait in the server's queue")),
    ("listen.acl_users", Dropped("access is by owner, group and mode: set listen.group")),
    ("listen.acl_groups", Dropped("access is by owner, group and mode: set listen.group")),
    ("listen.setfib", Dropped("only FreeBSD has it")),
    ("process.priority", Dropped("set Nice= in the unit")),
    ("process.dumpable", Dropped("stacks and profiles are read without it")),
    ("process.cpu_affinity", Dropped("only FreeBSD has it")),
    ("pm", Taken),
    ("pm.max_children", Taken),
    ("pm.start_servers", Taken),
    ("pm.min_spare_servers", Taken),
    ("pm.max_spare_servers", Taken),
    ("pm.max_spawn_rate", Dropped("workers start as fast as they are needed")),
    ("pm.process_idle_timeout", Taken),
    ("pm.max_requests", Taken),
    ("pm.status_path", Taken),
    ("pm.status_listen", Taken),
    ("ping.path", Taken),
    ("ping.response", Taken),
    ("access.log", Taken),
    ("access.format", Taken),
    ("access.suppress_path", Taken),
    ("request_terminate_timeout", Taken),
    ("request_terminate_timeout_track_finished", Dropped("time after fastcgi_finish_request() counts always")),
    ("request_slowlog_timeout", Taken),
    ("request_slowlog_trace_depth", Taken),
    ("slowlog", Taken),
    ("rlimit_files", Taken),
    ("rlimit_core", Taken),
    ("chroot", Refused("use the sandbox of a howdah.toml")),
    ("apparmor_hat", Refused("use the sandbox of a howdah.toml, or AppArmorProfile= in the unit")),
    ("chdir", Dropped("scripts start in their own directory")),
    ("catch_workers_output", Dropped("the output of workers is always logged")),
    ("decorate_workers_output", Dropped("lines always name their pool")),
    ("clear_env", Taken),
    ("security.limit_extensions", Taken),
    ("env", Taken),
    ("php_value", Taken),
    ("php_flag", Taken),
    ("php_admin_value", Taken),
    ("php_admin_flag", Taken),
];

/// Returns the effect of a directive; `None` if PHP-FPM has no such directive in that section.
pub(crate) fn fate(name: &str, is_pool: bool) -> Option<Effect> {
    let table = if is_pool { POOL } else { GLOBAL };
    table.iter().find(|(own, _)| *own == name).map(|(_, fate)| *fate)
}

/// All names of a section.
#[cfg(test)]
pub(super) fn names(is_pool: bool) -> impl Iterator<Item = &'static str> {
    if is_pool { POOL } else { GLOBAL }.iter().map(|(name, _)| *name)
}
