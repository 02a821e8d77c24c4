//! `howdah serve`: reads the settings and runs the server until it is stopped.

use crate::commands::wrong;
use crate::server::programs;
use crate::server::reload::SettingsLoader;
use crate::server::serve::{self, InheritedListeners};
use crate::server::upgrade::TakeOver;
use anyhow::Result;
use howdah_config::{Environment, ServeFlags};
use std::os::fd::OwnedFd;
use std::process::ExitCode;
use std::sync::Arc;

/// Serves with the settings of these flags.
pub(crate) fn run(flags: ServeFlags, passed: Vec<(OwnedFd, String)>) -> Result<ExitCode> {
    let environment = Environment::of_process();
    run_with(
        Arc::new(move || howdah_config::load_in(&flags, &environment).map_err(|errors| errors.to_string())),
        passed,
        wrong,
    )
}

/// Serves with the settings that `reread` returns. If a running server started this process, replaces it and reports
/// failures to it. `wrong` reports mistakes in the settings.
pub(crate) fn run_with(
    reread: SettingsLoader,
    passed: Vec<(OwnedFd, String)>,
    wrong: impl FnOnce(String) -> ExitCode,
) -> Result<ExitCode> {
    if let Some(printed) = programs::print_for_launcher(&*reread) {
        return Ok(printed);
    }
    let taking_over = TakeOver::begin()?;
    let tell = |why: &str| taking_over.iter().for_each(|old| old.failed(why));
    let loaded = match reread() {
        Ok(loaded) => loaded,
        Err(errors) => {
            tell(&errors);
            return Ok(wrong(errors));
        }
    };
    let served = serve::run(&loaded, reread, InheritedListeners { take_over: taking_over.clone(), passed });
    if let Err(why) = &served {
        tell(&format!("{why:#}"));
    }
    served.map(|()| ExitCode::SUCCESS)
}
