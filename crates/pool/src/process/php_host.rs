//! Asks a pool's `howdah-php` for its version, for `howdah check`.

use crate::config::PoolConfig;
use crate::process::program::Program;
use std::process::Stdio;

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

/// Advice for a dynamic linker's message, which names the library but not the package.
pub(crate) fn advice(words: &str) -> &'static str {
    let of_linker = words.contains("error while loading shared libraries") || words.contains("symbol lookup error");
    if of_linker && words.contains("libphp") {
        "; a howdah-php runs with the libphp that it was built with alone: install that (Debian: libphpX.Y-embed), or name the \
         howdah-php of a PHP that is there"
    } else {
        ""
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_that_is_missing_gets_advice_and_others_get_none() {
        let missing = "x: error while loading shared libraries: /usr/lib/libphp8.4.so: cannot open shared object file";
        assert!(advice(missing).contains("libphpX.Y-embed"));
        assert_eq!(advice("x: error while loading shared libraries: libz.so.1: cannot open"), "");
        assert_eq!(advice("PHP Fatal error: libphp"), "");
    }
}
