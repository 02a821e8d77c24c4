//! The commands, one file each, and their selection.

mod check;
mod dev;
mod doctor;
mod explain;
pub(crate) mod fpm;
mod frankenphp;
mod import;
mod init;
mod octane;
mod orders;
mod profile;
mod recipes;
mod routes;
mod sandbox;
mod serve;
mod status;
mod top;
mod trust;

use crate::output::{self, complain};
use anyhow::{Context, Result};
use howdah_config::cli::{Cli, Command, ControlFlags, ServeFlags};
use howdah_config::{AdminAddress, ConfigError, ConfigErrors, Environment, Loaded, manual};
use howdah_site::explain::Question;
use std::os::fd::OwnedFd;
use std::process::ExitCode;

/// Exit status for invalid settings, the same as for an invalid command line.
const WRONG_SETTINGS: u8 = 2;

/// Returns the command that the program's name and arguments select. An error has already been printed.
pub(crate) fn invocation() -> Result<Command, ExitCode> {
    let arguments: Vec<String> = std::env::args_os().map(|text| text.to_string_lossy().into_owned()).collect();
    let env = std::env::vars_os().filter_map(|(k, v)| Some((k.into_string().ok()?, v.into_string().ok()?))).collect();
    match frankenphp::invocation(&arguments, &env) {
        None => Ok(Cli::parse().command),
        Some(Ok(frankenphp::Invocation::Serve(flags))) => Ok(Command::Serve(flags)),
        Some(Ok(frankenphp::Invocation::Print(text))) => {
            let printed = output::print(text).map_err(|error| complain(format_args!("howdah: {error:#}")));
            Err(if printed.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
        }
        Some(Err(why)) => Err(wrong(format_args!("howdah: {why}"))),
    }
}

/// Runs this program as `howdah-fpm`, if it has that name. `passed`: see `run`.
pub(crate) fn run_as_fpm(passed: &mut Vec<(OwnedFd, String)>) -> Option<Result<ExitCode>> {
    let arguments: Vec<String> = std::env::args_os().map(|text| text.to_string_lossy().into_owned()).collect();
    Some(match fpm::invocation(&arguments)? {
        Ok(asked) => fpm::run(asked, std::mem::take(passed)),
        Err(why) => Ok(fpm::wrong_usage(&why)),
    })
}

/// Runs the command. `passed` are the sockets from the service manager.
pub(crate) fn run(command: Command, passed: Vec<(OwnedFd, String)>) -> Result<ExitCode> {
    match command {
        Command::Serve(flags) => serve::run(flags, passed),
        Command::Dev(mut serve) => match dev::load(serve.take_root().as_deref(), serve) {
            Ok((loaded, reread)) => dev::run(&loaded, reread).map(|()| ExitCode::SUCCESS),
            Err(code) => Ok(code),
        },
        Command::Mails { directory, show, clear, server } => {
            dev::mails::run(server.serve, directory.as_deref(), show, clear)
        }
        Command::Sendmail { into, .. } => dev::mails::keep(&into),
        Command::Check(flags) => Ok(match look_at(&check::flags(flags)) {
            Ok((loaded, errors)) => check::run(&loaded, &errors),
            Err(_) => ExitCode::FAILURE,
        }),
        Command::Explain { method, url, headers, client, json, config, root } => {
            let mut serve = ServeFlags { config, ..ServeFlags::default() };
            root.iter().for_each(|root| serve.set("root", root));
            let method = method.unwrap_or_else(|| "GET".to_owned());
            match explained(&serve) {
                Ok(loaded) => explain::run(&loaded, &Question { method, url, headers, client }, json),
                Err(code) => Ok(code),
            }
        }
        Command::Status { server, sandbox: true, .. } => at_server(&server, sandbox::run),
        Command::Status { server, json, watch, .. } => at_server(&server, |admin| status::run(admin, json, watch)),
        Command::Top { server, once } => at_server(&server, |admin| top::run(admin, once)),
        Command::Profile { server, profile } => at_server(&server, |admin| profile::run(admin, &profile)),
        Command::Routes { server, restore, json } => {
            at_server(&server, |admin| routes::run(admin, restore.as_deref(), json))
        }
        Command::Init { list: true, .. } => print(recipes::list()),
        Command::Init { directory, octane: true, replace, .. } => octane::make(&directory, replace),
        Command::Init { directory, print: true, .. } => init::page(&directory).and_then(print),
        Command::Init { directory, .. } => init::write(&directory).map(|()| ExitCode::SUCCESS),
        Command::Doctor(flags) => Ok(doctor::run(&flags)),
        Command::Reload { server, reload } => at_server(&server, |admin| orders::reload(admin, reload)),
        Command::Upgrade(server) => at_server(&server, orders::upgrade),
        Command::Stop(server) => at_server(&server, orders::stop),
        Command::Trust { server, print, uninstall } => match howdah_config::find_acme(&server.serve) {
            Ok(acme) => trust::run(&acme, print, uninstall),
            Err(errors) => Ok(wrong(errors)),
        },
        Command::Completions { shell } => output::print_bytes(manual::completions(&shell)).map(|_| ExitCode::SUCCESS),
        Command::Man { directory } => manual::write_pages(&directory)
            .map(|()| ExitCode::SUCCESS)
            .with_context(|| format!("cannot write into {}", directory.display())),
    }
}

/// Runs a command that sends requests to a running server.
fn at_server(flags: &ControlFlags, run: impl FnOnce(&AdminAddress) -> Result<ExitCode>) -> Result<ExitCode> {
    match howdah_config::find_admin(flags) {
        Ok(admin) => run(&admin),
        Err(errors) => Ok(wrong(errors)),
    }
}

/// Prints a text as a command's only output.
fn print(text: impl AsRef<str>) -> Result<ExitCode> {
    output::print(text).map(|()| ExitCode::SUCCESS)
}

/// Prints errors of the settings or the command line.
fn wrong(errors: impl std::fmt::Display) -> ExitCode {
    complain(errors);
    ExitCode::from(WRONG_SETTINGS)
}

/// Settings for a command that starts no server, and the errors in them.
fn look_at(flags: &ServeFlags) -> Result<(Loaded, Vec<ConfigError>), ExitCode> {
    let environment = Environment::of_process();
    let installed = howdah_config::installed_settings(flags, &environment);
    let config = installed.or_else(|| flags.config.clone());
    howdah_config::load_as_far_as_possible(&ServeFlags { config, ..flags.clone() }, &environment).map_err(wrong)
}

/// Settings for `explain`. The user that would run the server does not matter.
fn explained(flags: &ServeFlags) -> Result<Loaded, ExitCode> {
    let (loaded, mut errors) = look_at(flags)?;
    errors.retain(|error| error.setting != "user");
    if errors.is_empty() {
        return Ok(loaded);
    }
    Err(wrong(ConfigErrors(errors)))
}
