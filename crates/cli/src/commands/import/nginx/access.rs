//! nginx's access control: the lines of one level together become one rule.

use crate::commands::import::directive::Directive;
use crate::commands::import::site::Rule;
use std::net::IpAddr;

/// Directives that are converted together.
pub(super) const PROTECTING: &[&str] =
    &["allow", "deny", "satisfy", "auth_basic", "auth_basic_user_file", "auth_request"];

pub(super) fn protects(directive: &Directive) -> bool {
    PROTECTING.contains(&&*directive.name)
}

/// Converts the lines of a level to a rule with the conditions of `base`.
pub(super) fn rule(lines: &[&Directive], base: &Rule) -> Rule {
    let mut rule = base.conditions();
    let last = |name: &str| lines.iter().rfind(|line| line.name == name).map_or("", |line| line.word(0));
    if !matches!(last("auth_request"), "" | "off") {
        rule.deny();
        return rule;
    }
    let (realm, file) = (last("auth_basic"), last("auth_basic_user_file"));
    let asks = !matches!(realm, "" | "off");
    // The first address that fits decides. Addresses that are refused after the last allowed one are part of `all`.
    let lists: Vec<&&Directive> = lines.iter().filter(|line| matches!(&*line.name, "allow" | "deny")).collect();
    let end = lists.iter().position(|line| line.word(0) == "all");
    let closes = end.is_some_and(|end| lists[end].name == "deny");
    let lists = &lists[..end.unwrap_or(lists.len())];
    let end =
        if closes { lists.iter().rposition(|line| line.name == "allow").unwrap_or_default() } else { lists.len() };
    let allowed = clients(lists.iter().filter(|line| line.name == "allow").map(|line| line.word(0)));
    let denied = clients(lists[..end].iter().filter(|line| line.name == "deny").map(|line| line.word(0)));
    if asks {
        rule.keys.set("auth.realm", realm);
        rule.keys.set("auth.file", file);
    } else if realm == "off" {
        rule.keys.write("auth", "false");
    }
    if asks && closes && last("satisfy") == "any" {
        if !allowed.is_empty() {
            rule.unless.set_list("client", &allowed);
        }
        return rule;
    }
    if closes && allowed.is_empty() {
        rule.deny();
    } else if closes {
        rule.keys.set_list("allow", &allowed);
    }
    if !denied.is_empty() && !rule.keys.has("deny") {
        rule.keys.set_list("deny", &denied);
        if !closes && !asks && !allowed.is_empty() {
            rule.unless.set_list("client", &allowed);
        }
    }
    rule
}

/// The addresses and networks among these words.
fn clients<'a>(words: impl Iterator<Item = &'a str>) -> Vec<String> {
    let is_network = |word: &&str| word.split('/').next().is_some_and(|addr| addr.parse::<IpAddr>().is_ok());
    words.filter(is_network).map(str::to_owned).collect()
}
