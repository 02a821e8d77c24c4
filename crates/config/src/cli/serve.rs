//! Flags generated from the table of settings: all of them for `serve`, some for commands that control a server.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::builder::NonEmptyStringValueParser;
use clap::{Arg, ArgAction, ArgMatches, Args, FromArgMatches};

use crate::kind::Kind;
use crate::row::Row;
use crate::settings::{PhpSettings, PoolSettings, Settings};
use crate::settings_acme::AcmeSettings;
use crate::settings_http::{CompressionSettings, HttpSettings, LogSettings};
use crate::settings_sandbox::SandboxSettings;
use crate::settings_tls::TlsSettings;
use crate::source::plain_example;
use crate::strict::all_rows;
use howdah_rules::keys::nearest;

/// The flags of `serve` and `check`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServeFlags {
    /// The `howdah.toml` to read; none for the one in the current directory, if there is one.
    pub config: Option<PathBuf>,
    /// The settings given, by their names in the table; a repeated flag has several values.
    pub values: BTreeMap<String, Vec<String>>,
}

impl ServeFlags {
    /// Sets a setting's value, as its flag would; another call adds a value.
    pub fn set(&mut self, name: &str, value: &str) {
        self.values.entry(name.to_owned()).or_default().push(value.to_owned());
    }

    /// Removes and returns the directory to serve.
    pub fn take_root(&mut self) -> Option<PathBuf> {
        self.values.remove(ROOT)?.pop().map(PathBuf::from)
    }
}

/// The flags that select a running server: `--config`, `--admin` and `--listen`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ControlFlags {
    pub serve: ServeFlags,
}

/// The flags that locate the state directory: `--config` and `--state`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StateFlags {
    pub serve: ServeFlags,
}

/// The name of the positional argument of `serve`.
pub(super) const ROOT: &str = "root";

/// The flag for `tls.auto`.
const TLS: &str = "tls";

const SET: &str = "set";

/// Help of `--config`.
pub(super) const CONFIG: &str = "The howdah.toml to read [default: ./howdah.toml, if there is one]";

impl Args for ServeFlags {
    fn augment_args(command: clap::Command) -> clap::Command {
        let root = Arg::new(ROOT)
            .value_name("ROOT")
            .value_parser(NonEmptyStringValueParser::new())
            .help("The directory to serve [default: ./public if there is one, else .]");
        let set = Arg::new(SET)
            .long(SET)
            .value_name("KEY=VALUE")
            .value_parser(setting)
            .action(ArgAction::Append)
            .help("Any setting of howdah.toml, for example --set http.max_body=1G; may be repeated");
        flag_rows()
            .map(|(heading, row)| flag(row).help_heading(heading))
            .fold(command.args([root, config_arg(), set, tls_arg()]), clap::Command::arg)
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for ServeFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut flags = Self { config: matches.get_one::<PathBuf>("config").cloned(), ..Self::default() };
        let named = flag_rows().filter_map(|(_, row)| Some((row.flag?, row.name())));
        for (id, name) in named.chain([(ROOT, ROOT.to_owned())]) {
            if let Ok(Some(values)) = matches.try_get_many::<String>(id) {
                flags.values.insert(name, values.cloned().collect());
            }
        }
        for (name, value) in matches.try_get_many::<(String, String)>(SET).ok().flatten().into_iter().flatten() {
            flags.set(name, value);
        }
        if let Ok(Some(how)) = matches.try_get_one::<String>(TLS) {
            flags.set("tls.auto", if how == "auto" { "true" } else { "false" });
        }
        Ok(flags)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// Defines arguments that contain some of the flags of `serve`.
macro_rules! part_of_serve {
    ($name:ident, $args:expr) => {
        impl Args for $name {
            fn augment_args(command: clap::Command) -> clap::Command {
                $args(command.arg(config_arg()))
            }

            fn augment_args_for_update(command: clap::Command) -> clap::Command {
                Self::augment_args(command)
            }
        }

        impl FromArgMatches for $name {
            fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
                Ok(Self { serve: ServeFlags::from_arg_matches(matches)? })
            }

            fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
                self.serve.update_from_arg_matches(matches)
            }
        }
    };
}

part_of_serve!(ControlFlags, |command| {
    named(command, &["listen", "admin"]).mut_arg("listen", |arg| {
        arg.help("First address of the server; locates its socket if --admin is not given").long_help(None)
    })
});
part_of_serve!(StateFlags, |command| named(command, &["state"]));

/// Adds the flags with these names.
fn named(command: clap::Command, names: &[&str]) -> clap::Command {
    let rows = flag_rows().map(|(_, row)| row).filter(|row| row.flag.is_some_and(|flag| names.contains(&flag)));
    rows.map(flag).fold(command, clap::Command::arg)
}

/// The rows that have a flag, with the heading of their help.
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

fn config_arg() -> Arg {
    Arg::new("config")
        .long("config")
        .short('c')
        .value_name("FILE")
        .value_parser(clap::value_parser!(PathBuf))
        .help(CONFIG)
}

/// The flag for certificates that the server obtains or creates itself.
fn tls_arg() -> Arg {
    Arg::new(TLS)
        .long("tls")
        .value_name("auto|off")
        .value_parser(["auto", "off"])
        .help("Obtain or create certificates: tls.auto [default: off]")
        .help_heading("TLS")
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
        // A boolean flag without a value means `true`.
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

/// A row's default as written outside of `howdah.toml`.
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

/// Splits text into a setting's name and its value.
fn setting(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("expected KEY=VALUE")?;
    let known: Vec<String> = all_rows().map(Row::name).collect();
    if known.iter().any(|known| known == name) {
        return Ok((name.to_owned(), value.to_owned()));
    }
    let advice = nearest(name, known.iter().map(String::as_str))
        .map_or_else(String::new, |near| format!("; did you mean {near}?"));
    Err(format!("unknown setting {name}{advice}"))
}
