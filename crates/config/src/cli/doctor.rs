//! The arguments of `howdah doctor`.

use clap::{ArgAction, Args, value_parser};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  howdah doctor                                  the application in this directory, by its links
  howdah doctor ~/src/shop --html report.html    another one, with a report to share
  howdah doctor --config /etc/howdah/howdah.toml --site shop.example
  howdah doctor --list urls.txt                  one path or address a line
  howdah doctor --list /var/log/howdah/access.log --pages 100
  howdah doctor --json now.json --against last.json
  howdah doctor --against http://10.0.0.5 --list /var/log/nginx/access.log --pages 500
  howdah doctor --against http://10.0.0.5 --listen :8080 --share 20

Starts the application on free local ports with its howdah.toml, in every mode, and requests pages as several visitors. \
SQLite databases in the directory are copied first. Other databases and all files are the real ones, so use a test \
environment. Requests only read; --writes also sends the writing requests of a list.

With the address of another server in --against, GET requests go to it and to Howdah, and the report lists differences. \
With --listen the doctor is a proxy in front of that server: clients get its responses, and a share of their GET requests \
is copied to Howdah. SIGINT or SIGTERM ends it with the report.

Exit status: 1 if there are leaks that the report given by --against does not have, or responses that differ from the \
other server's, 2 if nothing could be tried, else 0.";

/// The modes that can be compared with classic mode.
const MODES: [&str; 3] = ["worker", "snapshot", "async"];

/// Arguments of `howdah doctor`.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
#[command(after_help = EXAMPLES)]
pub struct DoctorFlags {
    /// The application's directory
    #[arg(value_name = "DIR", default_value = ".")]
    pub directory: PathBuf,
    #[arg(long, short, value_name = "FILE", help = super::serve::CONFIG)]
    pub config: Option<PathBuf>,
    /// The site to try, if the settings have several
    #[arg(long, value_name = "NAME")]
    pub site: Option<String>,
    /// Request these pages and follow no links: one address per line, or an access log
    #[arg(long, value_name = "FILE")]
    pub list: Option<PathBuf>,
    /// Maximum number of pages, or of compared copies [default: 40; with --listen no maximum]
    #[arg(long, value_name = "N", value_parser = value_parser!(u64).range(1..=1_000_000))]
    pub pages: Option<u64>,
    /// Number of visitors
    #[arg(long, value_name = "N", default_value = "3", value_parser = value_parser!(u64).range(2..=20))]
    pub visitors: u64,
    /// Modes to try [default: worker,snapshot,async]
    #[arg(long, value_name = "MODES", value_delimiter = ',', value_parser = MODES, action = ArgAction::Set)]
    pub modes: Vec<String>,
    /// Also send the list's writing requests: POST, PUT and the like
    #[arg(long)]
    pub writes: bool,
    /// Write the report as JSON; - for standard output only
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Write the report as a page
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Compare with an earlier --json report: new leaks are an error; or with the server at an address
    #[arg(long, value_name = "FILE|http://HOST")]
    pub against: Option<PathBuf>,
    /// Listen here as a proxy in front of the server at the address of --against, and compare copies of live requests
    #[arg(long, value_name = "ADDR", requires = "against", conflicts_with_all = ["list", "html", "modes", "writes", "write_loop"])]
    pub listen: Option<String>,
    /// Share of the GET requests to copy, in percent
    #[arg(long, value_name = "PERCENT", default_value = "10", requires = "listen", value_parser = value_parser!(u64).range(1..=100))]
    pub share: u64,
    /// Also copy requests with cookies or credentials: Howdah then uses the visitors' sessions
    #[arg(long, requires = "listen")]
    pub sessions: bool,
    /// Write the worker script for applications without one
    #[arg(long = "loop", value_name = "FILE")]
    pub write_loop: Option<PathBuf>,
    /// howdah-php to run
    #[arg(long, value_name = "VERSION|PATH")]
    pub php: Option<String>,
    /// Run PHP as root, if the settings name no user
    #[arg(long)]
    pub allow_root: bool,
    /// Do not report progress
    #[arg(long)]
    pub quiet: bool,
}
