//! The routes that run in classic mode because they failed elsewhere, or were slower: `howdah routes`, what `howdah status` says of them, and
//! `POST /routes/restore?path=PATH` (percent-encoded) of the admin endpoint, which gives them back to their pools.

use crate::admin_client::{order, server_status};
use crate::outcome::outcome;
use crate::pools::Pools;
use crate::status_text::{compared_with, plain};
use crate::{output, parameter};
use anyhow::Result;
use bytes::Bytes;
use howdah_config::AdminAddress;
use howdah_observe::escape;
use http_body_util::Full;
use hyper::{Response, StatusCode};
use serde_json::{Value, json};
use std::fmt::Write;
use std::process::ExitCode;

/// The order's parameter.
const PATH: &str = "path=";

/// `howdah routes`.
pub(crate) fn run(admin: &AdminAddress, restore: Option<&str>, as_json: bool) -> Result<ExitCode> {
    if let Some(path) = restore {
        return order(admin, &format!("/routes/restore?{PATH}{}", parameter::encoded(path.as_bytes())));
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

/// The pools that are compared.
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
            for (count, what) in [(number("slower"), "took longer"), (number("deaths"), "workers died")] {
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

/// The order to restore routes.
pub(crate) fn restore(pools: &Pools, query: Option<&str>) -> Response<Full<Bytes>> {
    let Some(path) = query.and_then(|query| query.strip_prefix(PATH)).and_then(decoded) else {
        return outcome(StatusCode::BAD_REQUEST, false, "POST /routes/restore?path=PATH, or path=* for all routes");
    };
    let restored: usize = pools.iter().filter_map(|pool| pool.demotions()).map(|pool| pool.restore(&path)).sum();
    match restored {
        0 => outcome(StatusCode::NOT_FOUND, false, &format!("no route was demoted for {path}: see `howdah routes`")),
        1 => outcome(StatusCode::OK, true, "one route runs in its pool again"),
        more => outcome(StatusCode::OK, true, &format!("{more} routes run in their pools again")),
    }
}

/// The path of an order. It is a text, and not empty.
fn decoded(parameter: &str) -> Option<String> {
    String::from_utf8(parameter::decoded(parameter)?).ok().filter(|path| !path.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_reaches_the_server_as_it_is() {
        for path in ["/", "*", "/items/#", "/a b/%41?x=1&y=ü"] {
            assert_eq!(decoded(&parameter::encoded(path.as_bytes())).as_deref(), Some(path));
        }
        for wrong in ["", "%", "%4", "%zz", "%ff"] {
            assert_eq!(decoded(wrong), None, "{wrong}");
        }
    }

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
