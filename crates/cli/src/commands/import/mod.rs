//! Converts configurations of other servers to a `howdah.toml`, with one module per server. `howdah init FILE` writes
//! it, with a comment for each original line: taken, changed or dropped, and why.

mod apache;
mod caddy;
mod directive;
mod flat;
mod include;
#[cfg(test)]
mod loading;
mod nginx;
mod octane;
mod page;
mod report;
mod roadrunner;
mod site;
mod table;
mod unit;
mod yaml;

use super::fpm;
pub(crate) use include::text;
use serde_json::Value;
use std::path::Path;

/// Converts a configuration. The file's name decides if the format is ambiguous.
///
/// # Errors
/// A mistake in the configuration.
pub(crate) fn converted(path: &Path, text: &str) -> Result<String, String> {
    let name = path.file_name().map(|name| name.to_string_lossy().to_ascii_lowercase()).unwrap_or_default();
    let comment = |line: &&str| line.is_empty() || line.starts_with([';', '#']);
    let first = text.lines().map(str::trim).find(|line| !comment(line)).unwrap_or_default();
    if name.ends_with(".yaml") || name.ends_with(".yml") {
        roadrunner::converted(text)
    } else if first.starts_with("<?php") {
        // For `config/octane.php`: `env()` reads the `.env` of the directory above.
        let environment = path.parent().and_then(Path::parent).map(|project| project.join(".env"));
        octane::converted(text, &environment.and_then(|file| std::fs::read_to_string(file).ok()).unwrap_or_default())
    } else if name.ends_with(".json") || (first.starts_with('{') && serde_json::from_str::<Value>(text).is_ok()) {
        unit::converted(text)
    } else if first.starts_with('[') && first.ends_with(']') {
        fpm::init::converted(text, path)
    } else if is_apache(text) {
        apache::converted(text, path.parent())
    } else if name.contains("caddyfile") || is_caddy(text) {
        caddy::converted(text, path.parent())
    } else if text.contains('{') && !first.starts_with('{') {
        nginx::converted(text, path.parent())
    } else {
        Err("this is not a configuration of nginx, Apache, Caddy, PHP-FPM, Unit, RoadRunner or Octane".to_owned())
    }
}

/// `true` if the text has a section or directive that only Apache has.
fn is_apache(text: &str) -> bool {
    text.lines().map(str::trim).any(|line| {
        let is_section = ["<VirtualHost", "<Directory", "<Location", "<IfModule", "<Files"].iter();
        is_section.chain(&["DocumentRoot ", "Alias "]).any(|start| line.starts_with(start)) && !line.starts_with("</")
    })
}

/// `true` if the text has a directive that only a Caddyfile has; in nginx, lines end with a semicolon.
fn is_caddy(text: &str) -> bool {
    let mut lines = text.lines().map(str::trim);
    let names = ["php_server", "php_fastcgi", "file_server", "reverse_proxy", "root *", "respond", "redir", "handle"];
    lines.any(|line| !line.ends_with(';') && names.iter().any(|name| line.starts_with(name)))
}
