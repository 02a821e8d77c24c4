//! Access control of a path: `Require` with its containers, and the older `Order`, `Allow`, `Deny` and `Satisfy`.
//!
//! Passwords are not verified here. A requirement that depends on one is returned as such, and the caller verifies it.

use crate::expression::Expression;
use crate::networks::Network;
use crate::pattern::{BudgetExceeded, PatternBudget};
use crate::request_state::RequestState;
use crate::text::words;
use std::net::IpAddr;
use std::sync::Arc;

/// Result of a requirement before authentication.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Verdict {
    Granted,
    Denied,
    /// Requires one of these users, or any authenticated user if the list is empty.
    Needs(Vec<String>),
}

/// Excluding clients by a property that cannot be determined would exclude none, so such a file is refused.
const NOT_LOOKED_UP: &str = "host names and groups are not looked up, so they cannot exclude clients: name addresses";

#[derive(Debug)]
pub(crate) enum Require {
    Everybody(bool),
    Networks(Vec<Network>),
    Local,
    Methods(Vec<String>),
    Variables(Vec<String>),
    Expression(Expression),
    Users(Vec<String>),
    /// Cannot be determined here: a host name or a group.
    Unknown,
    Not(Box<Require>),
    /// A requirement of a parent directory, shared to avoid copies.
    Shared(Arc<Require>),
    All(Vec<Require>),
    Any(Vec<Require>),
    None(Vec<Require>),
}

impl Require {
    /// Parses the text after the word `Require`.
    pub(crate) fn new(text: &str, room: &mut PatternBudget) -> Result<Self, String> {
        let all = words(text);
        let (name, rest) = all.split_first().ok_or("Require needs an argument")?;
        let values = || rest.to_vec();
        Ok(match name.to_ascii_lowercase().as_str() {
            "not" => {
                let inner = text.trim_start()[3..].trim_start();
                match Self::new(inner, room)? {
                    Self::Users(_) => {
                        return Err("Require not is not supported for users: list the allowed users".to_owned());
                    }
                    Self::Unknown => return Err(NOT_LOOKED_UP.to_owned()),
                    inner => Self::Not(Box::new(inner)),
                }
            }
            "all" => match rest {
                [word] if word.eq_ignore_ascii_case("granted") => Self::Everybody(true),
                [word] if word.eq_ignore_ascii_case("denied") => Self::Everybody(false),
                _ => return Err("expected Require all granted or Require all denied".to_owned()),
            },
            "ip" => Self::Networks(rest.iter().map(|text| Network::new(text)).collect::<Result<_, _>>()?),
            "local" => Self::Local,
            "method" => Self::Methods(values()),
            "env" => Self::Variables(values()),
            "expr" => {
                let inner = text.trim_start()[4..].trim();
                let inner = inner.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(inner);
                Self::Expression(Expression::new(inner, room)?)
            }
            "valid-user" => Self::Users(Vec::new()),
            "user" if !rest.is_empty() => Self::Users(values()),
            "host" | "forward-dns" | "group" | "file-owner" | "file-group" => Self::Unknown,
            _ => return Err(format!("unknown condition Require {name}")),
        })
    }

    /// `true` for a container in which a `Require not` has no effect.
    pub(crate) fn has_bare_not(&self) -> bool {
        matches!(self, Self::Any(parts) | Self::None(parts) if parts.iter().any(|part| matches!(part, Self::Not(_))))
    }

    /// Refuses a `<RequireNone>` that would grant access to every client whose host name or group is unknown.
    pub(crate) fn check(&self) -> Result<(), &'static str> {
        match self {
            Self::None(parts) if parts.iter().any(Self::is_undecidable) => Err(NOT_LOOKED_UP),
            _ => Ok(()),
        }
    }

    fn is_undecidable(&self) -> bool {
        match self {
            Self::Unknown => true,
            Self::All(parts) | Self::Any(parts) | Self::None(parts) => parts.iter().any(Self::is_undecidable),
            _ => false,
        }
    }

    pub(crate) fn verdict(&self, state: &mut RequestState<'_>) -> Result<Verdict, BudgetExceeded> {
        state.budget.spend(64)?;
        let of = |holds| if holds { Verdict::Granted } else { Verdict::Denied };
        Ok(match self {
            Self::Everybody(granted) => of(*granted),
            Self::Networks(networks) => of(state.facts.remote.is_some_and(|ip| any(networks, ip))),
            Self::Local => of(is_local(state)),
            Self::Methods(methods) => of(methods.iter().any(|method| allows_method(method, state.method))),
            Self::Variables(names) => of(names.iter().any(|name| state.environment.get(name).is_some())),
            Self::Expression(expression) => of(expression.holds(state)?),
            Self::Users(users) => Verdict::Needs(users.clone()),
            Self::Unknown => Verdict::Denied,
            Self::Shared(inner) => inner.verdict(state)?,
            Self::Not(inner) => match inner.verdict(state)? {
                Verdict::Granted => Verdict::Denied,
                _ => Verdict::Granted,
            },
            Self::All(parts) => {
                let mut needed: Option<Vec<String>> = None;
                for part in parts {
                    match part.verdict(state)? {
                        Verdict::Granted => {}
                        Verdict::Denied => return Ok(Verdict::Denied),
                        Verdict::Needs(users) => needed = Some(both(needed.take(), users)),
                    }
                }
                needed.map_or(Verdict::Granted, Verdict::Needs)
            }
            Self::Any(parts) => any_of(parts, state)?,
            Self::None(parts) => match any_of(parts, state)? {
                Verdict::Denied => Verdict::Granted,
                _ => Verdict::Denied,
            },
        })
    }
}

/// Evaluates alternatives. A `Require not` among them is neutral: it can only refuse.
fn any_of(parts: &[Require], state: &mut RequestState<'_>) -> Result<Verdict, BudgetExceeded> {
    let mut needed: Option<Vec<String>> = None;
    for part in parts {
        match part.verdict(state)? {
            Verdict::Granted if matches!(part, Require::Not(_)) => {}
            Verdict::Granted => return Ok(Verdict::Granted),
            Verdict::Denied => {}
            Verdict::Needs(users) => match &mut needed {
                Some(known) if known.is_empty() || users.is_empty() => known.clear(),
                Some(known) => known.extend(users),
                None => needed = Some(users),
            },
        }
    }
    Ok(needed.map_or(Verdict::Denied, Verdict::Needs))
}

/// Users allowed by both lists; an empty list allows all. If no user is in both, the result is a user that does not
/// exist.
fn both(known: Option<Vec<String>>, users: Vec<String>) -> Vec<String> {
    let Some(mut known) = known else { return users };
    if known.is_empty() {
        return users;
    }
    if !users.is_empty() {
        known.retain(|user| users.contains(user));
        if known.is_empty() {
            known.push(":".to_owned());
        }
    }
    known
}

fn any(networks: &[Network], ip: IpAddr) -> bool {
    networks.iter().any(|network| network.contains(ip))
}

fn is_local(state: &RequestState<'_>) -> bool {
    let server = state.facts.server_addr.parse().ok();
    state.facts.remote.is_some_and(|ip| ip.to_canonical().is_loopback() || Some(ip) == server)
}

/// `true` if a method's name in `<Limit>` covers the method; GET includes HEAD.
pub(crate) fn allows_method(name: &str, method: &str) -> bool {
    name == method || (name == "GET" && method == "HEAD")
}

/// `Order`, `Allow from` and `Deny from`.
#[derive(Debug, Clone, Default)]
pub(crate) struct Compat {
    /// `Allow` lines are evaluated first: clients that no line names are denied.
    pub allow_first: Option<bool>,
    pub allow: Vec<From>,
    pub deny: Vec<From>,
}

#[derive(Debug, Clone)]
pub(crate) enum From {
    All,
    Network(Network),
    Variable(String, bool),
    /// A host name, which is not resolved.
    Name,
}

impl From {
    fn new(text: &str) -> Self {
        if text.eq_ignore_ascii_case("all") {
            Self::All
        } else if let Some(name) = text.strip_prefix("env=") {
            Self::Variable(name.trim_start_matches('!').to_owned(), !name.starts_with('!'))
        } else {
            Network::new(text).map_or(Self::Name, Self::Network)
        }
    }

    fn meets(&self, state: &RequestState<'_>) -> bool {
        match self {
            Self::All => true,
            Self::Network(network) => state.facts.remote.is_some_and(|ip| network.contains(ip)),
            Self::Variable(name, wanted) => state.environment.get(name).is_some() == *wanted,
            Self::Name => false,
        }
    }
}

impl Compat {
    /// Adds a line: `name` is `order`, `allow` or `deny`, `text` its arguments.
    pub(crate) fn add(&mut self, name: &str, text: &str) -> Result<(), String> {
        let all = words(text);
        if name == "order" {
            let order = all.join(" ").to_ascii_lowercase();
            self.allow_first = Some(match order.as_str() {
                "allow,deny" | "mutual-failure" => true,
                "deny,allow" => false,
                _ => return Err(format!("Order {text}: expected allow,deny or deny,allow")),
            });
            return Ok(());
        }
        match all.split_first() {
            Some((from, list)) if from.eq_ignore_ascii_case("from") && !list.is_empty() => {
                let list: Vec<From> = list.iter().map(|text| From::new(text)).collect();
                if name == "allow" {
                    self.allow.extend(list);
                } else if list.iter().any(|from| matches!(from, From::Name)) {
                    return Err(NOT_LOOKED_UP.to_owned());
                } else {
                    self.deny.extend(list);
                }
                Ok(())
            }
            _ => Err(format!("expected {name} from and clients")),
        }
    }

    pub(crate) fn allows(&self, state: &RequestState<'_>) -> bool {
        let allowed = self.allow.iter().any(|from| from.meets(state));
        let denied = self.deny.iter().any(|from| from.meets(state));
        if self.allow_first == Some(true) { allowed && !denied } else { allowed || !denied }
    }
}
