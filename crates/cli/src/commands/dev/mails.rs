//! Mails of an application under `dev`: PHP passes them to `howdah sendmail`; `howdah mails` shows them.
//!
//! Each mail is a file whose name begins with the time, so names sort by time. A file gets its final name when it is
//! complete.

use crate::output;
use anyhow::{Context, Result, bail};
use howdah_config::ServeFlags;
use howdah_observe::escape;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

/// Maximum number of stored mails; the oldest are deleted.
const MAX_MAILS: usize = 500;
/// Maximum size of a mail; larger ones are refused, as by a mail server.
const MAX_MAIL_LEN: u64 = 64 * 1024 * 1024;
const ENDING: &str = "eml";

/// Directory with the mails of a project.
pub(super) fn store(state: &Path, project: &Path) -> PathBuf {
    let name: String = project.to_string_lossy().chars().map(|c| if c == '/' { '-' } else { c }).collect();
    let start = name.char_indices().rev().nth(199).map_or(0, |(at, _)| at);
    state.join("dev-mails").join(name[start..].trim_matches('-'))
}

/// `howdah sendmail`: stores the mail on standard input.
pub(crate) fn keep(into: &Path) -> Result<ExitCode> {
    let at = || format!("cannot keep a mail in {}", into.display());
    DirBuilder::new().recursive(true).mode(0o700).create(into).with_context(at)?;
    let time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let name = format!("{:020}-{}", time.as_nanos(), std::process::id());
    let unfinished = into.join(format!("{name}.part"));
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&unfinished).with_context(at)?;
    let copied = std::io::copy(&mut std::io::stdin().lock().take(MAX_MAIL_LEN + 1), &mut file);
    let done = copied.and_then(|length| match length {
        0..=MAX_MAIL_LEN => std::fs::rename(&unfinished, into.join(format!("{name}.{ENDING}"))),
        _ => Err(std::io::Error::other("the mail is too long")),
    });
    if let Err(error) = done {
        let _ = std::fs::remove_file(&unfinished);
        return Err(error).with_context(at);
    }
    for old in all(into)?.into_iter().skip(MAX_MAILS) {
        let _ = std::fs::remove_file(old);
    }
    Ok(ExitCode::SUCCESS)
}

/// `howdah mails`.
pub(crate) fn run(
    mut flags: ServeFlags,
    directory: Option<&Path>,
    show: Option<usize>,
    clears: bool,
) -> Result<ExitCode> {
    let project = std::fs::canonicalize(directory.unwrap_or(Path::new("."))).context("cannot find the project")?;
    let file = project.join("howdah.toml");
    if flags.config.is_none() && file.is_file() {
        flags.config = Some(file);
    }
    let acme = howdah_config::find_acme(&flags).map_err(|errors| anyhow::anyhow!("{errors}"))?;
    // The server may have been started with other flags, and thus with another state directory.
    let stores = [acme.state].into_iter().chain(super::states()).map(|state| store(&state, &project));
    let store = stores.reduce(|first, other| if first.is_dir() { first } else { other }).unwrap_or_default();
    let mails = all(&store)?;
    if let Some(number) = show {
        match number.checked_sub(1).and_then(|at| mails.get(at)) {
            Some(path) => output::copy(File::open(path)?)?,
            None => bail!("there is no mail {number}; `howdah mails` lists {}", mails.len()),
        }
    } else if clears {
        for path in &mails {
            std::fs::remove_file(path).with_context(|| format!("cannot remove {}", path.display()))?;
        }
    } else if mails.is_empty() {
        output::print(format!("No mails from {}.\n", project.display()))?;
    } else {
        for (number, path) in (1..).zip(&mails) {
            output::print(line(number, path)? + "\n")?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Paths of all mails, the newest first.
fn all(store: &Path) -> Result<Vec<PathBuf>> {
    let entries = match std::fs::read_dir(store) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error).with_context(|| format!("cannot read {}", store.display())),
    };
    let paths = entries.flatten().map(|entry| entry.path());
    let mut mails: Vec<PathBuf> = paths.filter(|path| path.extension().is_some_and(|end| end == ENDING)).collect();
    mails.sort_by(|a, b| b.cmp(a));
    Ok(mails)
}

/// Summary of a mail: number, time, recipient and subject.
fn line(number: usize, path: &Path) -> Result<String> {
    let (mut to, mut subject) = (String::new(), String::new());
    let time = std::fs::metadata(path)?.modified().map(howdah_observe::log_time).unwrap_or_default();
    for line in BufReader::new(File::open(path)?.take(64 * 1024)).split(b'\n') {
        let line = line?;
        let line = String::from_utf8_lossy(line.strip_suffix(b"\r").unwrap_or(&line)).into_owned();
        if line.is_empty() {
            break;
        }
        match line.split_once(':') {
            Some((name, value)) if name.eq_ignore_ascii_case("to") => to = printable(value),
            Some((name, value)) if name.eq_ignore_ascii_case("subject") => subject = printable(value),
            _ => {}
        }
    }
    Ok(format!("{number:>3}  {time}  {to}  {subject}"))
}

/// Removes control characters, because the terminal must not execute a mail's content.
fn printable(value: &str) -> String {
    value.trim().chars().filter(|letter| escape::is_plain(*letter)).collect()
}
