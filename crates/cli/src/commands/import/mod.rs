//! Configurations of other servers as a `howdah.toml`: one file for each server. `howdah init FILE` writes it, with a
//! comment for each of their lines: taken, changed or dropped, and why.

mod apache;
mod caddy;
mod directive;
mod merge;
mod nginx;
mod page;
mod report;
mod site;
mod table;

use super::fpm;

/// The `howdah.toml` for the text of such a configuration. The name of the file decides where its text could be several.
///
/// # Errors
/// The mistake in it.
pub(crate) fn converted(name: &str, text: &str) -> Result<String, String> {
    let comment = |line: &&str| line.is_empty() || line.starts_with([';', '#']);
    let first = text.lines().map(str::trim).find(|line| !comment(line)).unwrap_or_default();
    if first.starts_with('[') {
        fpm::init::converted(text)
    } else if is_apache(text) {
        apache::converted(text)
    } else if name.to_ascii_lowercase().contains("caddyfile") || is_caddy(text) {
        caddy::converted(text)
    } else if text.contains('{') && !first.starts_with('{') {
        nginx::converted(text)
    } else {
        Err(UNKNOWN.to_owned())
    }
}

const UNKNOWN: &str = "it is no configuration of nginx, Apache, Caddy or PHP-FPM";

/// A section or a directive that only Apache has.
fn is_apache(text: &str) -> bool {
    text.lines().map(str::trim).any(|line| {
        let is_section = ["<VirtualHost", "<Directory", "<Location", "<IfModule", "<Files"].iter();
        is_section.chain(&["DocumentRoot ", "Alias "]).any(|start| line.starts_with(start)) && !line.starts_with("</")
    })
}

/// Directives that only a Caddyfile has; nginx's lines end in a semicolon.
fn is_caddy(text: &str) -> bool {
    let mut lines = text.lines().map(str::trim);
    let names = ["php_server", "php_fastcgi", "file_server", "reverse_proxy", "root *", "respond", "redir", "handle"];
    lines.any(|line| !line.ends_with(';') && names.iter().any(|name| line.starts_with(name)))
}
