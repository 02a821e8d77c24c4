//! `--set KEY=VALUE`: every setting that has no flag.

use crate::row::Row;
use crate::strict::{all_rows, nearest};
use clap::{Arg, ArgAction, ArgMatches};

const SET: &str = "set";

pub(super) fn set_arg() -> Arg {
    Arg::new(SET)
        .long(SET)
        .value_name("KEY=VALUE")
        .value_parser(setting)
        .action(ArgAction::Append)
        .help("Any setting of howdah.toml, for example --set http.max_body=1G; may be repeated")
}

/// Adds what was given with it.
pub(super) fn given(matches: &ArgMatches) -> impl Iterator<Item = (String, String)> {
    let values = matches.try_get_many::<(String, String)>(SET).ok().flatten();
    values.into_iter().flatten().cloned()
}

/// The name of a setting, and its value as text.
fn setting(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("expected KEY=VALUE")?;
    let known: Vec<String> = all_rows().map(Row::name).collect();
    if known.iter().any(|known| known == name) {
        return Ok((name.to_owned(), value.to_owned()));
    }
    let known: Vec<&str> = known.iter().map(String::as_str).collect();
    let advice = nearest(name, &known).map_or_else(String::new, |near| format!("; did you mean {near}?"));
    Err(format!("unknown setting {name}{advice}"))
}
