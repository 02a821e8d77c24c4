//! `howdah`: the command line and the composition root. Each command is one file.
#![forbid(unsafe_code)]
// They panic where nobody reads: see `output`.
#![deny(clippy::print_stdout, clippy::print_stderr)]

mod admin;
mod admin_client;
mod admin_fastcgi;
mod admin_frankenphp;
mod admin_guard;
mod admin_pools;
mod admin_profile;
mod admin_reload;
mod admin_upgrade;
mod certificates;
mod check;
mod checks;
mod comparison;
mod dev;
mod doctor;
mod edition;
mod explain;
mod fpm_status;
mod frankenphp;
mod identity;
mod init;
mod kept_sockets;
mod listening;
mod memory;
mod octane_link;
mod orders;
mod outcome;
mod output;
mod parameter;
mod php_hosts;
mod pools;
mod profile;
mod recipes;
mod reload;
mod routes;
mod sandbox;
mod serve;
mod service;
mod signals;
mod socket_files;
mod status_text;
mod tls;
mod top;
mod traces;
mod trial;
mod trust;
mod upgrade;
mod watch;
mod ways;

use howdah_config::cli::{Cli, Command, ControlFlags, ServeFlags};
use howdah_config::{AdminAddress, ConfigError, ConfigErrors, Loaded, Surroundings};
use howdah_pool::process::launcher::LAUNCHER_ARGUMENT;
use howdah_site::explain::Question;
use output::complain;
use std::os::fd::OwnedFd;
use std::process::ExitCode;
use std::sync::Arc;

/// Bodies of some 50 KB come and go with every request; the C library's allocator gives such memory back to the kernel and
/// faults it in again each time (see docs/internals/performance.md). Without huge pages (feature `no_thp`), of which a server
/// with a few connections uses a fifth; `howdah-php` switches them on again for PHP.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Exit status for wrong settings, as for a wrong command line.
const WRONG_SETTINGS: u8 = 2;

fn main() -> ExitCode {
    // First of all: from here on no other process of the same user reads this one's memory or takes its descriptors.
    let hidden = rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable);
    if let Err(error) = hidden {
        complain(format_args!("howdah: cannot close the process to others: {error}"));
        return ExitCode::FAILURE;
    }
    if std::env::args_os().nth(1).is_some_and(|argument| argument == LAUNCHER_ARGUMENT) {
        return launch();
    }
    // Before anything is opened.
    let passed = match service::passed_sockets() {
        Ok(passed) => passed,
        Err(error) => {
            complain(format_args!("howdah: LISTEN_FDS: {error}"));
            return ExitCode::FAILURE;
        }
    };
    howdah_tls::provider::install();
    let command = match command() {
        Ok(command) => command,
        Err(code) => return code,
    };
    let result = match command {
        Command::Serve(flags) => serve(flags, passed),
        Command::Dev { serve, directory } => match dev::load(serve, directory.as_deref()) {
            Ok((loaded, reread)) => dev::run(&loaded, reread).map(|()| ExitCode::SUCCESS),
            Err(code) => return code,
        },
        Command::Mails { serve, directory, what } => dev::mails::run(&serve, directory.as_deref(), what),
        Command::Sendmail { into } => dev::mails::keep(&into),
        Command::Check(flags) => match look_at(&flags) {
            Ok((loaded, errors)) => return check::run(&loaded, &errors),
            Err(_) => return ExitCode::FAILURE,
        },
        Command::Explain { serve, method, url, headers, client, json } => match explained(&serve) {
            Ok(loaded) => explain::run(&loaded, &Question { method, url, headers, client }, json),
            Err(code) => return code,
        },
        Command::Status { server, json, watch } => match admin_address(&server) {
            Ok(addr) => admin_client::status(&addr, json, watch),
            Err(code) => return code,
        },
        Command::Top { server, once } => match admin_address(&server) {
            Ok(addr) => top::run(&addr, once),
            Err(code) => return code,
        },
        Command::Profile { server, profile: flags } => match admin_address(&server) {
            Ok(addr) => profile::run(&addr, &flags),
            Err(code) => return code,
        },
        Command::Routes { server, restore, json } => match admin_address(&server) {
            Ok(addr) => routes::run(&addr, restore.as_deref(), json),
            Err(code) => return code,
        },
        Command::Sandbox(server) => match admin_address(&server) {
            Ok(addr) => admin_client::sandbox(&addr),
            Err(code) => return code,
        },
        Command::Init { directory, print: true } => init::page(&directory).and_then(print),
        Command::Init { directory, print: false } => init::write(&directory).map(|()| ExitCode::SUCCESS),
        Command::Doctor(flags) => return doctor::run(&flags),
        Command::Recipes => print(recipes::list()),
        Command::Octane { directory, replace } => octane_link::make(&directory, replace),
        Command::Reload { server, reload } => match admin_address(&server) {
            Ok(addr) => admin_client::reload(&addr, reload),
            Err(code) => return code,
        },
        Command::Upgrade(server) => match admin_address(&server) {
            Ok(addr) => admin_client::upgrade(&addr),
            Err(code) => return code,
        },
        Command::Stop(server) => match admin_address(&server) {
            Ok(addr) => admin_client::stop(&addr),
            Err(code) => return code,
        },
        Command::Trust { server, how } => match howdah_config::find_acme(&server) {
            Ok(acme) => trust::run(&acme, how),
            Err(errors) => {
                complain(&errors);
                return ExitCode::from(WRONG_SETTINGS);
            }
        },
        Command::Completions { shell } => {
            output::print_bytes(howdah_config::manual::completions(&shell)).map(|_| ExitCode::SUCCESS)
        }
        Command::Manual { directory } => howdah_config::manual::write_pages(&directory)
            .map(|()| ExitCode::SUCCESS)
            .map_err(|error| anyhow::anyhow!("cannot write into {}: {error}", directory.display())),
        Command::Version => print(concat!("howdah ", env!("CARGO_PKG_VERSION"), "\n")),
    };
    match result {
        Ok(code) => code,
        Err(error) => {
            howdah_observe::log::last_words(&format!("howdah: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

/// Serves, in the place of a server that runs if it was started by one; that one hears of whatever goes wrong.
fn serve(flags: ServeFlags, passed: Vec<(OwnedFd, String)>) -> anyhow::Result<ExitCode> {
    let taking_over = upgrade::TakeOver::begin()?;
    let tell = |why: &str| taking_over.iter().for_each(|old| old.failed(why));
    let loaded = match howdah_config::load(&flags) {
        Ok(loaded) => loaded,
        Err(errors) => {
            complain(&errors);
            tell(&errors.to_string());
            return Ok(ExitCode::from(WRONG_SETTINGS));
        }
    };
    let around = Surroundings::of_process();
    let reread = move || howdah_config::load_in(&flags, &around).map_err(|errors| errors.to_string());
    let served = serve::run(&loaded, Arc::new(reread), serve::Handed { take_over: taking_over.clone(), passed });
    if let Err(why) = &served {
        tell(&format!("{why:#}"));
    }
    served.map(|()| ExitCode::SUCCESS)
}

/// Prints it, and that is all that there is to do.
fn print(text: impl AsRef<str>) -> anyhow::Result<ExitCode> {
    output::print(text).map(|()| ExitCode::SUCCESS)
}

/// This process stays root, and the server that started it does not.
fn launch() -> ExitCode {
    match howdah_pool::process::launcher_process::run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            complain(format_args!("howdah: launcher: {error}"));
            ExitCode::FAILURE
        }
    }
}

/// What is to be done, by the name that the program was started by and by its arguments.
fn command() -> Result<Command, ExitCode> {
    let arguments: Vec<String> = std::env::args_os().map(|text| text.to_string_lossy().into_owned()).collect();
    let env = std::env::vars_os().filter_map(|(k, v)| Some((k.into_string().ok()?, v.into_string().ok()?))).collect();
    match frankenphp::asked(&arguments, &env) {
        None => Ok(Cli::parse().command),
        Some(Ok(frankenphp::Asked::Serve(flags))) => Ok(Command::Serve(flags)),
        Some(Ok(frankenphp::Asked::Print(text))) => {
            let printed = output::print(text).map_err(|error| complain(format_args!("howdah: {error:#}")));
            Err(if printed.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
        }
        Some(Err(why)) => {
            complain(format_args!("howdah: {why}"));
            Err(ExitCode::from(WRONG_SETTINGS))
        }
    }
}

/// The settings of a command that starts nothing, with what is wrong with them.
fn look_at(flags: &ServeFlags) -> Result<(Loaded, Vec<ConfigError>), ExitCode> {
    howdah_config::load_as_far_as_possible(flags, &Surroundings::of_process()).map_err(|errors| {
        complain(&errors);
        ExitCode::from(WRONG_SETTINGS)
    })
}

/// The settings to explain a request with, whoever would run the server.
fn explained(flags: &ServeFlags) -> Result<Loaded, ExitCode> {
    let (loaded, mut errors) = look_at(flags)?;
    errors.retain(|error| error.setting != "user");
    if errors.is_empty() {
        return Ok(loaded);
    }
    complain(ConfigErrors(errors));
    Err(ExitCode::from(WRONG_SETTINGS))
}

fn admin_address(flags: &ControlFlags) -> Result<AdminAddress, ExitCode> {
    howdah_config::find_admin(flags).map_err(|errors| {
        complain(&errors);
        ExitCode::from(WRONG_SETTINGS)
    })
}
