//! `howdah doctor`: reads the application's settings and runs the doctor on it; the doctor starts this program as its
//! servers.

use crate::output::{self, complain};
use anyhow::{Context, Result, bail};
use howdah_config::cli::DoctorFlags;
use howdah_config::{Loaded, ServeFlags, Settings, SiteSettings};
use howdah_doctor::against::{self, Origin};
use howdah_doctor::shadow::{Shadow, shadow};
use howdah_doctor::{Mode, Options, Report};
use howdah_observe::escape;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Exit status if the application has leaks that the earlier report does not have, or responses that differ from the
/// other server's.
const WORSE: u8 = 1;

/// File name that stands for standard output.
const STDOUT: &str = "-";

/// Maximum number of pages to request, unless `--pages` sets another.
const PAGES: u64 = 40;

/// Exit status if nothing could be tested.
const NOT_TRIED: u8 = 2;

pub(crate) fn run(flags: &DoctorFlags) -> ExitCode {
    match examined(flags) {
        Ok(false) => ExitCode::from(WORSE),
        Ok(true) => ExitCode::SUCCESS,
        Err(error) => {
            complain(format_args!("howdah: {error:#}"));
            ExitCode::from(NOT_TRIED)
        }
    }
}

/// Returns `true` if there are no new problems.
fn examined(flags: &DoctorFlags) -> Result<bool> {
    // Paths are relative to the current directory, not to the application's.
    let from_here = |path: &Option<PathBuf>| path.as_deref().map(absolute).transpose();
    let is_stdout = flags.json.as_deref() == Some(Path::new(STDOUT));
    let (list, html) = (from_here(&flags.list)?, from_here(&flags.html)?);
    let json = if is_stdout { flags.json.clone() } else { from_here(&flags.json)? };
    let write_loop = from_here(&flags.write_loop)?;
    let address = flags.against.as_deref().and_then(Path::to_str).filter(|against| against.contains("://"));
    let origin = address.map(Origin::parse).transpose()?;
    if flags.listen.is_some() && origin.is_none() {
        bail!("--listen needs a server to forward requests to: --against http://HOST");
    }
    let last = match origin {
        Some(_) => None,
        None => from_here(&flags.against)?.map(|path| last(&path)).transpose()?,
    };
    let config = from_here(&flags.config)?;
    let dir = &flags.directory;
    std::env::set_current_dir(dir).with_context(|| format!("cannot enter {}", dir.display()))?;
    let project = std::env::current_dir()?;
    let mut loaded = load(flags, config)?;
    if let Some(site) = site(flags, &loaded)? {
        loaded.settings = loaded.settings.of_one_site(&site);
    }
    // The settings may be in another directory; the directory to copy with its databases is the served one.
    let root = &loaded.settings.root;
    let project = if root.starts_with(&project) { project } else { root.clone() };
    let modes: Vec<Mode> = flags.modes.iter().filter_map(|name| Mode::tried(name)).collect();
    let options = Options {
        program: std::env::current_exe().context("cannot determine the path of this program")?,
        application: name(&loaded, &project),
        settings: loaded.show(),
        project,
        users: users(&loaded.settings),
        list,
        pages: usize::try_from(flags.pages.unwrap_or(PAGES))?,
        visitors: usize::try_from(flags.visitors)?,
        modes: if modes.is_empty() { Mode::TRIED.to_vec() } else { modes },
        writes: flags.writes,
        write_loop,
        last,
        progress: if flags.quiet { |_| () } else { |line| complain(line) },
    };
    if let Some(origin) = origin {
        let comparison = match &flags.listen {
            Some(listen) => {
                let most = flags.pages.map(usize::try_from).transpose()?;
                shadow(
                    &options,
                    &origin,
                    &Shadow { listen: listen.clone(), share: flags.share, sessions: flags.sessions, most },
                )?
            }
            None => against::compare(&options, &origin)?,
        };
        print(&comparison, &against::text(&comparison), json.as_deref())?;
        return Ok(comparison.different.is_empty());
    }
    let report = howdah_doctor::run(&options)?;
    print(&report, &howdah_doctor::text(&report), json.as_deref())?;
    if let Some(path) = html {
        write(&path, &howdah_doctor::page(&report))?;
    }
    Ok(report.new_leaks.is_none_or(|new| new.is_empty()))
}

/// Prints a report as text, or writes it as JSON to standard output or a file.
fn print(report: &impl Serialize, text: &str, json: Option<&Path>) -> Result<()> {
    let is_stdout = json == Some(Path::new(STDOUT));
    let as_json = serde_json::to_string_pretty(report)?;
    // The file comes first: printing may fail.
    if let Some(path) = json.filter(|_| !is_stdout) {
        write(path, &as_json)?;
    }
    output::print(if is_stdout { escape::of_json(&(as_json + "\n")) } else { text.to_owned() })
}

/// Users of the doctor's servers and their PHP; only root can switch to them.
fn users(settings: &Settings) -> Vec<u32> {
    if !rustix::process::geteuid().is_root() {
        return Vec::new();
    }
    let pools = settings.pools.iter().map(|pool| settings.account_of(pool));
    // The server itself reports a user that does not exist.
    let accounts = pools.chain([settings.account()]).filter_map(|account| account.ok().flatten());
    accounts.map(|account| account.uid).filter(|uid| *uid != 0).collect()
}

fn absolute(path: &Path) -> Result<PathBuf> {
    std::path::absolute(path).with_context(|| format!("{} is not a path", path.display()))
}

fn write(path: &Path, text: &str) -> Result<()> {
    std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

fn last(path: &Path) -> Result<Report> {
    let text = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    serde_json::from_slice(&text).with_context(|| format!("{} is not a report of `howdah doctor`", path.display()))
}

/// Settings of `howdah serve` for the application's directory.
fn load(flags: &DoctorFlags, config: Option<PathBuf>) -> Result<Loaded> {
    let mut serve = ServeFlags { config, ..ServeFlags::default() };
    if let Some(php) = &flags.php {
        serve.set("php.binary", php);
    }
    if flags.allow_root {
        serve.set("allow_root", "true");
    }
    let loaded = howdah_config::load(&serve);
    if loaded.is_err() && flags.write_loop.is_some() {
        // The settings may name the script that the doctor is about to create.
        serve.set("mode", "classic");
        serve.set("script", "");
        if let Ok(loaded) = howdah_config::load(&serve) {
            return Ok(loaded);
        }
    }
    loaded.map_err(|errors| anyhow::anyhow!("{errors}"))
}

/// Returns the site to test, if the settings have sites: the named one, or the only one.
fn site(flags: &DoctorFlags, loaded: &Loaded) -> Result<Option<SiteSettings>> {
    let sites = &loaded.settings.sites;
    let names = || sites.iter().map(|site| site.name.as_str()).collect::<Vec<_>>().join(", ");
    match (&flags.site, &sites[..]) {
        (Some(name), sites) => match sites.iter().find(|site| site.name == *name) {
            Some(site) => Ok(Some(site.clone())),
            None => bail!("unknown site {name}; configured sites: {}", names()),
        },
        (None, []) => Ok(None),
        (None, [only]) => Ok(Some(only.clone())),
        (None, _) => bail!("several sites are configured; choose one with --site: {}", names()),
    }
}

fn name(loaded: &Loaded, project: &Path) -> String {
    let directory = project.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    match &loaded.found {
        Some(found) => format!("{} in {directory}", found.title()),
        None => directory,
    }
}
