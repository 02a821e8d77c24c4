//! `howdah-php`: hosts PHP for one pool. Started by `howdah`, not by hand.
//!
//! The process is the pool's zygote (`zygote`): it starts PHP once and forks workers (`worker`), which run requests
//! from their lane. PHP itself is reached through the C shim in `shim/`, across the border described in
//! `shim/bridge.h`; `bridge` holds the functions that C calls. This program forks and may be snapshotted, so it has one
//! thread; only async mode adds some, for name resolution (`shim/async/hooks/names.c`).

mod adopted_children;
#[cfg(test)]
mod bound_library;
mod bridge;
mod capabilities;
mod child;
mod error_page;
mod extension_headers;
mod information;
mod library;
mod memory;
mod open_request;
mod php;
mod priority;
mod privileges;
mod profile;
mod reaped;
mod recipe;
#[cfg(test)]
mod rooms_tests;
mod sandbox;
mod shared_boot;
mod stack_signal;
mod stacks;
mod template;
mod trial;
mod warmup_check;
mod warmup_report;
mod worker;
mod worker_lane;
mod zygote;
mod zygote_memory;

use howdah_transport::privileges::{PRIVILEGES_ARGUMENT, Privileges};
use std::process::ExitCode;

const USAGE: &str = "howdah-php hosts PHP for the howdah server and is started by it.
Serve an application with:  howdah serve [ROOT]
Options: --version, --capabilities, --capabilities=json";

fn main() -> ExitCode {
    if let Err(why) = php::check_library() {
        eprintln!("howdah-php: {why}");
        return ExitCode::FAILURE;
    }
    let mut pool = None;
    let mut trial = None;
    let mut print = None;
    let mut privileges = Privileges::default();
    for argument in std::env::args().skip(1) {
        match argument.as_str() {
            "--version" | "-V" => {
                println!("howdah-php {} (PHP {})", env!("CARGO_PKG_VERSION"), php::version());
                return ExitCode::SUCCESS;
            }
            "--capabilities" => return capabilities::print(false),
            "--capabilities=json" => return capabilities::print(true),
            "--print=info" => print = Some(false),
            "--print=modules" => print = Some(true),
            "--sandbox" => return sandbox::print_report(&capabilities::missing()),
            "--help" | "-h" => {
                println!("{USAGE}");
                return ExitCode::SUCCESS;
            }
            other => match (other.strip_prefix("--pool="), other.strip_prefix(PRIVILEGES_ARGUMENT)) {
                (Some(name), _) => pool = Some(name.to_owned()),
                (None, Some(text)) => match privileges::parse(text) {
                    Ok(parsed) => privileges = parsed,
                    Err(error) => {
                        eprintln!(
                            "howdah-php: {PRIVILEGES_ARGUMENT}: {error}; install howdah and howdah-php from one build"
                        );
                        return ExitCode::from(2);
                    }
                },
                (None, None) if other.starts_with("--try=") => trial = other.strip_prefix("--try=").map(str::to_owned),
                (None, None) => {
                    eprintln!("howdah-php: unknown argument {other}\n{USAGE}");
                    return ExitCode::from(2);
                }
            },
        }
    }
    if pool.is_none() {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    }
    // Before any PHP code is run or read.
    if let Err(why) = privileges::settle(&privileges) {
        eprintln!("howdah-php: {why}");
        return ExitCode::FAILURE;
    }
    if let Some(modules) = print {
        return information::print(modules);
    }
    if let Some(names) = trial {
        return trial::run(&names);
    }
    // The server disables huge pages and this process inherits that; php.ini decides whether PHP uses them.
    let _ = rustix::thread::disable_transparent_huge_pages(false);
    zygote::run()
}
