//! Howdah, once in each of its modes.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};

use super::{Running, Script, Site, System, found, missing, program, version_line};
use crate::record::{Role, SystemStatus};

/// A mode of Howdah.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// A full PHP request each time.
    Classic,
    /// Boot once, then loop.
    Worker,
    /// Boot once, restore after each request.
    Snapshot,
    /// Several requests at once in one process.
    Async,
}

impl Mode {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Classic, Self::Worker, Self::Snapshot, Self::Async];

    /// The word on Howdah's command line.
    pub fn word(self) -> &'static str {
        match self {
            Self::Classic => "classic",
            Self::Worker => "worker",
            Self::Snapshot => "snapshot",
            Self::Async => "async",
        }
    }
}

/// The adapter.
#[derive(Debug)]
pub struct Howdah {
    /// The mode.
    pub mode: Mode,
}

/// `$HOWDAH`, else beside the lab's own binary or in the release build next to it, else in `PATH`.
fn server() -> Option<PathBuf> {
    if let Some(path) = std::env::var_os("HOWDAH") {
        return Some(PathBuf::from(path)).filter(|path| path.is_file());
    }
    let own = std::env::current_exe().ok()?;
    let dir = own.parent()?;
    // Tests of the debug build lie one directory deeper.
    let beside = [dir.join("howdah"), dir.join("../release/howdah"), dir.join("../../release/howdah")];
    beside.into_iter().find(|path| path.is_file()).or_else(|| program("howdah"))
}

/// `$HOWDAH_PHP`, else beside the server.
fn php_host() -> Option<PathBuf> {
    if let Some(path) = std::env::var_os("HOWDAH_PHP") {
        return Some(PathBuf::from(path)).filter(|path| path.is_file());
    }
    let beside = server()?.parent()?.join("howdah-php");
    if beside.is_file() { Some(beside) } else { program("howdah-php") }
}

/// Whether this build's `serve --help` lists the mode.
fn has_mode(binary: &PathBuf, mode: Mode) -> bool {
    mode == Mode::Classic
        || Command::new(binary)
            .args(["serve", "--help"])
            .output()
            .is_ok_and(|output| lists_mode(&String::from_utf8_lossy(&output.stdout), mode))
}

fn lists_mode(help: &str, mode: Mode) -> bool {
    // Only the text that belongs to --mode: other options may use the same words.
    help.split("--mode").skip(1).any(|rest| {
        let option = rest.split("\n      --").next().unwrap_or(rest).split("\n  -").next().unwrap_or(rest);
        option.split(|c: char| !c.is_alphanumeric()).any(|word| word == mode.word())
    })
}

impl System for Howdah {
    fn id(&self) -> String {
        format!("howdah-{}", self.mode.word())
    }

    fn title(&self) -> String {
        format!("Howdah {}", self.mode.word())
    }

    fn find(&self) -> SystemStatus {
        let (Some(binary), Some(_)) = (server(), php_host()) else {
            return missing("howdah and howdah-php", "make build, or set HOWDAH and HOWDAH_PHP to the two binaries");
        };
        if !has_mode(&binary, self.mode) {
            return missing(
                format!("mode {} in {}", self.mode.word(), binary.display()),
                "use a build of Howdah that has this mode",
            );
        }
        found([("Howdah", version_line(&binary, &["--version"]))])
    }

    fn tuning(&self) -> Vec<String> {
        let mut notes = vec![
            "Howdah: its defaults, with as many workers as the case gives".into(),
            "PHP: Debian's php.ini and extensions of the embed SAPI, OPcache on, JIT off".into(),
        ];
        if self.mode != Mode::Classic {
            notes.push(
                "the application is booted once per worker; see the mode's own documentation for what is kept".into(),
            );
        }
        notes
    }

    fn script(&self) -> Script {
        if self.mode == Mode::Classic { Script::Any } else { Script::Worker }
    }

    fn role(&self, process: &str) -> Role {
        // The kernel cuts process names after 15 characters; worker titles keep the prefix.
        if process.starts_with("howdah-php") || process.starts_with("php") { Role::Php } else { Role::Front }
    }

    fn start(&self, site: &Site) -> Result<Running> {
        let binary = server().context("howdah is not there")?;
        let php = php_host().context("howdah-php is not there")?;
        let mut arguments = vec![
            "serve".to_owned(),
            site.root.display().to_string(),
            "--listen".into(),
            site.address.to_string(),
            "--workers".into(),
            site.workers.to_string(),
            "--admin".into(),
            format!("unix:{}", site.dir.join("admin.sock").display()),
            "--php".into(),
            php.display().to_string(),
            "--mode".into(),
            self.mode.word().into(),
        ];
        if self.mode != Mode::Classic
            && let Some(script) = &site.worker_script
        {
            arguments.extend(["--script".to_owned(), script.display().to_string()]);
        }
        let mut running = Running::default();
        let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
        running.spawn(&site.launch("howdah", binary, &words))?;
        Ok(running)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_modes_that_help_lists_are_offered() {
        let help = "      --mode <MODE>\n          How scripts run\n\n          Possible values:\n          - classic: x\n          - worker:  y\n\n      --snapshot-dir <DIR>\n          async writes";
        assert!(lists_mode(help, Mode::Worker));
        assert!(!lists_mode(help, Mode::Snapshot));
        assert!(!lists_mode(help, Mode::Async));
    }
}
