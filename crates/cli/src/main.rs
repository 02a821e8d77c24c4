//! `howdah`: the command line (`commands`), the server that it runs (`server`), and what both say to each other through the
//! admin endpoint (`control`).
#![forbid(unsafe_code)]
// They panic if the output is closed: see `output`.
#![deny(clippy::print_stdout, clippy::print_stderr)]

mod commands;
mod control;
mod output;
mod server;

use howdah_pool::process::launcher::LAUNCHER_ARGUMENT;
use output::complain;
use std::process::ExitCode;

/// Bodies of some 50 KB come and go with every request; the C library's allocator gives such memory back to the kernel and
/// faults it in again each time (see docs/internals/performance.md). Without huge pages (feature `no_thp`), of which a server
/// with a few connections uses a fifth; `howdah-php` switches them on again for PHP.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

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
        None => match commands::asked() {
            Ok(command) => commands::run(command, passed),
            Err(code) => return code,
        },
    };
    done.unwrap_or_else(|error| {
        howdah_observe::log::last_words(&format!("howdah: {error:#}"));
        ExitCode::FAILURE
    })
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
