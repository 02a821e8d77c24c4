//! State of the running generation, for `status`.

use crate::learning::warm_up::WarmUp;
use howdah_transport::zygote_protocol::Need;
use std::collections::BTreeSet;

#[derive(Debug, Clone, Default)]
pub(crate) struct GenerationStatus {
    pub(crate) php_version: Option<String>,
    pub(crate) generation: u64,
    /// The reason why the last start failed, until a worker is ready.
    pub(crate) last_error: Option<String>,
    pub(crate) boots: BootSource,
    pub(crate) warm_up: WarmUp,
    /// Needs that a learning sandbox has found since the server's start.
    pub(crate) sandbox_needs: BTreeSet<Need>,
}

/// Source of the booted application for a snapshot pool's workers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) enum BootSource {
    /// Unknown: no worker has booted yet, or the pool takes no snapshots.
    #[default]
    Unknown,
    /// Workers are forked from this process.
    Template {
        pid: u32,
        /// When its boot began, microseconds since the epoch.
        began_us: u64,
    },
    /// The template has ended or was ordered to; the next worker that starts boots a new one.
    TemplateGone(u32),
    /// Each worker boots separately, for this reason.
    Alone(String),
}

impl BootSource {
    /// The template's process, which may have ended.
    pub(crate) const fn template(&self) -> Option<u32> {
        match self {
            Self::Template { pid, .. } | Self::TemplateGone(pid) => Some(*pid),
            Self::Unknown | Self::Alone(_) => None,
        }
    }
}
