//! Apache's `Require` and its containers: each demand that all clients must meet becomes a rule.

use crate::commands::import::directive::Directive;
use crate::commands::import::site::{Keys, Rule};
use std::net::{IpAddr, Ipv4Addr};

/// Maximum number of demands; more are refused as unknown.
const MAX_DEMANDS: usize = 16;

/// One condition of a `Require` line.
#[derive(Debug, Clone)]
enum Condition {
    Granted,
    /// Holds for no client. Also stands for conditions without a counterpart: ignoring these would open the site.
    Never,
    Clients(Vec<String>),
    NotClients(Vec<String>),
    Methods(Vec<String>),
    NotMethods(Vec<String>),
    /// Users, or any user with a password.
    Users(Option<Vec<String>>),
}

/// A demand: one of its conditions must hold.
type Demand = Vec<Condition>;

/// `true` for directives that this module converts.
pub(super) fn is_part(directive: &Directive) -> bool {
    directive.name.to_ascii_lowercase().starts_with("require")
}

/// `true` if the directive has a condition without a counterpart.
pub(super) fn is_unknown(directive: &Directive) -> bool {
    let leaf = directive.name.eq_ignore_ascii_case("Require");
    if leaf {
        let is_denied = directive.shown().to_ascii_lowercase().ends_with("all denied");
        return !is_denied && matches!(condition(&directive.words), Condition::Never);
    }
    directive.inner().iter().any(is_unknown)
}

/// Converts the lines of a section to rules with the conditions of `base`. Outside of containers one line must hold.
/// `auth` has the keys of the section's passwords.
pub(super) fn rules(lines: &[&Directive], base: &Rule, auth: &Keys) -> Vec<Rule> {
    let demands = any_of(lines.iter().copied());
    demands.iter().filter_map(|demand| rule(demand, base, auth)).collect()
}

fn demands(directive: &Directive) -> Vec<Demand> {
    let inner = directive.inner().iter().filter(|part| is_part(part));
    match directive.name.to_ascii_lowercase().as_str() {
        "require" => vec![vec![condition(&directive.words)]],
        "requireall" => inner.flat_map(demands).collect(),
        "requireany" => any_of(inner),
        "requirenone" => inner.map(|part| vec![negated(condition(&part.words))]).collect(),
        _ => vec![vec![Condition::Never]],
    }
}

fn any_of<'a>(parts: impl Iterator<Item = &'a Directive>) -> Vec<Demand> {
    let mut all: Option<Vec<Demand>> = None;
    for part in parts {
        let own = demands(part);
        all = Some(match all {
            None => own,
            Some(all) => {
                all.iter().flat_map(|demand| own.iter().map(|own| [demand.as_slice(), own].concat())).collect()
            }
        });
        if all.as_ref().is_some_and(|all| all.len() > MAX_DEMANDS) {
            return vec![vec![Condition::Never]];
        }
    }
    all.unwrap_or_default()
}

fn condition(words: &[String]) -> Condition {
    let Some((kind, rest)) = words.split_first() else { return Condition::Never };
    let networks = || rest.iter().map(|word| network(word)).collect::<Option<Vec<String>>>();
    match kind.to_ascii_lowercase().as_str() {
        "not" => negated(condition(rest)),
        "all" if rest.first().is_some_and(|word| word.eq_ignore_ascii_case("granted")) => Condition::Granted,
        "ip" => networks().map_or(Condition::Never, Condition::Clients),
        "local" => Condition::Clients(vec!["127.0.0.0/8".to_owned(), "::1".to_owned()]),
        "method" => Condition::Methods(rest.to_vec()),
        "valid-user" => Condition::Users(None),
        "user" => Condition::Users(Some(rest.to_vec())),
        _ => Condition::Never,
    }
}

fn negated(condition: Condition) -> Condition {
    match condition {
        Condition::Clients(clients) => Condition::NotClients(clients),
        Condition::NotClients(clients) => Condition::Clients(clients),
        Condition::Methods(methods) => Condition::NotMethods(methods),
        Condition::NotMethods(methods) => Condition::Methods(methods),
        Condition::Granted | Condition::Never | Condition::Users(_) => Condition::Never,
    }
}

/// Converts an address, a network, or the beginning of an address such as `10.1`.
fn network(word: &str) -> Option<String> {
    if let Some((addr, mask)) = word.split_once('/') {
        addr.parse::<IpAddr>().ok()?;
        let bits = match mask.parse::<Ipv4Addr>() {
            Ok(mask) => u32::from(mask).leading_ones().to_string(),
            Err(_) => mask.parse::<u8>().ok()?.to_string(),
        };
        return Some(format!("{addr}/{bits}"));
    }
    if word.parse::<IpAddr>().is_ok() {
        return Some(word.to_owned());
    }
    let parts: Vec<&str> = word.trim_end_matches('.').split('.').collect();
    let is_part = !parts.is_empty() && parts.len() < 4 && parts.iter().all(|part| part.parse::<u8>().is_ok());
    is_part.then(|| format!("{}{}/{}", parts.join("."), ".0".repeat(4 - parts.len()), parts.len() * 8))
}

/// The rule that refuses requests which do not meet a demand; `None` if all meet it.
fn rule(demand: &Demand, base: &Rule, auth: &Keys) -> Option<Rule> {
    let mut rule = base.conditions();
    let (mut clients, mut users) = (Vec::new(), None);
    for condition in demand {
        match condition {
            Condition::Granted => return None,
            Condition::Never => {}
            Condition::Clients(own) => clients.extend(own.clone()),
            Condition::NotClients(own) => rule.when.set_list("client", own),
            Condition::Methods(own) => rule.unless.set_list("method", own),
            Condition::NotMethods(own) => rule.when.set_list("method", own),
            Condition::Users(own) => users = Some(own),
        }
    }
    let others = demand.iter().filter(|condition| !matches!(condition, Condition::Clients(_) | Condition::Never));
    let is_of_clients = others.count() == 0 && !clients.is_empty();
    match (users, demand.as_slice()) {
        (Some(names), _) => {
            rule.keys = auth.clone();
            if let Some(names) = names {
                rule.keys.set_list("auth.only", names);
            }
            // Passwords without a file cannot be checked.
            if !rule.keys.has("auth.file") {
                rule.keys = Keys::default();
                rule.deny();
            }
        }
        (None, [Condition::NotClients(own)]) => {
            rule.when = base.when.clone();
            rule.keys.set_list("deny", own);
        }
        (None, _) if is_of_clients => rule.keys.set_list("allow", &clients),
        (None, _) => rule.deny(),
    }
    if !clients.is_empty() && !is_of_clients {
        rule.unless.set_list("client", &clients);
    }
    Some(rule)
}
