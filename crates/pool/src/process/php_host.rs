//! Runs a pool's `howdah-php` for one answer: its version and a report on its sandbox, for `howdah check`, or PHP's
//! information, for `howdah-fpm -i` and `-m`.

use crate::config::PoolConfig;
use crate::process::program::Program;
use std::process::{ExitStatus, Stdio};

/// The program's version and that of its PHP. PHP is not started.
///
/// # Errors
/// The reason why it does not run: it is missing, it is another program, or its libphp is missing.
pub fn php_host(config: &PoolConfig) -> Result<String, String> {
    let program = Program::of(config);
    let fail = |error: std::io::Error| program.explain(&error);
    let mut command = program.command().map_err(fail)?;
    let output = command.arg("--version").stdin(Stdio::null()).output().map_err(fail)?;
    let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().replace('\n', "; ");
    let version = said(&output.stdout);
    if output.status.success() && version.starts_with("howdah-php ") {
        return Ok(version);
    }
    let words = said(&output.stderr);
    let words = if words.is_empty() { format!("it is not howdah-php ({})", output.status) } else { words };
    Err(format!("{} does not run: {words}{}", program.binary.display(), advice(&words)))
}

/// Prints phpinfo() or the names of all modules (`modules`) on this process's standard output.
///
/// # Errors
/// The reason why the program does not run.
pub fn print_php(config: &PoolConfig, modules: bool) -> Result<ExitStatus, String> {
    let argument = if modules { "--print=modules" } else { "--print=info" };
    let mut child = Program::start_once(config, argument, Stdio::inherit(), Stdio::inherit())?;
    child.wait().map_err(|error| error.to_string())
}

/// Returns the lines that `howdah-php` prints about a pool's sandbox and this kernel. PHP starts for that, but none of
/// the application's code runs.
///
/// # Errors
/// The reason why there are none.
pub fn sandbox_report(config: &PoolConfig) -> Result<Vec<String>, String> {
    let child = Program::start_once(config, "--sandbox", Stdio::piped(), Stdio::piped())?;
    let output = child.wait_with_output().map_err(|error| error.to_string())?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).lines().map(str::to_owned).collect::<Vec<_>>();
    let mut lines = text(&output.stdout);
    if lines.is_empty() || !output.status.success() {
        lines.extend(text(&output.stderr));
        if lines.is_empty() {
            lines.push(format!("it printed nothing ({})", output.status));
        }
        return Err(lines.join("; "));
    }
    Ok(lines)
}

/// Advice for a dynamic linker's message, which names the library but not the package.
pub(crate) fn advice(words: &str) -> &'static str {
    let of_linker = words.contains("error while loading shared libraries") || words.contains("symbol lookup error");
    if of_linker && words.contains("libphp") {
        "; howdah-php runs only with the libphp that it was built for: install that (Debian: libphpX.Y-embed), or \
         name the howdah-php of an installed PHP"
    } else {
        ""
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_missing_libphp_gets_advice() {
        let missing = "x: error while loading shared libraries: /usr/lib/libphp8.4.so: cannot open shared object file";
        assert!(advice(missing).contains("libphpX.Y-embed"));
        assert_eq!(advice("x: error while loading shared libraries: libz.so.1: cannot open"), "");
        assert_eq!(advice("PHP Fatal error: libphp"), "");
    }
}
