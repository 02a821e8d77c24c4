//! `howdah`: the command line (`commands`), the server that it runs (`server`), and the protocol between the two over
//! the admin endpoint (`control`).
#![deny(unsafe_code)]
// These macros panic if the output is closed: see `output`.
#![deny(clippy::print_stdout, clippy::print_stderr)]

#[allow(unsafe_code)]
mod allocator;
mod commands;
mod control;
mod output;
mod server;

use howdah_pool::process::launcher::LAUNCHER_ARGUMENT;
use output::complain;
use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: allocator::Allocator = allocator::Allocator;

fn main() -> ExitCode {
    // Must come first: from here on other processes of the same user cannot read this process's memory or take its
    // descriptors.
    let hidden = rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable);
    if let Err(error) = hidden {
        complain(format_args!("howdah: cannot protect this process's memory (PR_SET_DUMPABLE): {error}"));
        return ExitCode::FAILURE;
    }
    if std::env::args_os().nth(1).is_some_and(|argument| argument == LAUNCHER_ARGUMENT) {
        return launch();
    }
    // Before anything else opens descriptors.
    let mut passed = match server::service::passed_sockets() {
        Ok(passed) => passed,
        Err(error) => {
            complain(format_args!("howdah: LISTEN_FDS: {error}"));
            return ExitCode::FAILURE;
        }
    };
    howdah_tls::provider::install();
    let done = match commands::run_as_fpm(&mut passed) {
        Some(done) => done,
        None => match commands::invocation() {
            Ok(command) => commands::run(command, passed),
            Err(code) => return code,
        },
    };
    done.unwrap_or_else(|error| {
        howdah_observe::log::last_words(&format!("howdah: {error:#}"));
        ExitCode::FAILURE
    })
}

/// Runs the launcher: this process stays root, while the server that started it does not.
fn launch() -> ExitCode {
    match howdah_pool::process::launcher_process::run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            complain(format_args!("howdah: launcher: {error}"));
            ExitCode::FAILURE
        }
    }
}
