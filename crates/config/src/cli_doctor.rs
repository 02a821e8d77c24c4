//! The command line of `howdah doctor`.

use clap::{Arg, ArgAction, ArgMatches};
use std::path::PathBuf;

const DOCTOR_EXAMPLES: &str = "\
Examples:
  howdah doctor                                  the application in this directory, by its links
  howdah doctor ~/src/shop --html report.html    another one, with a report to share
  howdah doctor --config /etc/howdah/howdah.toml --site shop.example
  howdah doctor --list urls.txt                  one path or address a line
  howdah doctor --list /var/log/howdah/access.log --pages 100
  howdah doctor --json now.json --against last.json

It starts the application on free local ports with its howdah.toml, in every mode, and requests pages as several visitors.
A SQLite database in the directory is copied first. Other databases and all files are the real ones, so use a test
environment. Requests only read, unless a list has others and --writes allows them.

Exit status: 0; 1 if there are leaks that the report given by --against does not have; 2 if nothing could be tried.";

/// Arguments of `howdah doctor`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DoctorFlags {
    /// The application's directory.
    pub directory: PathBuf,
    pub config: Option<PathBuf>,
    /// The name of the site that is tried.
    pub site: Option<String>,
    /// A list of addresses, or an access log.
    pub list: Option<PathBuf>,
    pub pages: u64,
    pub visitors: u64,
    /// Names of modes; empty for all.
    pub modes: Vec<String>,
    pub writes: bool,
    pub json: Option<PathBuf>,
    pub html: Option<PathBuf>,
    pub against: Option<PathBuf>,
    pub write_loop: Option<PathBuf>,
    pub php: Option<String>,
    pub allow_root: bool,
    pub quiet: bool,
}

/// The modes that can be compared with classic mode.
const MODES: [&str; 3] = ["worker", "snapshot", "async"];

pub(crate) fn doctor_args(config: Arg) -> clap::Command {
    let file = |name: &'static str, help: &'static str| {
        Arg::new(name).long(name).value_name("FILE").value_parser(clap::value_parser!(PathBuf)).help(help)
    };
    let number = |name: &'static str, default: &'static str, range: std::ops::RangeInclusive<u64>| {
        let parser = clap::value_parser!(u64).range(range);
        Arg::new(name).long(name).value_name("N").default_value(default).value_parser(parser)
    };
    let switch =
        |name: &'static str, help: &'static str| Arg::new(name).long(name).action(ArgAction::SetTrue).help(help);
    clap::Command::new("doctor")
        .about("Find out which mode is safe for an application, and what it gains")
        .arg(
            Arg::new("directory")
                .value_name("DIR")
                .default_value(".")
                .value_parser(clap::value_parser!(PathBuf))
                .help("The application's directory"),
        )
        .arg(config)
        .arg(Arg::new("site").long("site").value_name("NAME").help("The site to try, where the settings have several"))
        .arg(file("list", "Request these pages and follow no links: one address per line, or an access log"))
        .arg(number("pages", "40", 1..=1000).help("Maximum number of pages"))
        .arg(number("visitors", "3", 2..=20).help("Number of visitors"))
        .arg(
            Arg::new("modes")
                .long("modes")
                .value_name("MODES")
                .value_delimiter(',')
                .value_parser(MODES)
                .help("Modes to try [default: worker,snapshot,async]"),
        )
        .arg(switch("writes", "Also send the list's writing requests: POST, PUT and the like"))
        .arg(file("json", "Write the report as JSON; - for standard output only"))
        .arg(file("html", "Write the report as a page"))
        .arg(file("against", "Compare with an earlier --json report: new leaks are an error"))
        .arg(file("loop", "Write the worker script for applications without one"))
        .arg(Arg::new("php").long("php").value_name("VERSION|PATH").help("howdah-php to run"))
        .arg(switch("allow-root", "Run PHP as root, if the settings name no user"))
        .arg(switch("quiet", "Do not report progress"))
        .after_help(DOCTOR_EXAMPLES)
}

pub(crate) fn doctor_flags(matches: &ArgMatches) -> DoctorFlags {
    let path = |name: &str| matches.get_one::<PathBuf>(name).cloned();
    let number = |name: &str| matches.get_one::<u64>(name).copied().unwrap_or_default();
    DoctorFlags {
        directory: path("directory").unwrap_or_default(),
        config: path("config"),
        site: matches.get_one::<String>("site").cloned(),
        list: path("list"),
        pages: number("pages"),
        visitors: number("visitors"),
        modes: matches.get_many::<String>("modes").into_iter().flatten().cloned().collect(),
        writes: matches.get_flag("writes"),
        json: path("json"),
        html: path("html"),
        against: path("against"),
        write_loop: path("loop"),
        php: matches.get_one::<String>("php").cloned(),
        allow_root: matches.get_flag("allow-root"),
        quiet: matches.get_flag("quiet"),
    }
}
