//! The commands of `howdah` and their flags. Flags that are settings too are made from the table of settings.

mod check;
mod dev;
mod explain;
mod init;
mod reload;
mod set;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::net::IpAddr;
use std::path::PathBuf;

use clap::builder::NonEmptyStringValueParser;
use clap::{Arg, ArgAction, ArgMatches};

pub use crate::cli_doctor::DoctorFlags;
use crate::cli_doctor::{doctor_args, doctor_flags};
pub use crate::cli_profile::{ProfileFlags, ProfileFormat};
use crate::cli_profile::{profile_args, profile_flags};
use crate::kind::Kind;
use crate::other_servers;
use crate::row::Row;
use crate::settings::{PhpSettings, PoolSettings, Settings};
use crate::settings_acme::AcmeSettings;
use crate::settings_http::{CompressionSettings, HttpSettings, LogSettings};
use crate::settings_sandbox::SandboxSettings;
use crate::settings_tls::TlsSettings;
use crate::source::plain_example;
pub use reload::ReloadFlags;

/// The parsed command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cli {
    /// The command.
    pub command: Command,
}

/// A command of `howdah`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// Serve until stopped.
    Serve(ServeFlags),
    /// Serve for a developer: the settings of `serve`, and the project's directory.
    Dev { serve: ServeFlags, directory: Option<PathBuf> },
    /// Show the mails that the application of `dev` has sent.
    Mails { serve: ServeFlags, directory: Option<PathBuf>, what: Mails },
    /// Keep a mail that PHP sends; for `dev`.
    Sendmail { into: PathBuf },
    /// Print the settings that `serve` would use, and what is wrong with them.
    Check(ServeFlags),
    /// Explain the handling of a request.
    Explain {
        /// The settings of `serve`.
        serve: ServeFlags,
        /// The method and the address.
        method: String,
        url: String,
        /// Its fields, each `NAME: VALUE`.
        headers: Vec<(String, String)>,
        client: IpAddr,
        /// As JSON.
        json: bool,
    },
    /// Show the state of a running server.
    Status {
        /// Which server.
        server: ControlFlags,
        /// As JSON.
        json: bool,
        /// Again every second.
        watch: bool,
    },
    /// Watch a running server.
    Top {
        /// Which server.
        server: ControlFlags,
        /// One look, as text.
        once: bool,
    },
    /// Profile a pool of a running server.
    Profile {
        /// Which server.
        server: ControlFlags,
        profile: ProfileFlags,
    },
    /// List the routes that a running server has demoted, or restore some.
    Routes {
        /// Which server.
        server: ControlFlags,
        /// A path, or `*`.
        restore: Option<String>,
        json: bool,
    },
    /// Print the sandbox that the pools of a running server would need, as they learnt it.
    Sandbox(ControlFlags),
    /// Write a `howdah.toml` for the application that is in a directory.
    Init {
        /// The application's directory.
        directory: PathBuf,
        /// To standard output.
        print: bool,
    },
    /// Find out which mode is safe for which route.
    Doctor(DoctorFlags),
    /// List the applications that are known.
    Recipes,
    /// Have Laravel Octane start this server as its `frankenphp`.
    Octane {
        /// The project's directory.
        directory: PathBuf,
        /// Even where another program has that name.
        replace: bool,
    },
    /// Have a running server read everything again.
    Reload {
        /// Which server.
        server: ControlFlags,
        /// Its flags.
        reload: ReloadFlags,
    },
    /// Have a new process take the place of a running server.
    Upgrade(ControlFlags),
    /// Stop a running server.
    Stop(ControlFlags),
    /// Make this machine believe the local CA, or not any more.
    Trust {
        /// Where the state directory is.
        server: ServeFlags,
        /// The action.
        how: Trust,
    },
    /// Print what a shell needs to complete the command line.
    Completions { shell: String },
    /// Write the manual pages into a directory; for those who make packages.
    Manual { directory: PathBuf },
}

/// Actions of `howdah trust`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trust {
    /// Install the local CA in the system.
    Install,
    /// Take it out.
    Uninstall,
    /// Print its certificate.
    Print,
}

/// Actions of `howdah mails`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mails {
    /// One line for each.
    List,
    /// The whole text of the one with this number.
    Show(usize),
    /// Removes all.
    Clear,
}

/// The flags of `serve` and `check`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServeFlags {
    /// The `howdah.toml` to read; none for the one in the current directory, if there is one.
    pub config: Option<PathBuf>,
    /// The settings given, by their names in the table; a repeated flag has several values.
    pub values: BTreeMap<String, Vec<String>>,
}

impl ServeFlags {
    /// Gives a setting a value, as its flag would; again for a further value.
    pub fn set(&mut self, name: &str, value: &str) {
        self.values.entry(name.to_owned()).or_default().push(value.to_owned());
    }
}

/// The flags that say which running server is meant.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ControlFlags {
    /// `--config`, `--admin` and `--listen`.
    pub serve: ServeFlags,
}

/// The name of the program.
pub(crate) const PROGRAM: &str = "howdah";

/// The shells that completions can be had for.
pub(crate) const SHELLS: [&str; 3] = ["bash", "fish", "zsh"];

/// The arguments of `completions`, and of `man` and `init`.
const SHELL: &str = "shell";
const DIRECTORY: &str = "directory";

/// The name of the positional argument of `serve`.
const ROOT: &str = "root";

/// The flag that stands for `tls.auto`.
const TLS: &str = "tls";

impl Cli {
    /// The command line of this process. Prints help or what is wrong and exits where that is all there is to do.
    #[must_use]
    pub fn parse() -> Self {
        match Self::try_parse_from(std::env::args_os()) {
            Ok(cli) => cli,
            Err(error) => error.exit(),
        }
    }

    /// A command line, the program's name first.
    ///
    /// # Errors
    /// The help that was asked for, or what is wrong.
    pub fn try_parse_from<I>(args: I) -> Result<Self, clap::Error>
    where
        I: IntoIterator,
        I::Item: Into<OsString> + Clone,
    {
        let args = other_servers::with_help(args.into_iter().map(Into::into).collect());
        let matches = definition().try_get_matches_from(args).map_err(other_servers::hint)?;
        let command = match matches.subcommand() {
            Some(("serve", matches)) => Command::Serve(serve_flags(matches)),
            Some(("dev", matches)) => dev::dev(matches),
            Some(("mails", matches)) => dev::mails(matches),
            Some(("sendmail", matches)) => dev::sendmail(matches),
            Some(("check", matches)) => Command::Check(check::flags(matches)),
            Some(("explain", matches)) => explain::explain(matches),
            Some(("status", matches)) if matches.get_flag("sandbox") => Command::Sandbox(control_flags(matches)),
            Some(("status", matches)) => {
                let (json, watch) = (matches.get_flag("json"), matches.get_flag("watch"));
                Command::Status { server: control_flags(matches), json, watch }
            }
            Some(("top", matches)) => Command::Top { server: control_flags(matches), once: matches.get_flag("once") },
            Some(("profile", matches)) => {
                Command::Profile { server: control_flags(matches), profile: profile_flags(matches) }
            }
            Some(("routes", matches)) => Command::Routes {
                server: control_flags(matches),
                restore: matches.get_one::<String>("restore").cloned(),
                json: matches.get_flag("json"),
            },
            Some(("init", matches)) => init::init(matches),
            Some(("doctor", matches)) => Command::Doctor(doctor_flags(matches)),
            Some(("reload", matches)) => {
                Command::Reload { server: control_flags(matches), reload: reload::reload_flags(matches) }
            }
            Some(("upgrade", matches)) => Command::Upgrade(control_flags(matches)),
            Some(("stop", matches)) => Command::Stop(control_flags(matches)),
            Some(("trust", matches)) => {
                let how = match (matches.get_flag("print"), matches.get_flag("uninstall")) {
                    (true, _) => Trust::Print,
                    (_, true) => Trust::Uninstall,
                    _ => Trust::Install,
                };
                Command::Trust { server: serve_flags(matches), how }
            }
            Some(("completions", matches)) => {
                Command::Completions { shell: matches.get_one::<String>(SHELL).cloned().unwrap_or_default() }
            }
            Some((_, matches)) => {
                Command::Manual { directory: matches.get_one::<PathBuf>(DIRECTORY).cloned().unwrap_or_default() }
            }
            None => Command::Serve(ServeFlags::default()),
        };
        Ok(Self { command })
    }
}

/// The rows that have a flag, with the heading their help stands under.
pub(crate) fn flag_rows() -> impl Iterator<Item = (&'static str, &'static Row)> {
    let sections: [(&str, &'static [Row]); 9] = [
        ("Server", Settings::ROWS),
        ("Workers", PoolSettings::ROWS),
        ("PHP", PhpSettings::ROWS),
        ("PHP", SandboxSettings::ROWS),
        ("HTTP", HttpSettings::ROWS),
        ("HTTP", CompressionSettings::ROWS),
        ("TLS", TlsSettings::ROWS),
        ("TLS", AcmeSettings::ROWS),
        ("Logs", LogSettings::ROWS),
    ];
    sections
        .into_iter()
        .flat_map(|(heading, rows)| rows.iter().map(move |row| (heading, row)))
        .filter(|(_, row)| row.flag.is_some())
}

const SERVE_EXAMPLES: &str = "\
Examples:
  howdah serve                                       ./public (or .) on 127.0.0.1:8080
  howdah serve /srv/app/public --listen :80          on every IPv4 address
  howdah serve --workers 2-16 -d memory_limit=256M   more workers while there is work
  howdah serve --mode worker --script worker.php     the script stays loaded
  howdah serve --mode async --script worker.php      and runs many requests at once
  howdah serve --listen unix:/run/howdah.sock        behind another server

`--set KEY=VALUE` takes every setting of howdah.toml. `howdah check` shows all of them.";

const CHECK_EXAMPLES: &str = "\
Examples:
  howdah check                              the settings of `howdah serve` here, with their origins
  howdah check /etc/howdah/howdah.toml      exit status 1 and every error, if something is wrong";

const TRUST_EXAMPLES: &str = "\
Examples:
  sudo howdah trust                          of the server that root starts
  sudo howdah trust --state ~/.local/state/howdah   of your own
  howdah trust --print > ca.pem              for another machine, or a program with its own list";

/// Every command with its help, for the reference: name and text.
pub(crate) fn help_texts() -> Vec<(String, String)> {
    let mut definition = definition().term_width(100);
    definition.build();
    let commands = definition.get_subcommands_mut().filter(|command| !command.is_hide_set());
    commands.map(|command| (command.get_name().to_owned(), command.render_long_help().to_string())).collect()
}

/// The whole command line's definition.
#[must_use]
pub fn definition() -> clap::Command {
    clap::Command::new(PROGRAM)
        .about("A PHP application server")
        .version(env!("CARGO_PKG_VERSION"))
        .subcommand_required(true)
        .arg_required_else_help(true)
        .disable_help_subcommand(true)
        .subcommand(serve_args(clap::Command::new("serve").about("Serve a PHP application").after_help(SERVE_EXAMPLES)))
        .subcommand(dev::dev_args())
        .subcommand(dev::mails_args())
        .subcommand(dev::sendmail_args())
        .subcommand(serve_args(
            clap::Command::new("check")
                .about("Show the effective settings, or every mistake in them")
                .after_help(CHECK_EXAMPLES),
        ))
        .subcommand(init::init_args())
        .subcommand(doctor_args(config_arg()))
        .subcommand(explain::explain_args())
        .subcommand(
            control_args(clap::Command::new("status").about("Show the state of a running server"))
                .arg(Arg::new("json").long("json").action(ArgAction::SetTrue).help("Print JSON"))
                .arg(
                    Arg::new("watch")
                        .long("watch")
                        .short('w')
                        .action(ArgAction::SetTrue)
                        .help("Repeat every second until interrupted; with --json, one line each"),
                )
                .arg(
                    Arg::new("sandbox")
                        .long("sandbox")
                        .action(ArgAction::SetTrue)
                        .conflicts_with_all(["json", "watch"])
                        .help("Print the [sandbox] that pools with profile \"learn\" have needed"),
                )
                .after_help("Examples:\n  howdah status\n  howdah status --watch\n  howdah status --json --admin unix:/run/howdah/admin.sock\n  howdah status --sandbox >> sandbox.toml"),
        )
        .subcommand(
            control_args(clap::Command::new("top").about("Watch a running server: pools, workers, slowest routes"))
                .arg(
                    Arg::new("once")
                        .long("once")
                        .action(ArgAction::SetTrue)
                        .help("Print one second and exit; the default without a terminal"),
                )
                .after_help("Examples:\n  howdah top\n  howdah top --once --config /etc/howdah/howdah.toml"),
        )
        .subcommand(profile_args(control_args(clap::Command::new("profile"))))
        .subcommand(routes_args())
        .subcommand(reload::reload_args(control_args(
            clap::Command::new("reload")
                .about("Reload settings and code of a running server; no request is lost"),
        )))
        .subcommand(
            control_args(
                clap::Command::new("upgrade")
                    .about("Replace a running server by the installed program; no request is lost"),
            )
            .after_help("Example:\n  howdah upgrade --config /etc/howdah/howdah.toml"),
        )
        .subcommand(
            control_args(clap::Command::new("stop").about("Stop a running server after its running requests"))
                .after_help("Example:\n  howdah stop --listen 127.0.0.1:8080"),
        )
        .subcommand(trust_args(
            clap::Command::new("trust")
                .about("Trust the certificates of the local CA on this machine")
                .after_help(TRUST_EXAMPLES),
        ))
        .subcommand(
            clap::Command::new("completions")
                .about("Print shell completions")
                .arg(Arg::new(SHELL).value_name("SHELL").required(true).value_parser(SHELLS))
                .after_help("Example:\n  howdah completions bash > /etc/bash_completion.d/howdah"),
        )
        .subcommand(
            clap::Command::new("man")
                .about("Write the manual pages into a directory")
                .hide(true)
                .arg(Arg::new(DIRECTORY).value_name("DIR").required(true).value_parser(clap::value_parser!(PathBuf))),
        )
}

fn routes_args() -> clap::Command {
    let restore = Arg::new("restore")
        .long("restore")
        .value_name("PATH")
        .help("Restore a path, or a route of the list, to its pool; \"*\" for all");
    control_args(clap::Command::new("routes").about("List the routes that were demoted to classic mode"))
        .arg(restore)
        .arg(Arg::new("json").long("json").action(ArgAction::SetTrue).conflicts_with("restore").help("Print JSON"))
        .after_help("Examples:\n  howdah routes\n  howdah routes --restore /cart")
}

fn config_arg() -> Arg {
    Arg::new("config")
        .long("config")
        .short('c')
        .value_name("FILE")
        .value_parser(clap::value_parser!(PathBuf))
        .help("The howdah.toml to read [default: ./howdah.toml, if there is one]")
}

fn serve_args(command: clap::Command) -> clap::Command {
    let root = Arg::new(ROOT)
        .value_name("ROOT")
        .value_parser(NonEmptyStringValueParser::new())
        .help("The directory to serve [default: ./public if there is one, else .]");
    flag_rows()
        .map(|(heading, row)| flag(row).help_heading(heading))
        .fold(command.arg(root).arg(config_arg()).arg(set::set_arg()).arg(tls_arg()), clap::Command::arg)
}

/// Certificates that the server gets or makes itself.
fn tls_arg() -> Arg {
    Arg::new(TLS)
        .long("tls")
        .value_name("auto|off")
        .value_parser(["auto", "off"])
        .help("Obtain or create certificates: tls.auto [default: off]")
        .help_heading("TLS")
}

fn trust_args(command: clap::Command) -> clap::Command {
    let state = flag_rows().map(|(_, row)| row).filter(|row| row.flag == Some("state"));
    state.map(flag).fold(command.arg(config_arg()), clap::Command::arg).args([
        Arg::new("print")
            .long("print")
            .action(ArgAction::SetTrue)
            .help("Print the CA's certificate instead of installing it"),
        Arg::new("uninstall")
            .long("uninstall")
            .action(ArgAction::SetTrue)
            .conflicts_with("print")
            .help("Remove the CA from the system"),
    ])
}

fn control_args(command: clap::Command) -> clap::Command {
    let wanted = |row: &Row| row.section.is_empty() && matches!(row.key, "admin" | "listen");
    let rows = flag_rows().map(|(_, row)| row).filter(|row| wanted(row));
    let command = rows.map(flag).fold(command.arg(config_arg()), clap::Command::arg);
    command.mut_arg("listen", |arg| {
        arg.help("First address of the server; locates its socket if --admin is not given").long_help(None)
    })
}

/// The flag of a setting.
fn flag(row: &'static Row) -> Arg {
    let flag = row.flag.unwrap_or(row.key);
    let many = matches!(row.kind, Kind::List(_) | Kind::Map);
    let text = row.text();
    let first = text.split("\n\n").next().unwrap_or_default().to_owned();
    let default = if row.computed { row.default.replace('`', "") } else { plain_default(row) };
    let default = if default.is_empty() { String::new() } else { format!(" [default: {default}]") };
    let words = match row.kind {
        Kind::Choice(words) => format!(" [one of: {}]", words.join(", ")),
        _ => String::new(),
    };
    let again = if many { "; may be repeated" } else { "" };
    let mut arg = Arg::new(flag)
        .long(flag)
        .value_name(value_name(row.kind))
        .action(if many { ArgAction::Append } else { ArgAction::Set })
        .allow_hyphen_values(matches!(row.kind, Kind::Map))
        .help(format!("{first}{words}{default}"))
        .long_help(format!("{text}{words}{default}\n\nExample: --{flag} {}{again}", plain_example(row)));
    if row.kind == Kind::Bool && row.default == "false" {
        // A switch: the flag alone switches it on.
        arg = arg.num_args(0..=1).require_equals(true).default_missing_value("true");
    }
    if let Some(short) = short(flag) {
        arg = arg.short(short);
    }
    arg
}

const fn short(flag: &str) -> Option<char> {
    match flag.as_bytes() {
        b"listen" => Some('l'),
        b"define" => Some('d'),
        b"workers" => Some('w'),
        _ => None,
    }
}

/// A row's default as it is written outside of `howdah.toml`.
fn plain_default(row: &'static Row) -> String {
    let default = plain_example(&Row { example: row.default, ..*row });
    if default == "a table" { String::new() } else { default }
}

const fn value_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Bool => "BOOL",
        Kind::Number | Kind::Signed | Kind::Ratio => "N",
        Kind::Duration => "DURATION",
        Kind::Size => "SIZE",
        Kind::Text | Kind::Choice(_) | Kind::NamePattern | Kind::Network | Kind::Host | Kind::Links => "NAME",
        Kind::Mode => "MODE",
        Kind::Path | Kind::LogTarget(_) => "PATH",
        Kind::PhpProgram => "VERSION|PATH",
        Kind::Certificate => "CERT:KEY",
        Kind::Address | Kind::Upstream => "ADDR",
        Kind::Workers => "N|MIN-MAX",
        Kind::List(of) => value_name(*of),
        Kind::Map => "KEY=VALUE",
    }
}

fn serve_flags(matches: &ArgMatches) -> ServeFlags {
    let mut flags = ServeFlags { config: matches.get_one::<PathBuf>("config").cloned(), ..ServeFlags::default() };
    let named = flag_rows().filter_map(|(_, row)| Some((row.flag?, row.name())));
    for (id, name) in named.chain([(ROOT, ROOT.to_owned())]) {
        if let Ok(Some(values)) = matches.try_get_many::<String>(id) {
            flags.values.insert(name, values.cloned().collect());
        }
    }
    for (name, value) in set::given(matches) {
        flags.set(&name, &value);
    }
    if let Ok(Some(how)) = matches.try_get_one::<String>(TLS) {
        flags.set("tls.auto", if how == "auto" { "true" } else { "false" });
    }
    flags
}

fn control_flags(matches: &ArgMatches) -> ControlFlags {
    ControlFlags { serve: serve_flags(matches) }
}
