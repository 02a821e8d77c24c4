//! Reads and checks what a reload is to serve with. Nothing that serves is touched.

use super::{Outcome, Reread};
use crate::server::checks::{self, Checked, Depth};
use crate::server::tls::Tls;
use howdah_config::{Settings, changes};
use howdah_tls::{Files, Store};
use std::sync::Arc;

/// The read settings.
pub(super) struct Read {
    /// As they can be applied: what needs a restart is as it was.
    pub(super) settings: Arc<Settings>,
    pub(super) tls: Option<Tls>,
    pub(super) outcome: Outcome,
}

/// Where settings are read from, and what they are compared with.
pub(super) struct Reading {
    pub(super) reread: Reread,
    pub(super) old: Arc<Settings>,
    pub(super) store: Arc<Store>,
    /// The certificates that are served.
    pub(super) files: Option<Files>,
    /// No other process starts PHP, with rights that this one has given up.
    pub(super) is_root: bool,
    /// PHP will not be started.
    pub(super) dry_run: bool,
}

impl Reading {
    /// Reads the settings again.
    ///
    /// # Errors
    /// All that is wrong with them.
    pub(super) fn read(self) -> Result<Read, String> {
        let mut loaded = (self.reread)()?;
        let changes = changes(&self.old, &mut loaded);
        // Without root's rights, programs of other users cannot be tried.
        let depth = match self.dry_run && self.is_root {
            true => Depth::WithPhp,
            false => Depth::Over(self.files.as_ref()),
        };
        let checked = checks::check(&loaded, self.store, depth).map_err(|errors| errors.join("\n"))?;
        let Checked { tls, warnings, .. } = checked;
        Ok(Read { settings: Arc::new(loaded.settings), tls, outcome: Outcome { changes, warnings, found: Vec::new() } })
    }
}
