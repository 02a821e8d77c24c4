//! The arguments of `howdah explain`.

use super::{Command, config_arg, serve_flags};
use clap::{Arg, ArgAction, ArgMatches};
use std::net::IpAddr;

const EXPLAIN_EXAMPLES: &str = "\
Examples:
  howdah explain http://shop.example/cart
  howdah explain POST https://shop.example/api/orders --client 203.0.113.7
  howdah explain /index.php --header 'Host: shop.example' --json";

/// The command.
pub(super) fn explain_args() -> clap::Command {
    let header = |text: &str| match text.split_once(':') {
        Some((name, value)) if !name.is_empty() => Ok((name.trim().to_owned(), value.trim().to_owned())),
        _ => Err("expected NAME: VALUE"),
    };
    clap::Command::new("explain")
        .about("Explain which site, file, script and pool a request reaches; needs no running server")
        .arg(Arg::new("method").value_name("METHOD").help("The method [default: GET]"))
        .arg(Arg::new("url").value_name("URL").required(true).help("The URL; a path alone is a request without a host"))
        .allow_missing_positional(true)
        .arg(
            Arg::new("header")
                .long("header")
                .short('H')
                .value_name("NAME: VALUE")
                .value_parser(header)
                .action(ArgAction::Append)
                .help("A header of the request; may be repeated"),
        )
        .arg(
            Arg::new("client")
                .long("client")
                .value_name("ADDR")
                .value_parser(clap::value_parser!(IpAddr))
                .default_value("127.0.0.1")
                .help("Address of the client"),
        )
        .arg(Arg::new("json").long("json").action(ArgAction::SetTrue).help("Print JSON"))
        .arg(config_arg())
        .arg(Arg::new("root").long("root").value_name("DIR").help("The directory to serve, as `serve ROOT` has it"))
        .after_help(EXPLAIN_EXAMPLES)
}

/// Parses the arguments.
pub(super) fn explain(matches: &ArgMatches) -> Command {
    let text = |id: &str| matches.get_one::<String>(id).cloned();
    let (method, url) = (text("method").unwrap_or_else(|| "GET".to_owned()), text("url").unwrap_or_default());
    let headers = matches.get_many::<(String, String)>("header").into_iter().flatten().cloned().collect();
    let client = matches.get_one::<IpAddr>("client").copied().unwrap_or(IpAddr::from([127, 0, 0, 1]));
    Command::Explain { serve: serve_flags(matches), method, url, headers, client, json: matches.get_flag("json") }
}
