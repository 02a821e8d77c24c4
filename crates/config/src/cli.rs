//! The commands of `howdah` and their flags. Flags of settings are generated from the table of settings (`serve`).

mod doctor;
mod profile;
mod reload;
mod serve;

use std::ffi::OsString;
use std::net::IpAddr;
use std::path::PathBuf;

use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

use crate::other_servers;
pub use doctor::DoctorFlags;
pub use profile::{ProfileFlags, ProfileFormat};
pub use reload::ReloadFlags;
pub(crate) use serve::flag_rows;
pub use serve::{ControlFlags, ServeFlags, StateFlags};

/// The parsed command line.
#[derive(Debug, Clone, PartialEq, Eq, Parser)]
#[command(
    name = PROGRAM,
    about = "A PHP application server",
    version,
    disable_help_subcommand = true,
    after_help = READ_ON
)]
pub struct Cli {
    /// The command.
    #[command(subcommand)]
    pub command: Command,
}

/// A command of `howdah`.
#[derive(Debug, Clone, PartialEq, Eq, Subcommand)]
pub enum Command {
    /// Serve a PHP application
    #[command(after_help = SERVE_EXAMPLES)]
    Serve(ServeFlags),
    /// Serve a project while you work on it
    // The argument is the project's directory, which may set its root.
    #[command(after_help = DEV_EXAMPLES, mut_arg(serve::ROOT, |arg| arg.value_name("DIR").help(PROJECT)))]
    Dev(ServeFlags),
    /// Show the mails that a project has sent under dev
    #[command(after_help = MAILS_EXAMPLES)]
    Mails {
        #[arg(value_name = "DIR", help = PROJECT)]
        directory: Option<PathBuf>,
        /// Print the mail with this number
        #[arg(long, value_name = "N")]
        show: Option<usize>,
        /// Delete all mails
        #[arg(long, conflicts_with = "show")]
        clear: bool,
        #[command(flatten)]
        server: StateFlags,
    },
    /// Keep the mail on standard input; PHP runs it under dev
    #[command(hide = true)]
    Sendmail {
        #[arg(long, value_name = "DIR")]
        into: PathBuf,
        /// Options of sendmail(8) and recipients, which PHP adds; a mail's header has its recipients too.
        #[arg(num_args = 0.., trailing_var_arg = true, allow_hyphen_values = true)]
        ignored: Vec<OsString>,
    },
    /// Show the effective settings, or every mistake in them
    #[command(after_help = CHECK_EXAMPLES)]
    Check(ServeFlags),
    /// Write a howdah.toml for the application in a directory, or from a file of another server
    #[command(after_help = INIT_EXAMPLES)]
    Init {
        /// The application's directory, or a file of another server
        #[arg(value_name = "DIR", default_value = ".")]
        directory: PathBuf,
        /// Print the settings instead of writing them
        #[arg(long)]
        print: bool,
        /// List the applications that serve and init know
        #[arg(long, conflicts_with = "print")]
        list: bool,
        /// Instead create the link by which Laravel Octane starts this server as frankenphp
        #[arg(long, conflicts_with_all = ["print", "list"])]
        octane: bool,
        /// Replace the project's FrankenPHP, keeping it as frankenphp.before-howdah
        #[arg(long, requires = "octane")]
        replace: bool,
    },
    /// Find out which mode is safe for an application, and what it gains
    Doctor(DoctorFlags),
    /// Explain which site, file, script and pool a request reaches; needs no running server
    #[command(after_help = EXPLAIN_EXAMPLES, allow_missing_positional = true)]
    Explain {
        /// The method [default: GET]
        #[arg(value_name = "METHOD")]
        method: Option<String>,
        /// The URL; a path alone is a request without a host
        #[arg(value_name = "URL", required = true)]
        url: String,
        /// A header of the request; may be repeated
        #[arg(long = "header", short = 'H', value_name = "NAME: VALUE", value_parser = header)]
        headers: Vec<(String, String)>,
        /// Address of the client
        #[arg(long, value_name = "ADDR", default_value = "127.0.0.1")]
        client: IpAddr,
        /// Print JSON
        #[arg(long)]
        json: bool,
        #[arg(long, short, value_name = "FILE", help = serve::CONFIG)]
        config: Option<PathBuf>,
        /// The directory to serve, like ROOT of `serve`
        #[arg(long, value_name = "DIR")]
        root: Option<String>,
    },
    /// Show the state of a running server
    #[command(after_help = STATUS_EXAMPLES)]
    Status {
        #[command(flatten)]
        server: ControlFlags,
        /// Print JSON
        #[arg(long)]
        json: bool,
        /// Repeat every second until interrupted; with --json, one line each
        #[arg(long, short)]
        watch: bool,
        /// Print the settings of `sandbox` that pools with profile "learn" have needed
        #[arg(long, conflicts_with_all = ["json", "watch"])]
        sandbox: bool,
    },
    /// Watch a running server: pools, workers, slowest routes
    #[command(after_help = "Examples:\n  howdah top\n  howdah top --once --config /etc/howdah/howdah.toml")]
    Top {
        #[command(flatten)]
        server: ControlFlags,
        /// Print one second and exit; the default without a terminal
        #[arg(long)]
        once: bool,
    },
    /// Show where PHP spends its time, without disturbing requests
    Profile {
        #[command(flatten)]
        server: ControlFlags,
        #[command(flatten)]
        profile: ProfileFlags,
    },
    /// List the routes that were demoted to classic mode
    #[command(after_help = "Examples:\n  howdah routes\n  howdah routes --restore /cart")]
    Routes {
        #[command(flatten)]
        server: ControlFlags,
        /// Restore a path, or a route of the list, to its pool; "*" for all
        #[arg(long, value_name = "PATH")]
        restore: Option<String>,
        /// Print JSON
        #[arg(long, conflicts_with = "restore")]
        json: bool,
    },
    /// Reload settings and code of a running server; no request is lost
    Reload {
        #[command(flatten)]
        server: ControlFlags,
        #[command(flatten)]
        reload: ReloadFlags,
    },
    /// Replace a running server with the installed program; no request is lost
    #[command(after_help = "Example:\n  howdah upgrade --config /etc/howdah/howdah.toml")]
    Upgrade(ControlFlags),
    /// Stop a running server after its running requests
    #[command(after_help = "Example:\n  howdah stop --listen 127.0.0.1:8080")]
    Stop(ControlFlags),
    /// Trust the certificates of the local CA on this machine
    #[command(after_help = TRUST_EXAMPLES)]
    Trust {
        #[command(flatten)]
        server: StateFlags,
        /// Print the CA's certificate instead of installing it
        #[arg(long)]
        print: bool,
        /// Remove the CA from the system
        #[arg(long, conflicts_with = "print")]
        uninstall: bool,
    },
    /// Print shell completions
    #[command(after_help = "Example:\n  howdah completions bash > /etc/bash_completion.d/howdah")]
    Completions {
        #[arg(value_name = "SHELL", value_parser = SHELLS)]
        shell: String,
    },
    /// Write the manual pages into a directory
    #[command(hide = true)]
    Man {
        #[arg(value_name = "DIR")]
        directory: PathBuf,
    },
}

/// The name of the program.
pub(crate) const PROGRAM: &str = "howdah";

/// The shells for which completions are available.
pub(crate) const SHELLS: [&str; 3] = ["bash", "fish", "zsh"];

const READ_ON: &str = "\
Guides:    /usr/share/doc/howdah/guide
Messages:  /usr/share/doc/howdah/reference/messages.md (each message of the log, with its remedy)";

const SERVE_EXAMPLES: &str = "\
Examples:
  howdah serve                                       ./public (or .) on 127.0.0.1:8080
  howdah serve /srv/app/public --listen :80          on every IPv4 address
  howdah serve --workers 2-16 -d memory_limit=256M   more workers while there is work
  howdah serve --mode worker --script worker.php     the script stays loaded
  howdah serve --mode async --script worker.php      and runs many requests at once
  howdah serve --listen unix:/run/howdah.sock        behind another server

`--set KEY=VALUE` takes every setting of howdah.toml. `howdah check` shows all of them.";

const DEV_EXAMPLES: &str = "\
Examples:
  howdah dev                          the project in this directory, from ./public if there is one
  howdah dev ~/src/shop               another one
  howdah dev --listen 127.0.0.1:9000  on an address of your choice
  howdah dev --mode worker --script public/worker.php

It takes the flags and the howdah.toml of `howdah serve`. In addition:
  errors become pages with source, stack and request, so it serves this machine only
  each request is logged in the terminal; changed code takes effect at the next request
  mails are stored instead of sent: `howdah mails` shows them
  HTTPS has a certificate of the local CA: run `howdah trust` once to make browsers trust it";

const MAILS_EXAMPLES: &str = "\
Examples:
  howdah mails            list them, the newest first
  howdah mails --show 1   print the newest
  howdah mails --clear    delete all";

const CHECK_EXAMPLES: &str = "\
Examples:
  howdah check                              the settings of `howdah serve` here, with their origins
  howdah check /etc/howdah/howdah.toml      exit status 1 and every error, if something is wrong";

const INIT_EXAMPLES: &str = "\
Examples:
  howdah init                    howdah.toml for the application in this directory
  howdah init /srv/shop --print  show it, and write nothing
  howdah init www.conf           convert a pool of PHP-FPM; writes into this directory
  howdah init nginx.conf         convert nginx's sites, with a comment for each line
  howdah init site.conf          convert Apache's virtual hosts
  howdah init Caddyfile          convert a Caddyfile
  howdah init unit.json          convert Unit's; also RoadRunner's .rr.yaml, config/octane.php
  howdah init --octane && php artisan octane:start --server=frankenphp

An existing howdah.toml is never overwritten. Use --octane before `octane:install`, which then downloads nothing.";

const EXPLAIN_EXAMPLES: &str = "\
Examples:
  howdah explain http://shop.example/cart
  howdah explain POST https://shop.example/api/orders --client 203.0.113.7
  howdah explain /index.php --header 'Host: shop.example' --json";

const STATUS_EXAMPLES: &str = "\
Examples:
  howdah status
  howdah status --watch
  howdah status --json --admin unix:/run/howdah/admin.sock
  howdah status --sandbox >> sandbox.toml";

const TRUST_EXAMPLES: &str = "\
Examples:
  sudo howdah trust                                 trust the CA of the server that root starts
  sudo howdah trust --state ~/.local/state/howdah   trust the CA of your own server
  howdah trust --print > ca.pem                     save it for another machine, or a program with its own list";

const PROJECT: &str = "The project's directory [default: .]";

fn is_flag_of_serve(name: &str) -> bool {
    flag_rows().any(|(_, row)| row.flag == Some(name))
}

impl Cli {
    /// Parses the command line of this process. Prints help or an error and exits if there is nothing else to do.
    pub fn parse() -> Self {
        match Self::try_parse_from(std::env::args_os()) {
            Ok(cli) => cli,
            Err(error) => error.exit(),
        }
    }

    /// Parses a command line that begins with the program's name.
    ///
    /// # Errors
    /// The requested help, or the error.
    pub fn try_parse_from<I>(args: I) -> Result<Self, clap::Error>
    where
        I: IntoIterator,
        I::Item: Into<OsString> + Clone,
    {
        let args = other_servers::with_help(args.into_iter().map(Into::into).collect());
        let matches =
            definition().try_get_matches_from(args).map_err(|error| other_servers::hint(error, is_flag_of_serve))?;
        Self::from_arg_matches(&matches)
    }
}

/// The whole command line's definition.
pub fn definition() -> clap::Command {
    Cli::command()
}

/// Every command with its help, for the reference: name and text.
pub(crate) fn help_texts() -> Vec<(String, String)> {
    let mut definition = definition().term_width(100);
    definition.build();
    let commands = definition.get_subcommands_mut().filter(|command| !command.is_hide_set());
    commands.map(|command| (command.get_name().to_owned(), command.render_long_help().to_string())).collect()
}

/// Parses the value of `--header`.
fn header(text: &str) -> Result<(String, String), &'static str> {
    match text.split_once(':') {
        Some((name, value)) if !name.is_empty() => Ok((name.trim().to_owned(), value.trim().to_owned())),
        _ => Err("expected NAME: VALUE"),
    }
}
