//! The command line of `howdah doctor`.

use clap::{Arg, ArgAction, ArgMatches};
use std::path::PathBuf;

const DOCTOR_EXAMPLES: &str = "\
Examples:
  howdah doctor                                  the application in this directory, by its links
  howdah doctor ~/src/shop --html report.html    another one, and a page for whoever decides
  howdah doctor --config /etc/howdah/howdah.toml --site shop.example
  howdah doctor --list urls.txt                  one path or address a line
  howdah doctor --list /var/log/howdah/access.log --pages 100
  howdah doctor --json now.json --against last.json

It starts the application on free ports of this machine with its own howdah.toml, in every mode, and asks for pages as
several visitors. A database of SQLite in the directory is copied before; any other database and all files are the
application's own, so try it where nothing is at stake. Requests only read, unless a list has others and --writes allows
them.

Exit status: 0; 1 if there are leaks that the report given by --against did not have; 2 if nothing could be tried.";

/// What `howdah doctor` is to do.
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
        .about("Find out which mode is safe for which route of an application, and what it brings")
        .arg(
            Arg::new("directory")
                .value_name("DIR")
                .default_value(".")
                .value_parser(clap::value_parser!(PathBuf))
                .help("The application's directory"),
        )
        .arg(config)
        .arg(Arg::new("site").long("site").value_name("NAME").help("The site to try, where the settings have several"))
        .arg(file("list", "Ask for these pages and follow no links: addresses, one a line, or an access log"))
        .arg(number("pages", "40", 1..=1000).help("Ask for at most so many pages"))
        .arg(number("visitors", "3", 2..=20).help("As so many visitors"))
        .arg(
            Arg::new("modes")
                .long("modes")
                .value_name("MODES")
                .value_delimiter(',')
                .value_parser(MODES)
                .help("Try these modes alone [default: worker,snapshot,async]"),
        )
        .arg(switch("writes", "Send requests of a list that write, too: POST, PUT and the like"))
        .arg(file("json", "Write the report as JSON; - for standard output, and nothing else there"))
        .arg(file("html", "Write the report as a page"))
        .arg(file("against", "Compare with this report, which --json has written: new leaks are an error"))
        .arg(file("loop", "Write the worker script that an application without one is tried with"))
        .arg(Arg::new("php").long("php").value_name("VERSION|PATH").help("Which howdah-php to run"))
        .arg(switch("allow-root", "Run PHP as root, if root starts this and the settings name no user"))
        .arg(switch("quiet", "Do not say how far it is"))
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
