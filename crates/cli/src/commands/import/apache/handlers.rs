//! The scripts that Apache's handlers send to PHP.

use super::{files, is_one_of};
use crate::commands::import::directive::Directive;
use crate::commands::import::site::{Rule, escaped, is_for_all_directories};

/// A rule that refuses all scripts except those named by handlers: Apache sends the source of others. `None` if no
/// handler names scripts, or if one applies to all of them.
pub(super) fn only_named(lines: &[&Directive], sections: &[&Directive]) -> Option<Rule> {
    let mut named = Vec::new();
    let is_named = lines.iter().chain(sections).all(|line| named_by(line, &mut named));
    (is_named && !named.is_empty()).then(|| Rule::no_scripts_but(named))
}

/// Collects the paths of scripts. Returns `false` for a handler that applies to all.
fn named_by(directive: &Directive, named: &mut Vec<String>) -> bool {
    let place = directive.word(0);
    if directive.block.is_none() {
        let is_php = directive.words.iter().any(|word| word.contains("fcgi:") || word.contains("php"));
        return match directive.name.to_ascii_lowercase().as_str() {
            "proxypassmatch" if is_php && !is_for_all_directories(place) => {
                named.push(format!("~{place}"));
                true
            }
            "sethandler" | "addhandler" | "addtype" | "proxypass" | "proxypassmatch" => !is_php,
            "rewriterule" => !directive.words.iter().any(|word| word.contains("fcgi:")),
            _ => true,
        };
    }
    let own = match directive.name.to_ascii_lowercase().as_str() {
        "files" if place == "~" => Some(files(directive.word(1), "")),
        "files" => Some(format!("~/{}$", escaped(place).replace("\\*", "[^/]*"))),
        "filesmatch" => Some(files(place, "")),
        "locationmatch" => Some(format!("~{place}")),
        _ => None,
    };
    let own = own.filter(|path| !is_for_all_directories(&path[1..]));
    directive.inner().iter().all(|inner| match &own {
        Some(path) if is_one_of(inner, &["SetHandler"]) && !named_by(inner, &mut Vec::new()) => {
            named.push(path.strip_suffix('$').map_or_else(|| path.clone(), |path| format!("{path}(?:/|$)")));
            true
        }
        _ => named_by(inner, named),
    })
}
