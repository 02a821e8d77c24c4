//! The modes of PHP, as the doctor names them.

use serde::{Deserialize, Serialize};
use std::fmt;

/// A mode, by which PHP keeps more or less state between two requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    Classic,
    Worker,
    Snapshot,
    Async,
}

impl Mode {
    /// Modes that are compared with classic mode.
    pub const TRIED: [Self; 3] = [Self::Worker, Self::Snapshot, Self::Async];

    /// Name in `howdah.toml`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Classic => "classic",
            Self::Worker => "worker",
            Self::Snapshot => "snapshot",
            Self::Async => "async",
        }
    }

    /// Returns the mode with this name, if the doctor tests it.
    pub fn tried(name: &str) -> Option<Self> {
        Self::TRIED.into_iter().find(|mode| mode.name() == name)
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
