//! `howdah serve`: reads the settings and runs the server until it is stopped.

use crate::commands::wrong;
use crate::server::serve::{self, Handed};
use crate::server::upgrade::TakeOver;
use anyhow::Result;
use howdah_config::{ServeFlags, Surroundings};
use std::os::fd::OwnedFd;
use std::process::ExitCode;
use std::sync::Arc;

/// Serves, replacing a running server if that started this one; it is notified of failures.
pub(crate) fn run(flags: ServeFlags, passed: Vec<(OwnedFd, String)>) -> Result<ExitCode> {
    let taking_over = TakeOver::begin()?;
    let tell = |why: &str| taking_over.iter().for_each(|old| old.failed(why));
    let loaded = match howdah_config::load(&flags) {
        Ok(loaded) => loaded,
        Err(errors) => {
            tell(&errors.to_string());
            return Ok(wrong(errors));
        }
    };
    let around = Surroundings::of_process();
    let reread = move || howdah_config::load_in(&flags, &around).map_err(|errors| errors.to_string());
    let served = serve::run(&loaded, Arc::new(reread), Handed { take_over: taking_over.clone(), passed });
    if let Err(why) = &served {
        tell(&format!("{why:#}"));
    }
    served.map(|()| ExitCode::SUCCESS)
}
