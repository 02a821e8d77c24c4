//! Runs `howdah doctor` on the application, if this Howdah has that command.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::Result;
use serde_json::Value;

use crate::interrupt::Interrupt;
use crate::load::program;
use crate::systems::howdah;

/// It tests the application in every mode, which takes minutes.
const DOCTOR_TIMEOUT: Duration = Duration::from_secs(600);

/// Runs it. Returns `None` if there is no such command, otherwise its verdict in sentences, or the reason why there is
/// none.
pub fn ask(app: &Path, out: &Path) -> Option<Vec<String>> {
    let server = howdah::server()?;
    let help = Command::new(&server).args(["doctor", "--help"]).stdin(Stdio::null()).output().ok()?;
    if !help.status.success() || !String::from_utf8_lossy(&help.stdout).contains("--json") {
        return None;
    }
    eprintln!("asking howdah doctor");
    let report = out.join("doctor.json");
    let verdict = run(&server, app, &report).map(|text| sentences(&text));
    Some(verdict.unwrap_or_else(|error| vec![format!("howdah doctor reached no verdict: {error:#}")]))
}

fn run(server: &Path, app: &Path, report: &Path) -> Result<Value> {
    let mut command = Command::new(server);
    command.arg("doctor").arg(app).arg("--json").arg(std::path::absolute(report)?);
    // The lab may run as root. The exit status reports leaks, and so does the report.
    command.env("HOWDAH_ALLOW_ROOT", "true");
    let ended = program::run(&mut [command], DOCTOR_TIMEOUT, &Interrupt::default());
    match fs::read(report) {
        Ok(text) => Ok(serde_json::from_slice(&text)?),
        Err(error) => Err(ended.err().unwrap_or_else(|| error.into())),
    }
}

/// Returns its report about each mode and about all of them, as far as this version of the lab knows the fields.
fn sentences(report: &Value) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(mode) = report["advice"]["mode"].as_str() {
        let faster = report["advice"]["faster"].as_f64();
        let faster =
            faster.map_or_else(String::new, |times| format!(", {times:.1} times as fast as classic mode overall"));
        lines.push(format!("howdah doctor advises {mode} mode{faster}."));
    }
    for mode in report["modes"].as_array().into_iter().flatten() {
        let Some(name) = mode["mode"].as_str() else { continue };
        if let Some(reason) = mode["fails"].as_str() {
            lines.push(format!("{name} mode does not run: {reason}"));
        } else if let Some(safe) = mode["safe"].as_array() {
            let fine = safe.iter().filter(|safe| safe.as_bool() == Some(true)).count();
            lines.push(format!("{name} mode is safe for {fine} of {} pages.", safe.len()));
        }
    }
    let kept = report["advice"]["classic_routes"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let kept: Vec<&str> = kept.collect();
    if !kept.is_empty() {
        lines.push(format!("These stay in classic mode: {}.", kept.join(", ")));
    }
    if lines.is_empty() {
        lines.push("howdah doctor wrote a report that this lab cannot read: doctor.json".to_owned());
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_verdict_names_each_mode() {
        let report = json!({
            "advice": {"mode": "snapshot", "faster": 3.25, "classic_routes": ["GET /cart"]},
            "modes": [{"mode": "worker", "safe": [true, false]}, {"mode": "async", "fails": "no script", "safe": []}],
        });
        let text = sentences(&report).join("\n");
        assert!(
            text.contains("advises snapshot mode, 3.2 times") || text.contains("advises snapshot mode, 3.3 times"),
            "{text}"
        );
        assert!(text.contains("worker mode is safe for 1 of 2 pages"), "{text}");
        assert!(text.contains("async mode does not run: no script") && text.contains("GET /cart"), "{text}");
        assert!(sentences(&json!({})).join("").contains("cannot read"));
    }
}
