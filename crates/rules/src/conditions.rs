//! Evaluates the conditions of a rule for a request, cheapest first.

use crate::pattern::{PathPattern, TextPattern};
use crate::query::Reading;
use crate::regex::TooManySteps;
use crate::request::Request;
use crate::rule::{Conditions, Kind};
use http::{HeaderMap, HeaderName, Method};
use ipnet::IpNet;
use std::net::IpAddr;

/// Result of a condition; `None` if the rule does not have it.
type ConditionResult = Result<Option<bool>, TooManySteps>;

/// Checks whether the path's target is one of these kinds.
type ExistsFn<'a> = &'a dyn Fn(&[Kind]) -> bool;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Key {
    Https,
    Method,
    Host,
    Path,
    Client,
    Header,
    Query,
    Exists,
}

/// All kinds of conditions, cheapest first.
pub(crate) const KEYS: [Key; 8] =
    [Key::Https, Key::Method, Key::Host, Key::Path, Key::Client, Key::Header, Key::Query, Key::Exists];

impl Key {
    /// The condition's key in a rule.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Https => "https",
            Self::Method => "method",
            Self::Host => "host",
            Self::Path => "path",
            Self::Client => "client",
            Self::Header => "header",
            Self::Query => "query",
            Self::Exists => "exists",
        }
    }
}

/// The conditions that a rule has, so that evaluation skips the others.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Present(u8);

impl Present {
    fn keys(self) -> impl Iterator<Item = Key> {
        let mut left = self.0;
        std::iter::from_fn(move || {
            let key = KEYS.get(left.trailing_zeros() as usize)?;
            left &= left - 1;
            Some(*key)
        })
    }
}

impl Conditions {
    /// The conditions that exist.
    pub(crate) fn present(&self) -> Present {
        let there = KEYS.map(|key| match key {
            Key::Https => self.https.is_some(),
            Key::Method => !self.method.is_empty(),
            Key::Host => !self.host.is_empty(),
            Key::Path => !self.path.is_empty(),
            Key::Client => !self.client.is_empty(),
            Key::Header => !self.header.is_empty(),
            Key::Query => !self.query.is_empty(),
            Key::Exists => !self.exists.is_empty(),
        });
        Present(there.iter().rev().fold(0, |bits, &there| bits << 1 | u8::from(there)))
    }

    /// The key of the first condition that does not hold. `path_fits` is `true` if the path is known to match.
    pub(crate) fn misses(
        &self,
        present: Present,
        request: &Request<'_>,
        path_fits: bool,
        exists: ExistsFn<'_>,
    ) -> Result<Option<Key>, TooManySteps> {
        for key in present.keys().filter(|&key| !(path_fits && key == Key::Path)) {
            if self.holds(key, request, Reading::Any, exists)? == Some(false) {
                return Ok(Some(key));
            }
        }
        Ok(None)
    }

    /// The key of the first condition that holds, of those in `not`.
    pub(crate) fn holds_one(
        &self,
        present: Present,
        request: &Request<'_>,
        exists: ExistsFn<'_>,
    ) -> Result<Option<Key>, TooManySteps> {
        for key in present.keys() {
            if self.holds(key, request, Reading::Every, exists)? == Some(true) {
                return Ok(Some(key));
            }
        }
        Ok(None)
    }

    fn holds(&self, key: Key, request: &Request<'_>, reading: Reading, exists: ExistsFn<'_>) -> ConditionResult {
        match key {
            Key::Https => Ok(self.https.map(|https| https == request.https)),
            Key::Method => Ok(one_of(&self.method, |method| is_method(method, request.method, reading))),
            Key::Host => one_fits(&self.host, |host| host.matches(Some(request.host))),
            Key::Path => one_fits(&self.path, |path| path.matches(request.path)),
            Key::Client => Ok((!self.client.is_empty()).then(|| contains(&self.client, request.client))),
            Key::Header => {
                each_fits(&self.header, |(name, pattern)| header_fits(request.headers, name, pattern, reading))
            }
            Key::Query if self.query.is_empty() => Ok(None),
            Key::Query => self.query.hold(request.query.unwrap_or_default(), reading).map(Some),
            Key::Exists => Ok((!self.exists.is_empty()).then(|| exists(&self.exists))),
        }
    }

    /// Description of a condition.
    pub(crate) fn describe(&self, key: Key) -> String {
        let list = |texts: Vec<String>| texts.join(" or ");
        match key {
            Key::Https => self.https.map_or_else(String::new, |https| https.to_string()),
            Key::Method => list(self.method.iter().map(ToString::to_string).collect()),
            Key::Host => list(self.host.iter().map(TextPattern::text).collect()),
            Key::Path => list(self.path.iter().map(PathPattern::text).collect()),
            Key::Client => list(self.client.iter().map(ToString::to_string).collect()),
            Key::Header => pairs(self.header.iter().map(|(name, pattern)| (name.as_str(), pattern))),
            Key::Query => self.query.describe(),
            Key::Exists => list(self.exists.iter().map(|kind| kind.word().to_owned()).collect()),
        }
    }
}

impl Kind {
    /// The kind's name in a rule.
    pub const fn word(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Directory => "directory",
            Self::No => "no",
        }
    }
}

fn pairs<'a>(pairs: impl Iterator<Item = (&'a str, &'a TextPattern)>) -> String {
    pairs.map(|(name, pattern)| format!("{name} = {}", pattern.text())).collect::<Vec<_>>().join(" and ")
}

fn one_of<T>(list: &[T], fits: impl Fn(&T) -> bool) -> Option<bool> {
    (!list.is_empty()).then(|| list.iter().any(fits))
}

fn one_fits<T>(list: &[T], fits: impl Fn(&T) -> Result<bool, TooManySteps>) -> ConditionResult {
    for item in list {
        if fits(item)? {
            return Ok(Some(true));
        }
    }
    Ok((!list.is_empty()).then_some(false))
}

fn each_fits<T>(list: &[T], fits: impl Fn(&T) -> Result<bool, TooManySteps>) -> ConditionResult {
    for item in list {
        if !fits(item)? {
            return Ok(Some(false));
        }
    }
    Ok((!list.is_empty()).then_some(true))
}

/// Methods are case-sensitive (RFC 9110, 9.1), but Symfony and others convert them to upper case.
fn is_method(method: &Method, requested: &Method, reading: Reading) -> bool {
    let is_read = reading == Reading::Any && method.as_str().eq_ignore_ascii_case(requested.as_str());
    method == requested || is_read || (*method == Method::GET && *requested == Method::HEAD)
}

/// `true` if an address is in one of the networks.
pub(crate) fn contains(list: &[IpNet], client: Option<IpAddr>) -> bool {
    let Some(client) = client.map(|client| client.to_canonical()) else { return false };
    list.iter().any(|network| network.contains(&client))
}

/// `true` if one line of a header matches, or each, as `reading` demands.
fn header_fits(
    headers: &HeaderMap,
    name: &HeaderName,
    pattern: &TextPattern,
    reading: Reading,
) -> Result<bool, TooManySteps> {
    let mut lines = headers.get_all(name).iter().peekable();
    if lines.peek().is_none() {
        return pattern.matches(None);
    }
    for line in lines {
        let fits = pattern.matches(Some(line.as_bytes()))?;
        if fits == (reading == Reading::Any) {
            return Ok(fits);
        }
    }
    Ok(reading == Reading::Every)
}
