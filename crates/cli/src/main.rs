//! `howdah`: the command line and the composition root. Each command is one file.
#![forbid(unsafe_code)]

mod admin;
mod admin_client;
mod pools;
mod serve;
mod status_text;
mod watch;

use howdah_config::cli::{Cli, Command, ControlFlags, ServeFlags};
use howdah_config::{ListenAddr, Loaded};
use std::process::ExitCode;

/// Bodies of some 50 KB come and go with every request; the C library's allocator gives such memory back to the kernel and
/// faults it in again each time (see docs/internals/performance.md).
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Exit status for wrong settings, as for a wrong command line.
const WRONG_SETTINGS: u8 = 2;

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Serve(flags) => match load(&flags) {
            Ok(loaded) => serve::run(loaded.settings).map(|()| ExitCode::SUCCESS),
            Err(code) => return code,
        },
        Command::Check(flags) => match load(&flags) {
            Ok(loaded) => {
                print!("{}", loaded.show());
                return ExitCode::SUCCESS;
            }
            Err(_) => return ExitCode::FAILURE,
        },
        Command::Status { server, json } => match admin_address(&server) {
            Ok(addr) => admin_client::status(&addr, json),
            Err(code) => return code,
        },
        Command::Reload(server) => match admin_address(&server) {
            Ok(addr) => admin_client::order(&addr, "/reload"),
            Err(code) => return code,
        },
        Command::Stop(server) => match admin_address(&server) {
            Ok(addr) => admin_client::stop(&addr),
            Err(code) => return code,
        },
        Command::Version => {
            println!("howdah {}", env!("CARGO_PKG_VERSION"));
            return ExitCode::SUCCESS;
        }
    };
    match result {
        Ok(code) => code,
        Err(error) => {
            eprintln!("howdah: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn load(flags: &ServeFlags) -> Result<Loaded, ExitCode> {
    howdah_config::load(flags).map_err(|errors| {
        eprintln!("{errors}");
        ExitCode::from(WRONG_SETTINGS)
    })
}

fn admin_address(flags: &ControlFlags) -> Result<ListenAddr, ExitCode> {
    howdah_config::find_admin(flags).map_err(|errors| {
        eprintln!("{errors}");
        ExitCode::from(WRONG_SETTINGS)
    })
}
