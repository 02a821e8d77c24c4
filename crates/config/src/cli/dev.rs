//! The commands for developers: `dev`, `mails`, and `sendmail`, which PHP runs.

use super::{Command, Mails, config_arg, flag, flag_rows, serve_args, serve_flags};
use clap::{Arg, ArgAction, ArgMatches};
use std::path::PathBuf;

const DIRECTORY: &str = "directory";

const DEV_EXAMPLES: &str = "\
Examples:
  howdah dev                          the project in this directory, from ./public if there is one
  howdah dev ~/src/shop               another one
  howdah dev --listen 127.0.0.1:9000  on an address of your choice
  howdah dev --mode worker --script public/worker.php

It takes the flags and the howdah.toml of `howdah serve`. In addition:
  errors become pages with source, stack and request; such pages show your code, so it serves this machine alone
  each request gets a line here; changed code counts from the next request on
  mails stay here: `howdah mails` shows them
  https with a certificate of the local CA: run `howdah trust` once to make browsers trust it";

const MAILS_EXAMPLES: &str = "\
Examples:
  howdah mails            one line for each, the newest first
  howdah mails --show 1   the newest
  howdah mails --clear";

fn directory() -> Arg {
    Arg::new(DIRECTORY)
        .value_name("DIR")
        .value_parser(clap::value_parser!(PathBuf))
        .help("The project's directory [default: .]")
}

pub(super) fn dev_args() -> clap::Command {
    let command = clap::Command::new("dev").about("Serve a project while you work on it").after_help(DEV_EXAMPLES);
    // The root is a setting of the project; what is named here is the project.
    serve_args(command).mut_arg(super::ROOT, |arg| arg.value_name("DIR").help("The project's directory [default: .]"))
}

pub(super) fn mails_args() -> clap::Command {
    let state = flag_rows().map(|(_, row)| row).filter(|row| row.flag == Some("state")).map(flag);
    let command = clap::Command::new("mails")
        .about("Show the mails that a project has sent under dev")
        .arg(directory())
        .arg(
            Arg::new("show")
                .long("show")
                .value_name("N")
                .value_parser(clap::value_parser!(usize))
                .help("Print the mail with this number"),
        )
        .arg(Arg::new("clear").long("clear").action(ArgAction::SetTrue).conflicts_with("show").help("Delete all"))
        .arg(config_arg())
        .after_help(MAILS_EXAMPLES);
    state.fold(command, clap::Command::arg)
}

/// PHP adds options of sendmail(8) and recipients; a mail's header has its recipients too.
pub(super) fn sendmail_args() -> clap::Command {
    clap::Command::new("sendmail")
        .about("Keep the mail on standard input; PHP runs it under dev")
        .hide(true)
        .arg(Arg::new("into").long("into").value_name("DIR").required(true).value_parser(clap::value_parser!(PathBuf)))
        .arg(Arg::new("ignored").num_args(0..).trailing_var_arg(true).allow_hyphen_values(true))
}

pub(super) fn dev(matches: &ArgMatches) -> Command {
    let mut serve = serve_flags(matches);
    let directory = serve.values.remove(super::ROOT).and_then(|values| values.into_iter().next()).map(PathBuf::from);
    Command::Dev { serve, directory }
}

pub(super) fn mails(matches: &ArgMatches) -> Command {
    let what = match matches.get_one::<usize>("show") {
        Some(&number) => Mails::Show(number),
        None if matches.get_flag("clear") => Mails::Clear,
        None => Mails::List,
    };
    let directory = matches.get_one::<PathBuf>(DIRECTORY).cloned();
    Command::Mails { serve: serve_flags(matches), directory, what }
}

pub(super) fn sendmail(matches: &ArgMatches) -> Command {
    Command::Sendmail { into: matches.get_one::<PathBuf>("into").cloned().unwrap_or_default() }
}
