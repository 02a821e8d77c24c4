//! `howdah explain`: prints how a request would be handled.

use crate::output;
use anyhow::{Result, anyhow};
use howdah_budget::Budgets;
use howdah_config::Loaded;
use howdah_observe::{AccessLogs, Metrics, escape};
use howdah_site::Sites;
use howdah_site::explain::{Explanation, Question, explain};
use serde_json::json;
use std::process::ExitCode;
use std::sync::Arc;

/// Prints the explanation as text or JSON.
pub(crate) fn run(loaded: &Loaded, question: &Question, as_json: bool) -> Result<ExitCode> {
    let settings = Arc::new(loaded.settings.clone());
    let budgets = Budgets::new(settings.http.memory.bytes(), settings.http.spool.bytes());
    // Nothing is served, so no log is opened.
    let sites =
        Sites::new(settings, Metrics::new(), &AccessLogs::default(), budgets).map_err(|error| anyhow!(error))?;
    let found = explain(&sites, question).map_err(|error| anyhow!(error))?;
    output::print(if as_json { escape::of_json(&format!("{:#}\n", json(&found))) } else { text(question, &found) })?;
    Ok(ExitCode::SUCCESS)
}

fn text(question: &Question, found: &Explanation) -> String {
    let notes = found.notes.iter().map(|note| format!("  {:<9} {}\n", note.about, note.text));
    let result = match (&found.script, &found.file, &found.location) {
        _ if found.proxy.is_some() => format!("forwarded to the proxy {}", found.proxy.as_deref().unwrap_or_default()),
        (Some(script), ..) => format!("runs {} in the pool {}", script.filename, script.pool),
        (None, Some(file), _) => format!("{}: the file {file}", found.status.unwrap_or(0)),
        (None, None, Some(location)) => format!("{}: redirect to {location}", found.status.unwrap_or(0)),
        (None, None, None) => found.status.unwrap_or(0).to_string(),
    };
    format!("{} {}\n{}  => {result}\n", question.method, question.url, notes.collect::<String>())
}

fn json(found: &Explanation) -> serde_json::Value {
    let script = found.script.as_ref().map(|script| {
        json!({
            "filename": script.filename,
            "name": script.name,
            "path_info": script.path_info,
            "pool": script.pool,
        })
    });
    let steps: Vec<_> = found.notes.iter().map(|note| json!({ "about": note.about, "text": note.text })).collect();
    json!({
        "site": found.site,
        "status": found.status,
        "file": found.file,
        "location": found.location,
        "script": script,
        "proxy": found.proxy,
        "steps": steps,
    })
}
