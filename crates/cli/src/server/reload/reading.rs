//! Reads and checks what a reload is to serve with. Nothing that serves is touched.

use super::{Outcome, Reread};
use crate::server::checks::{self, Checked, Depth};
use crate::server::pools;
use crate::server::tls::Tls;
use howdah_budget::Budgets;
use howdah_config::{Settings, changes};
use howdah_pool::process::program::Program;
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
    /// Programs that a process that stayed root can start.
    pub(super) programs: Option<Vec<Program>>,
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
        let depth = match self.dry_run && self.programs.is_none() {
            true => Depth::WithPhp,
            false => Depth::Over(self.files.as_ref()),
        };
        let checked = checks::check(&loaded, self.store, depth).map_err(|errors| errors.join("\n"))?;
        if let Some(programs) = &self.programs {
            may_be_started(&loaded.settings, programs)?;
        }
        let Checked { tls, warnings, .. } = checked;
        Ok(Read { settings: Arc::new(loaded.settings), tls, outcome: Outcome { changes, warnings, found: Vec::new() } })
    }
}

/// The process that starts PHP for a server that was root takes no orders but those that were settled then.
fn may_be_started(settings: &Settings, programs: &[Program]) -> Result<(), String> {
    let configs = pools::configs(settings, Budgets::new(0, 0))?;
    let other = configs.iter().map(Program::of).find(|program| !programs.contains(program));
    match other {
        Some(program) => Err(format!(
            "pool {}: it is new, or its program, user, environment or limits are; the server has given up root's rights \
             since it started: `howdah upgrade` starts it with the new settings and loses no request, so does a restart",
            program.pool
        )),
        None => Ok(()),
    }
}
