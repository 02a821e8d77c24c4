//! Configurations of other servers as a `howdah.toml`: one file for each server. `howdah init FILE` writes it, with a
//! comment for each of their lines: taken, changed or dropped, and why.

mod nginx;
mod nginx_file;
mod nginx_location;

use super::fpm;
use howdah_config::quoted;

/// The `howdah.toml` for the text of such a configuration.
///
/// # Errors
/// The mistake in it.
pub(crate) fn converted(text: &str) -> Result<String, String> {
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with([';', '#']));
    match lines.next() {
        Some(line) if line.starts_with('[') => fpm::init::converted(text),
        Some(line) if text.contains('{') && !line.starts_with(['{', '<']) => nginx::converted(text),
        _ => Err("it is no pool of PHP-FPM, which begins with [NAME], and no configuration of nginx".to_owned()),
    }
}

/// The fate of each line of a configuration.
#[derive(Debug, Default)]
struct Report(Vec<(usize, String, String)>);

impl Report {
    fn say(&mut self, line: usize, what: impl Into<String>, became: impl Into<String>) {
        self.0.push((line, what.into(), became.into()));
    }

    /// Comments, in the order of the lines.
    fn comments(mut self) -> String {
        self.0.sort_by_key(|(line, ..)| *line);
        let lines = self.0.into_iter().map(|(line, what, became)| format!("# {line}: {what}: {became}\n"));
        format!("\n# The lines of the configuration:\n{}", lines.collect::<String>())
    }
}

/// A list, or its one element.
fn list(texts: &[String]) -> String {
    let all: Vec<String> = texts.iter().map(|text| quoted(text)).collect();
    if let [one] = &all[..] { one.clone() } else { format!("[{}]", all.join(", ")) }
}
