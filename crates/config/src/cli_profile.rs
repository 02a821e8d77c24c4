//! The command line of `howdah profile`.

use crate::settings::DEFAULT_POOL;
use clap::{Arg, ArgMatches};
use std::path::{Path, PathBuf};

const PROFILE_EXAMPLES: &str = "Examples:
  howdah profile --pool shop -o shop.svg
  howdah profile --seconds 60 -o shop.pb.gz && go tool pprof -top shop.pb.gz
  howdah profile --format folded -o - | sort -k2 -n";

/// Arguments of `howdah profile`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProfileFlags {
    pub pool: String,
    pub seconds: u64,
    /// Looks per second.
    pub rate: u32,
    pub format: ProfileFormat,
    /// `-` for standard output.
    pub output: PathBuf,
}

/// Format of a profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProfileFormat {
    /// A flame graph.
    Svg,
    Pprof,
    Speedscope,
    /// A line for each stack.
    Folded,
}

impl ProfileFormat {
    const NAMES: [(&str, Self); 4] =
        [("svg", Self::Svg), ("pprof", Self::Pprof), ("speedscope", Self::Speedscope), ("folded", Self::Folded)];

    /// The format that a file's name stands for.
    fn of_name(path: &Path) -> Option<Self> {
        match path.extension()?.to_str()? {
            "svg" => Some(Self::Svg),
            "pprof" | "pb" | "gz" => Some(Self::Pprof),
            "json" => Some(Self::Speedscope),
            "folded" | "txt" => Some(Self::Folded),
            _ => None,
        }
    }

    const fn extension(self) -> &'static str {
        match self {
            Self::Svg => "svg",
            Self::Pprof => "pb.gz",
            Self::Speedscope => "speedscope.json",
            Self::Folded => "folded",
        }
    }
}

/// The arguments of `howdah profile`, besides those of the server's address.
pub(crate) fn profile_args(command: clap::Command) -> clap::Command {
    let arg = |name: &'static str, value: &'static str| Arg::new(name).long(name).value_name(value);
    let formats = ProfileFormat::NAMES.map(|(name, _)| name);
    command
        .about("Show where PHP spends its time, without disturbing requests")
        .arg(arg("pool", "NAME").default_value(DEFAULT_POOL).help("The pool"))
        .arg(
            arg("seconds", "N")
                .default_value("30")
                .value_parser(clap::value_parser!(u64).range(1..=3600))
                .help("For how long"),
        )
        .arg(
            arg("rate", "HZ")
                .default_value("99")
                .value_parser(clap::value_parser!(u32).range(1..=1000))
                .help("How often a second its workers are looked at"),
        )
        .arg(
            arg("format", "FORMAT")
                .value_parser(formats)
                .help("A flame graph, or what `go tool pprof`, speedscope.app or scripts read [default: by the file's name, else svg]"),
        )
        .arg(
            arg("output", "FILE")
                .short('o')
                .value_parser(clap::value_parser!(PathBuf))
                .help("Where to; - for standard output [default: howdah-POOL.svg]"),
        )
        .after_help(PROFILE_EXAMPLES)
}

pub(crate) fn profile_flags(matches: &ArgMatches) -> ProfileFlags {
    let pool = matches.get_one::<String>("pool").cloned().unwrap_or_default();
    let output = matches.get_one::<PathBuf>("output").cloned();
    let named = matches.get_one::<String>("format").map(String::as_str);
    let format = ProfileFormat::NAMES.iter().find(|(name, _)| Some(*name) == named).map(|(_, format)| *format);
    let format = format.or_else(|| ProfileFormat::of_name(output.as_deref()?)).unwrap_or(ProfileFormat::Svg);
    let output = output.unwrap_or_else(|| PathBuf::from(format!("howdah-{pool}.{}", format.extension())));
    let number = |name: &str| matches.get_one::<u64>(name).copied().unwrap_or(30);
    let rate = matches.get_one::<u32>("rate").copied().unwrap_or(99);
    ProfileFlags { pool, seconds: number("seconds"), rate, format, output }
}
