//! The binary: passes the command line to the library and turns its result into an exit code.

#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    howdah_lab::cli::main()
}
