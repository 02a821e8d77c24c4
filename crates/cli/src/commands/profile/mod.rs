//! `howdah profile`: samples the stacks of a running server's pool for a while and writes the profile in the format of
//! a viewer. Each format has a file here: `flame_graph` (SVG) and `folded`.

mod flame_graph;
mod folded;

use crate::control::client::ask_within;
use crate::control::outcome::Outcome;
use crate::output;
use crate::output::plain_lines;
use anyhow::{Context, Result, bail};
use howdah_config::AdminAddress;
use howdah_config::cli::{ProfileFlags, ProfileFormat};
use howdah_pool::Profile;
use howdah_transport::php_stack::StackFrame;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

/// Extra time for the server's response, on top of the profile's duration.
const RESPONSE_MARGIN: Duration = Duration::from_secs(30);

/// `howdah profile`.
pub(crate) fn run(admin: &AdminAddress, flags: &ProfileFlags) -> Result<ExitCode> {
    output::complain(make(admin, flags)?);
    Ok(ExitCode::SUCCESS)
}

/// Requests a profile and writes it; returns a summary.
pub(crate) fn make(admin: &AdminAddress, flags: &ProfileFlags) -> Result<String> {
    let path = format!("/pools/{}/profile?seconds={}&rate={}", flags.pool, flags.seconds, flags.rate);
    let (code, body) = ask_within(admin, "POST", &path, Duration::from_secs(flags.seconds) + RESPONSE_MARGIN)?;
    if code != 200 {
        let said = serde_json::from_str::<Outcome>(&body).map_or(body, |outcome| outcome.message);
        bail!("{}", plain_lines(&said));
    }
    let profile: Profile = serde_json::from_str(&body).context("the server's response is not a profile")?;
    let (format, output) = flags.target();
    let text = render(&profile, format);
    if output == Path::new("-") {
        output::print_bytes(&text)?;
    } else {
        std::fs::write(&output, text).with_context(|| format!("cannot write {}", output.display()))?;
    }
    Ok(summary(&profile, &output))
}

pub(crate) fn render(profile: &Profile, format: ProfileFormat) -> String {
    match format {
        ProfileFormat::Svg => flame_graph::render(profile),
        ProfileFormat::Folded => folded::render(profile),
    }
}

fn summary(profile: &Profile, output: &Path) -> String {
    let samples = samples(profile);
    let mut text = format!(
        "{}: {samples} samples of pool {} in {} s at {} Hz",
        output.display(),
        profile.pool,
        profile.milliseconds as f64 / 1000.0,
        profile.rate
    );
    if samples == 0 {
        text.push_str("; no sample found a running request");
    }
    if profile.unread > 0 {
        text.push_str(&format!("; {} samples failed, as the worker's memory could not be read", profile.unread));
    }
    if profile.late > 0 {
        text.push_str(&format!("; {} samples were missed, as the machine was too busy", profile.late));
    }
    if profile.left_out > 0 {
        text.push_str(&format!("; {} samples were dropped, as the profile is full", profile.left_out));
    }
    text
}

fn samples(profile: &Profile) -> u64 {
    profile.stacks.iter().map(|(_, times)| times).sum()
}

fn outermost_first<'a>(profile: &'a Profile, stack: &'a [u32]) -> impl Iterator<Item = &'a StackFrame> {
    stack.iter().rev().filter_map(|&at| profile.frames.get(at as usize))
}

/// Name of a frame: its function, or its file for top-level code.
fn name_of(frame: &StackFrame) -> &str {
    if frame.function == "{main}" { &frame.file } else { &frame.function }
}

#[cfg(test)]
pub(crate) mod testing {
    use super::*;

    /// Three quarters of the samples in `work`, a third of these in `sort`, and one quarter in a file's top-level code.
    pub(crate) fn profile() -> Profile {
        let frame =
            |function: &str, file: &str, line| StackFrame { function: function.into(), file: file.into(), line };
        Profile {
            pool: "shop".to_owned(),
            rate: 100,
            milliseconds: 2000,
            frames: vec![
                frame("{main}", "/srv/index.php", 3),
                frame("App\\Report->work", "/srv/report.php", 12),
                frame("sort", "", 0),
                frame("{main}", "/srv/index.php", 9),
            ],
            stacks: vec![(vec![1, 0], 50), (vec![2, 1, 0], 25), (vec![3], 25)],
            ..Profile::default()
        }
    }
}
