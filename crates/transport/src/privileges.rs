//! Privileges of a pool's processes: their user and limits. The process that starts `howdah-php` passes them on the
//! command line, as JSON after `--privileges=`, so that the server cannot change them afterwards.

use serde::{Deserialize, Serialize};

/// The argument of `howdah-php` that the JSON follows.
pub const PRIVILEGES_ARGUMENT: &str = "--privileges=";

/// Settings of a pool's processes that are fixed before PHP starts. The default changes nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Privileges {
    /// The user to switch to; requires root.
    #[serde(skip_serializing_if = "is_default")]
    pub user: Option<Credentials>,
    /// Resource limits.
    #[serde(skip_serializing_if = "is_default")]
    pub limits: Vec<ResourceLimit>,
    /// The control group to join.
    #[serde(skip_serializing_if = "is_default")]
    pub cgroup: Option<ControlGroup>,
    /// Permission bits to remove from new files.
    #[serde(skip_serializing_if = "is_default")]
    pub umask: Option<u32>,
    /// Programs run by these processes gain no privileges.
    #[serde(skip_serializing_if = "is_default")]
    pub no_new_privs: bool,
    /// Processes of the same user may read their memory, and the kernel may write core files.
    #[serde(skip_serializing_if = "is_default")]
    pub dumpable: bool,
}

/// A user with its groups.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Credentials {
    /// User id.
    pub uid: u32,
    /// Group id.
    pub gid: u32,
    /// Supplementary group ids.
    pub groups: Vec<u32>,
}

/// A control group (cgroup v2).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ControlGroup {
    /// Its directory, created if missing.
    pub directory: String,
    /// Control files in it, with the text written to each before the process joins.
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
