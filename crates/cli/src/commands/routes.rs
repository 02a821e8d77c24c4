//! `howdah routes`: lists the routes that were demoted to classic mode because they failed or were slower in their
//! pool.

use crate::commands::status::text::compared_with;
use crate::control::client::{order, server_status};
use crate::control::parameter::{self, PATH};
use crate::output;
use crate::output::plain;
use anyhow::Result;
use howdah_config::AdminAddress;
use howdah_observe::escape;
use serde_json::{Value, json};
use std::fmt::Write;
use std::process::ExitCode;

/// Prints the demoted routes, or returns one to its pool.
pub(crate) fn run(admin: &AdminAddress, restore: Option<&str>, as_json: bool) -> Result<ExitCode> {
    if let Some(path) = restore {
        return order(admin, &format!("/routes/restore?{PATH}{}", parameter::encoded(path)));
    }
    let status = server_status(admin)?;
    if as_json {
        let of_pool = |pool: &Value| {
            json!({
                "pool": pool["name"], "compared_with": pool["compared_with"], "compared": pool["compared"],
                "demoted": pool["demoted"], "suspected": pool["suspected"],
            })
        };
        let pools: Vec<Value> = compared(&status).map(of_pool).collect();
        output::print(escape::of_json(&serde_json::to_string_pretty(&pools)?) + "\n")?;
    } else {
        output::print(list(&status))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Pools with a comparison.
fn compared(status: &Value) -> impl Iterator<Item = &Value> {
    status["pools"].as_array().into_iter().flatten().filter(|pool| pool["compared_with"].is_string())
}

fn list(status: &Value) -> String {
    let mut out = String::new();
    for pool in compared(status) {
        let _ = writeln!(out, "pool {}", plain(pool["name"].as_str().unwrap_or("-")));
        compared_with(&mut out, pool);
        for route in pool["suspected"].as_array().into_iter().flatten() {
            let number = |name: &str| route[name].as_u64().unwrap_or(0);
            let _ = write!(out, "  suspected: {}", plain(route["route"].as_str().unwrap_or("-")));
            let _ = write!(out, " ({} of {} responses differed", number("differed"), number("compared"));
            let facts = [("slower", "took longer"), ("deaths", "workers died"), ("searched", "requests were not warm")];
            for (count, what) in facts.map(|(name, what)| (number(name), what)) {
                if count > 0 {
                    let _ = write!(out, ", {count} {what}");
                }
            }
            out.push_str(")\n");
        }
    }
    if out.is_empty() {
        out.push_str("no pool is compared with classic mode: see `compare_one_in`\n");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pools_that_are_not_compared_are_not_listed() {
        let status = json!({"pools": [{"name": "default", "compared_with": null}]});
        assert!(list(&status).contains("compare_one_in"));
        let status = json!({"pools": [{"name": "default"}, {
            "name": "shop", "compared_with": "plain", "compared": {"same": 5, "slower": 2, "differs": 3, "skipped": 1},
            "demoted": [{"route": "/cart", "since": 0, "reason": "3 of 4 responses differed\u{1b}[2J"}],
            "suspected": [{"route": "/items/#", "differed": 1, "slower": 1, "compared": 2, "deaths": 1}],
        }]});
        let text = list(&status);
        assert!(
            text.starts_with(
                "pool shop\n  compared with plain: 10 responses, 3 differed, 2 took longer; 1 not compared\n"
            ),
            "{text}"
        );
        assert!(text.contains(": /cart: 3 of 4 responses differed\\u{1b}[2J\n"), "{text}");
        assert!(
            text.ends_with("  suspected: /items/# (1 of 2 responses differed, 1 took longer, 1 workers died)\n"),
            "{text}"
        );
    }
}
