//! The arguments of `howdah init`.

use super::{Command, DIRECTORY};
use clap::{Arg, ArgAction, ArgMatches};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  howdah init                    howdah.toml for the application in this directory
  howdah init /srv/shop --print  what it would be
  howdah init www.conf           the settings of a pool of PHP-FPM as howdah.toml, in this directory
  howdah init nginx.conf         nginx's sites, with a comment for each line: taken, changed, dropped
  howdah init site.conf          Apache's virtual hosts, in the same way
  howdah init --octane && php artisan octane:start --server=frankenphp

A howdah.toml that is there already is never written over. --octane works before and after
`octane:install --server=frankenphp`, which downloads nothing where the link is there.";

pub(super) fn init_args() -> clap::Command {
    let directory = Arg::new(DIRECTORY)
        .value_name("DIR")
        .default_value(".")
        .value_parser(clap::value_parser!(PathBuf))
        .help("The application's directory, or a file of PHP-FPM, nginx or Apache");
    let switch = |name: &'static str| Arg::new(name).long(name).action(ArgAction::SetTrue);
    clap::Command::new("init")
        .about("Write a howdah.toml for the application in a directory, or from a file of PHP-FPM, nginx or Apache")
        .args([
            directory,
            switch("print").help("Print it, and write nothing"),
            switch("list").conflicts_with("print").help("List the applications that serve and init know"),
            switch("octane")
                .conflicts_with_all(["print", "list"])
                .help("Instead create the link by which Laravel Octane starts this server as frankenphp"),
            switch("replace")
                .requires("octane")
                .help("Replace the project's FrankenPHP, keeping it as frankenphp.before-howdah"),
        ])
        .after_help(EXAMPLES)
}

pub(super) fn init(matches: &ArgMatches) -> Command {
    let directory = matches.get_one::<PathBuf>(DIRECTORY).cloned().unwrap_or_default();
    match (matches.get_flag("list"), matches.get_flag("octane")) {
        (true, _) => Command::Recipes,
        (_, true) => Command::Octane { directory, replace: matches.get_flag("replace") },
        _ => Command::Init { directory, print: matches.get_flag("print") },
    }
}
