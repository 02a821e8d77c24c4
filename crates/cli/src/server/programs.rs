//! PHP programs of a server that has given up root's rights. Its launcher starts only programs from settings that were
//! read as root. The server reads them at its start; at a reload, the launcher runs this program again to read and
//! print them.

use crate::output;
use crate::server::pools;
use howdah_budget::Budgets;
use howdah_config::{Loaded, Settings};
use howdah_pool::PoolConfig;
use howdah_pool::process::end::End;
use howdah_pool::process::launcher::{LaunchedProcess, Launcher};
use howdah_pool::process::program::Program;
use howdah_pool::process::settings_process::{self, SETTLES};
use parking_lot::Mutex;
use std::process::ExitCode;
use std::time::Duration;

/// Maximum time to read the settings again.
const READ_TIMEOUT: Duration = Duration::from_secs(30);

/// The programs that the launcher may start.
pub(crate) struct AllowedPrograms(Mutex<Vec<Program>>);

impl AllowedPrograms {
    /// Programs known at the server's start.
    pub(crate) fn new(configs: &[PoolConfig]) -> Self {
        Self(Mutex::new(configs.iter().map(Program::of).collect()))
    }

    /// Makes the launcher allow the programs of these settings.
    ///
    /// # Errors
    /// The launcher does not allow them.
    pub(crate) async fn settle(&self, settings: &Settings, launcher: &Launcher) -> Result<(), String> {
        let programs = of(settings)?;
        let is_settled = |program: &Program| self.0.lock().contains(program);
        if programs.iter().all(is_settled) {
            return Ok(());
        }
        let Some(LaunchedProcess { id, ended }) = launcher.settle() else { return Ok(()) };
        let cannot = |why: String| format!("cannot reread the settings as root to permit new programs: {why}");
        match tokio::time::timeout(READ_TIMEOUT, ended).await {
            Ok(Ok(End::Status(0))) => {
                self.0.lock().extend(programs);
                Ok(())
            }
            Ok(Ok(end)) => Err(cannot(end.to_string())),
            Ok(Err(_)) => Err(cannot("the launcher has ended".to_owned())),
            Err(_) => {
                launcher.kill(id);
                Err(cannot(format!("no result within {READ_TIMEOUT:?}")))
            }
        }
    }
}

/// The programs of the settings' pools.
fn of(settings: &Settings) -> Result<Vec<Program>, String> {
    let configs = pools::configs(settings, Budgets::new(0, 0))?;
    Ok(configs.iter().map(Program::of).collect())
}

/// Prints the programs of the settings, if the launcher started this process for that purpose.
pub(crate) fn print_for_launcher(read: impl Fn() -> Result<Loaded, String>) -> Option<ExitCode> {
    std::env::var_os(SETTLES)?;
    let programs = read().and_then(|loaded| of(&loaded.settings));
    let printed = programs
        .and_then(|programs| settings_process::print(&programs, std::io::stdout()).map_err(|error| error.to_string()));
    match printed {
        Ok(()) => Some(ExitCode::SUCCESS),
        Err(why) => {
            // The launcher forwards this message.
            let _ = output::print(format!("{why}\n"));
            Some(ExitCode::FAILURE)
        }
    }
}
