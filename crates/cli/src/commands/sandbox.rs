//! `howdah status --sandbox`: prints the sandbox settings that pools in learning mode need. Also the lines of
//! `howdah check` about sandboxes.

use crate::control::client::server_status;
use crate::output;
use crate::server::pools;
use anyhow::Result;
use howdah_budget::Budgets;
use howdah_config::{AdminAddress, Settings};
use serde_json::Value;
use std::fmt::Write;
use std::process::ExitCode;

/// Prints the settings.
pub(crate) fn run(admin: &AdminAddress) -> Result<ExitCode> {
    output::print(learnt(&server_status(admin)?))?;
    Ok(ExitCode::SUCCESS)
}

/// Sandbox report of each pool's `howdah-php`, as comments, because the rest of `howdah check` is a `howdah.toml`.
pub(crate) fn reports(settings: &Settings) -> String {
    let mut out = String::new();
    for pool in &settings.pools {
        let _ = writeln!(out, "\n# Sandbox of pool {}: profile \"{}\"", pool.name, pool.sandbox.profile);
        let config = pools::pool_config(settings, pool, Budgets::new(0, 0));
        match config.and_then(|config| howdah_pool::sandbox_report(&config)) {
            Ok(lines) => lines.iter().for_each(|line| {
                let _ = writeln!(out, "#   {line}");
            }),
            Err(why) => {
                let _ = writeln!(out, "#   unknown: {}", why.replace('\n', "; "));
            }
        }
    }
    out
}

/// Sections of `howdah.toml` with the permissions that each pool in learning mode has needed, from the server's status.
fn learnt(status: &Value) -> String {
    let mut out = String::new();
    for pool in status["pools"].as_array().into_iter().flatten().filter(|pool| pool["sandbox"] == "learn") {
        let name = pool["name"].as_str().unwrap_or_default();
        let section = if name == "default" { "sandbox".to_owned() } else { format!("pool.{name}.sandbox") };
        if !out.is_empty() {
            out.push('\n');
        }
        let _ = writeln!(out, "[{section}]\nprofile = \"app\"");
        let empty = Vec::new();
        let needs = pool["sandbox_needs"].as_array().unwrap_or(&empty);
        for key in ["read", "write", "write_code", "execute", "connect", "bind", "allow"] {
            let mut values: Vec<&Value> =
                needs.iter().filter(|need| need["kind"] == key).map(|need| &need["what"]).collect();
            // A directory includes everything below it.
            if matches!(key, "write" | "write_code" | "read") {
                let all = values.clone();
                values.retain(|value| !all.iter().any(|other| is_below(value, other)));
            }
            if !values.is_empty() {
                // Texts and numbers in JSON are valid TOML.
                let values: Vec<String> = values.iter().map(ToString::to_string).collect();
                let _ = writeln!(out, "{key} = [{}]", values.join(", "));
            }
        }
    }
    if out.is_empty() {
        out.push_str("# No pool of this server is in learning mode: set `sandbox = \"learn\"`.\n");
    }
    out
}

fn is_below(path: &Value, other: &Value) -> bool {
    let (Some(path), Some(other)) = (path.as_str(), other.as_str()) else { return false };
    path.strip_prefix(other).is_some_and(|rest| rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn permissions_that_a_pool_has_learned_become_its_section() {
        let need = |kind: &str, what: Value| json!({"kind": kind, "what": what});
        let status = json!({"pools": [
            {"name": "default", "sandbox": "app", "sandbox_needs": []},
            {"name": "shop", "sandbox": "learn", "sandbox_needs": [
                need("write", json!("/srv/shop/files/a")), need("write", json!("/srv/shop/files")),
                need("read", json!("/etc/\"odd\"")), need("connect", json!(3306)), need("connect", json!(6379)),
            ]},
        ]});
        let expected = "[pool.shop.sandbox]\nprofile = \"app\"\nread = [\"/etc/\\\"odd\\\"\"]\nwrite = [\"/srv/shop/files\"]\nconnect = [3306, 6379]\n";
        assert_eq!(learnt(&status), expected);
        assert!(learnt(&json!({"pools": []})).starts_with('#'));
    }
}
