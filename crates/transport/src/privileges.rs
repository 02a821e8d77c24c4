//! Privileges of a pool's processes: their user and limits. The starter of `howdah-php` passes them on the command
//! line, in JSON after `--privileges=`, so that the server cannot change them afterwards.

use serde::{Deserialize, Serialize};

/// The argument of `howdah-php` that the JSON follows.
pub const PRIVILEGES_ARGUMENT: &str = "--privileges=";

/// Everything about a pool's processes that is settled before PHP starts. The default changes nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Privileges {
    /// User to become; only root can set one.
    #[serde(skip_serializing_if = "is_default")]
    pub user: Option<Credentials>,
    /// Limits of the kernel.
    #[serde(skip_serializing_if = "is_default")]
    pub limits: Vec<ResourceLimit>,
    /// The control group that they join.
    #[serde(skip_serializing_if = "is_default")]
    pub cgroup: Option<ControlGroup>,
    /// Permissions that new files do not get.
    #[serde(skip_serializing_if = "is_default")]
    pub umask: Option<u32>,
    /// Programs they run gain no rights.
    #[serde(skip_serializing_if = "is_default")]
    pub no_new_privs: bool,
    /// Processes of the same user may read their memory, and the kernel may write core files.
    #[serde(skip_serializing_if = "is_default")]
    pub dumpable: bool,
}

/// A user with groups.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Credentials {
    /// User.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Supplementary groups.
    pub groups: Vec<u32>,
}

/// A control group (cgroup v2).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ControlGroup {
    /// Its directory, made if need be.
    pub directory: String,
    /// Files in it, and what is written to them first.
    pub limits: Vec<(String, String)>,
}

/// A limit of setrlimit(2); `None` stands for no limit.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResourceLimit {
    /// Its name in lower case without `RLIMIT_`.
    pub name: String,
    /// The effective limit.
    pub soft: Option<u64>,
    /// Upper bound to which the process itself may raise it.
    pub hard: Option<u64>,
}

/// Missing values are defaults: the argument is visible in lists of processes.
fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
