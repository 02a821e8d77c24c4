//! All directives of PHP-FPM, with their effect here and the format of their values in the output of `php-fpm -tt`.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effect {
    /// Works as in PHP-FPM.
    Taken,
    /// Has no effect, for this reason.
    Dropped(&'static str),
    /// Ignoring it would be unsafe, so the server does not start. The text is the remedy.
    Refused(&'static str),
}

/// Format of a value in the output of `-tt`.
#[derive(Debug, Clone, Copy)]
pub(super) enum Form {
    /// The text as written, or this default.
    Text(&'static str),
    /// A number, or this default.
    Number(&'static str),
    /// Seconds, with the suffix `s`.
    Seconds(u64),
    /// Seconds, without a suffix.
    BareSeconds(u64),
    Switch(bool),
    /// A path, relative to the section's prefix.
    File(Option<&'static str>),
    /// A number, or `unlimited`.
    Core,
    Facility,
    Level,
    /// An address, or a path relative to the prefix.
    Listen,
    /// `pm.start_servers`, which PHP-FPM computes for a dynamic pool.
    StartServers,
    /// `ping.response`, which has a default only with a `ping.path`.
    Pong,
    /// `access.format`, which has a default only with an `access.log`.
    AccessFormat,
    /// `NAME[] = VALUE` or `NAME[KEY] = VALUE`, in reverse order.
    Entries(&'static [&'static str]),
    /// Without a separate line, as in PHP-FPM.
    Hidden,
}

use Effect::{Dropped, Refused, Taken};
use Form::{
    AccessFormat, BareSeconds, Core, Entries, Facility, File, Hidden, Level, Listen, Number, Pong, Seconds,
    StartServers, Switch, Text,
};

/// Value of a directive that is not set.
pub(super) const UNDEFINED: &str = "undefined";

/// Directives of `[global]`, in the order in which PHP-FPM shows them.
pub(super) const GLOBAL: &[(&str, Effect, Form)] = &[
    ("pid", Taken, File(None)),
    ("error_log", Taken, File(Some("log/php-fpm.log"))),
    ("syslog.ident", Dropped("messages are always tagged `howdah`"), Text("php-fpm")),
    ("syslog.facility", Dropped("messages always have the facility daemon"), Facility),
    ("log_buffering", Dropped("messages are written by a separate thread"), Switch(true)),
    ("log_level", Taken, Level),
    ("log_limit", Dropped("lines have no such limit"), Number("1024")),
    ("emergency_restart_interval", Dropped("each worker that dies is replaced; the others continue"), Seconds(0)),
    ("emergency_restart_threshold", Dropped("each worker that dies is replaced; the others continue"), Number("0")),
    ("process_control_timeout", Taken, Seconds(0)),
    ("process.max", Dropped("pm.max_children limits each pool"), Number("0")),
    ("process.priority", Dropped("set Nice= in the unit"), Text(UNDEFINED)),
    ("daemonize", Taken, Switch(true)),
    ("rlimit_files", Dropped("the server raises its limit to the hard limit"), Number("0")),
    ("rlimit_core", Dropped("set LimitCORE= in the unit"), Core),
    ("events.mechanism", Dropped("it is always epoll"), Text("epoll")),
    ("systemd_interval", Dropped("WatchdogSec= of the unit sets it"), Seconds(10)),
];

/// Directives of pools.
pub(super) const POOL: &[(&str, Effect, Form)] = &[
    ("prefix", Taken, Text(UNDEFINED)),
    ("user", Taken, Text(UNDEFINED)),
    ("group", Taken, Text(UNDEFINED)),
    ("listen", Taken, Listen),
    ("listen.backlog", Dropped("4096 connections may wait, and requests wait in the server's queue"), Text("-1")),
    ("listen.acl_users", Dropped("access is by owner, group and mode: set listen.group"), Text(UNDEFINED)),
    ("listen.acl_groups", Dropped("access is by owner, group and mode: set listen.group"), Text(UNDEFINED)),
    ("listen.setfib", Dropped("only FreeBSD has it"), Hidden),
    ("listen.owner", Taken, Text(UNDEFINED)),
    ("listen.group", Taken, Text(UNDEFINED)),
    ("listen.mode", Taken, Text(UNDEFINED)),
    ("listen.allowed_clients", Taken, Text(UNDEFINED)),
    ("process.priority", Dropped("set Nice= in the unit"), Text(UNDEFINED)),
    ("process.dumpable", Dropped("stacks and profiles are read without it"), Switch(false)),
    ("process.cpu_affinity", Dropped("only FreeBSD has it"), Hidden),
    ("pm", Taken, Text(UNDEFINED)),
    ("pm.max_children", Taken, Number("0")),
    ("pm.start_servers", Taken, StartServers),
    ("pm.min_spare_servers", Taken, Number("0")),
    ("pm.max_spare_servers", Taken, Number("0")),
    ("pm.max_spawn_rate", Dropped("workers start as fast as they are needed"), Number("32")),
    ("pm.process_idle_timeout", Taken, BareSeconds(10)),
    ("pm.max_requests", Taken, Number("0")),
    ("pm.status_path", Taken, Text(UNDEFINED)),
    ("pm.status_listen", Taken, Text(UNDEFINED)),
    ("ping.path", Taken, Text(UNDEFINED)),
    ("ping.response", Taken, Pong),
    ("access.log", Taken, File(None)),
    ("access.format", Taken, AccessFormat),
    ("access.suppress_path", Taken, Entries(&["access.suppress_path"])),
    ("slowlog", Taken, File(None)),
    ("request_slowlog_timeout", Taken, Seconds(0)),
    ("request_slowlog_trace_depth", Taken, Number("20")),
    ("request_terminate_timeout", Taken, Seconds(0)),
    (
        "request_terminate_timeout_track_finished",
        Dropped("time after fastcgi_finish_request() always counts"),
        Switch(false),
    ),
    ("rlimit_files", Taken, Number("0")),
    ("rlimit_core", Taken, Core),
    ("chroot", Refused("use the sandbox of a howdah.toml"), Text(UNDEFINED)),
    ("apparmor_hat", Refused("use the sandbox of a howdah.toml, or AppArmorProfile= in the unit"), Hidden),
    ("chdir", Dropped("scripts start in their own directory"), Text(UNDEFINED)),
    ("catch_workers_output", Dropped("the output of workers is always logged"), Switch(false)),
    ("decorate_workers_output", Dropped("lines always name their pool"), Switch(true)),
    ("clear_env", Taken, Switch(true)),
    ("security.limit_extensions", Taken, Text(".php .phar")),
    ("env", Taken, Entries(&["env"])),
    ("php_value", Taken, Entries(&["php_value", "php_flag"])),
    ("php_flag", Taken, Hidden),
    ("php_admin_value", Taken, Entries(&["php_admin_value", "php_admin_flag"])),
    ("php_admin_flag", Taken, Hidden),
];

/// Returns the effect of a directive; `None` if PHP-FPM has no such directive in that section.
pub(crate) fn fate(name: &str, is_pool: bool) -> Option<Effect> {
    let table = if is_pool { POOL } else { GLOBAL };
    table.iter().find(|(own, ..)| *own == name).map(|(_, fate, _)| *fate)
}
