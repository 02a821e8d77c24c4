//! The arguments of `howdah octane`.

use super::{Command, DIRECTORY};
use clap::{Arg, ArgAction, ArgMatches};
use std::path::PathBuf;

const REPLACE: &str = "replace";

pub(super) fn octane_args() -> clap::Command {
    let directory = Arg::new(DIRECTORY)
        .value_name("DIR")
        .default_value(".")
        .value_parser(clap::value_parser!(PathBuf))
        .help("The project's directory, where artisan is");
    let replace = Arg::new(REPLACE)
        .long(REPLACE)
        .action(ArgAction::SetTrue)
        .help("Even where the project has a FrankenPHP of its own, which is kept as frankenphp.before-howdah");
    clap::Command::new("octane")
        .about("Have Laravel Octane start this server as its frankenphp: make that link in the project")
        .arg(directory)
        .arg(replace)
        .after_help(
            "Examples:\n  howdah octane && php artisan octane:start --server=frankenphp\n  howdah octane /srv/shop --replace\n\n\
             Before or after `octane:install --server=frankenphp`, which downloads nothing where the link is there.",
        )
}

pub(super) fn octane(matches: &ArgMatches) -> Command {
    Command::Octane {
        directory: matches.get_one::<PathBuf>(DIRECTORY).cloned().unwrap_or_default(),
        replace: matches.get_flag(REPLACE),
    }
}
