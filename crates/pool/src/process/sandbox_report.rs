//! Asks a pool's `howdah-php` for a report on its sandbox, for `howdah check`.

use crate::config::PoolConfig;
use crate::process::program::Program;
use std::io::Write;
use std::process::Stdio;

/// Returns the lines that `howdah-php` prints about a pool's sandbox and this kernel. PHP starts for that, but none of
/// the application's code runs. The error explains why there are none.
pub fn sandbox_report(config: &PoolConfig) -> Result<Vec<String>, String> {
    let fail = |error: std::io::Error| format!("{}: {error}", config.settings.php.binary.path.display());
    let order = serde_json::to_vec(&config.boot).map_err(|error| error.to_string())?;
    let mut command = Program::of(config).command().map_err(fail)?;
    command.arg("--sandbox").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(fail)?;
    let sent = child.stdin.take().map_or(Ok(()), |mut stdin| stdin.write_all(&order));
    let output = child.wait_with_output().map_err(fail)?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).lines().map(str::to_owned).collect::<Vec<_>>();
    let mut lines = text(&output.stdout);
    if lines.is_empty() || !output.status.success() {
        lines.extend(text(&output.stderr));
        lines.extend(sent.err().map(|error| error.to_string()));
        return Err(lines.join("; "));
    }
    Ok(lines)
}
