//! What a pool's processes may do: whom they run as and within which limits. Whoever starts `howdah-php` says it on the
//! command line, in JSON behind `--privileges=`, so that the server cannot change it afterwards.

use serde::{Deserialize, Serialize};

/// The argument of `howdah-php` that the JSON follows.
pub const PRIVILEGES_ARGUMENT: &str = "--privileges=";

/// Everything about a pool's processes that is settled before PHP starts. The default changes nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Privileges {
    /// Whom they become; only root can say one.
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
    /// What counts.
    pub soft: Option<u64>,
    /// What the process itself may raise that to.
    pub hard: Option<u64>,
}

/// What is not said is the default: the argument shows in lists of processes.
fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
