//! Makes a pool's PHP print its information, for `howdah-fpm -i` and `-m`.

use crate::config::PoolConfig;
use crate::process::program::Program;
use std::process::{ExitStatus, Stdio};

/// Prints phpinfo() or the names of all modules (`modules`) on this process's standard output.
///
/// # Errors
/// The reason why the program does not run.
pub fn print_php(config: &PoolConfig, modules: bool) -> Result<ExitStatus, String> {
    let program = Program::of(config);
    let fail = |error: std::io::Error| program.explain(&error);
    let order = serde_json::to_vec(&config.boot).map_err(|error| error.to_string())?;
    let mut command = program.command().map_err(fail)?;
    command.arg(if modules { "--print=modules" } else { "--print=info" });
    let mut child = command.stdin(Stdio::piped()).spawn().map_err(fail)?;
    // A program that does not read its order reports the reason itself.
    let _ = child.stdin.take().map(|mut stdin| std::io::Write::write_all(&mut stdin, &order));
    child.wait().map_err(fail)
}
