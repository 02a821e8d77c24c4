//! A worker's settings: one structure, filled once from the pool's settings, sent to the zygote as JSON, and read in
//! place by the C shim. "How to add a worker setting" in CONTRIBUTING.md lists all code that handles each field.

use crate::c_text::CText;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Exit status of a worker whose script ended before it asked for a request.
pub const HOWDAH_BOOT_FAILED: i32 = 71;

/// Settings of request execution. They stay in the zygote for its lifetime; C reads them there (`howdah_worker_spec`).
#[repr(C)]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerSpec {
    /// State that is kept between two requests.
    pub mode: Mode,
    /// The worker script, or empty.
    pub script: CText,
    /// Name of the recipe (PHP code of the server) that boots the application whose front controller is `script`; or
    /// empty.
    pub recipe: CText,
    /// The host for every request, if the recipe's boot may need it; or empty.
    pub boot_host: CText,
    /// The boot file of snapshot mode, or empty.
    pub boot_script: CText,
    /// A php.ini file or directory that replaces PHP's own search, or empty.
    pub ini_path: CText,
    /// Settings that override php.ini, in its syntax.
    pub ini_text: CText,
    /// Names of the settings that scripts and `.user.ini` files cannot change, one per line.
    pub admin_ini_names: CText,
    /// `SERVER_SOFTWARE`.
    pub software: CText,
    /// Number of requests after which a worker retires; 0 = never.
    pub max_requests: u64,
    /// Memory in bytes at which a worker retires after a request; 0 = a part of `memory_limit` in worker mode, else
    /// never.
    pub max_memory: u64,
    /// Maximum number of concurrent requests in a worker; 1 in all modes but async.
    pub concurrency: u32,
    /// Compare the responses that two visitors get to the warm-up requests.
    pub warmup_check: bool,
    /// Show script errors as pages with source code: `howdah dev` only.
    pub error_pages: bool,
}

/// Defines an enum with its words, as settings, messages and `status` spell them.
macro_rules! words {
    ($name:ident { $($variant:ident = $word:literal),+ $(,)? }) => {
        impl $name {
            /// Every word, in order.
            pub const WORDS: &'static [&'static str] = &[$($word),+];

            /// The word for this choice.
            pub const fn word(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }

            /// The choice with this word.
            pub fn from_word(word: &str) -> Option<Self> {
                match word { $($word => Some(Self::$variant),)+ _ => None }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.word())
            }
        }
    };
}

/// PHP state that is kept between two requests of a worker.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// No state: a full PHP request each time.
    #[default]
    Classic,
    /// All state: the script loops over requests.
    Worker,
    /// The state after boot, restored after each request.
    Snapshot,
    /// All state; one process runs several requests at once.
    Async,
}

words!(Mode { Classic = "classic", Worker = "worker", Snapshot = "snapshot", Async = "async" });

impl Mode {
    /// `true` if a worker is multiplexed: runs many requests at once.
    pub const fn is_multiplexed(self) -> bool {
        matches!(self, Self::Async)
    }
}

/// Restrictions of a pool's workers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SandboxProfile {
    /// Allow everything that the worker's user may do.
    #[default]
    Off,
    /// Allow only what an application needs.
    App,
    /// Allow everything that the worker's user may do, and record what an application needs.
    Learn,
}

words!(SandboxProfile { Off = "off", App = "app", Learn = "learn" });

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_spell_choices_as_settings_do() {
        for word in Mode::WORDS {
            let mode: Mode = serde_json::from_str(&format!("{word:?}")).unwrap();
            assert_eq!((mode.word(), Mode::from_word(word)), (*word, Some(mode)));
        }
        for word in SandboxProfile::WORDS {
            let profile: SandboxProfile = serde_json::from_str(&format!("{word:?}")).unwrap();
            assert_eq!((profile.word(), SandboxProfile::from_word(word)), (*word, Some(profile)));
        }
    }
}
