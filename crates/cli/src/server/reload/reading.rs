//! Reads and checks the settings of a reload. Nothing that is serving changes.

use super::{Outcome, SettingsLoader};
use crate::server::checks::{self, Checked, Depth};
use crate::server::tls::Tls;
use howdah_config::{Settings, changes};
use howdah_tls::{Files, Store};
use std::sync::Arc;

/// Result of reading the settings.
pub(super) struct LoadedSettings {
    /// The settings to apply: settings that need a restart keep their old values.
    pub(super) settings: Arc<Settings>,
    pub(super) tls: Option<Tls>,
    pub(super) outcome: Outcome,
}

/// Source of the settings, and the state to compare them with.
pub(super) struct SettingsInput {
    pub(super) reread: SettingsLoader,
    pub(super) old: Arc<Settings>,
    pub(super) store: Arc<Store>,
    /// Certificates in use.
    pub(super) files: Option<Files>,
    /// `true` if this process is root and starts PHP itself.
    pub(super) is_root: bool,
    /// `true` if PHP will not be started.
    pub(super) dry_run: bool,
}

impl SettingsInput {
    /// Reads the settings again.
    ///
    /// # Errors
    /// All errors in the settings.
    pub(super) fn read(self) -> Result<LoadedSettings, String> {
        let mut loaded = (self.reread)()?;
        let changes = changes(&self.old, &mut loaded);
        // Without root's rights, programs of other users cannot be run as a test.
        let depth = match self.dry_run && self.is_root {
            true => Depth::WithPhp,
            false => Depth::Over(self.files.as_ref()),
        };
        let checked = checks::check(&loaded, self.store, depth).map_err(|errors| errors.join("\n"))?;
        let Checked { tls, warnings, .. } = checked;
        Ok(LoadedSettings {
            settings: Arc::new(loaded.settings),
            tls,
            outcome: Outcome { changes, warnings, found: Vec::new() },
        })
    }
}
