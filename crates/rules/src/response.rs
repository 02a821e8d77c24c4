//! Changes of a response's headers in the order of the rules, which `site` applies to every response.

use crate::pattern::Glob;
use crate::regex::Regex;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use std::time::{Duration, SystemTime};

/// A change, and which responses it is for.
#[derive(Debug, Clone, PartialEq)]
pub struct ResponseChange {
    /// Media types without parameters (`text/css`, `image/*`); empty for all responses.
    pub types: Vec<Glob>,
    /// Only responses with a status below 400.
    pub success: bool,
    /// The change.
    pub change: HeaderChange,
}

/// A change of headers.
#[derive(Debug, Clone, PartialEq)]
pub enum HeaderChange {
    /// The header has this value and no other.
    Set(HeaderName, HeaderValue),
    /// A further line.
    Add(HeaderName, HeaderValue),
    /// The value is put behind what is there, after a comma, unless it is among that.
    Merge(HeaderName, HeaderValue),
    /// The header has this value unless it is there.
    Default(HeaderName, HeaderValue),
    /// The header goes.
    Remove(HeaderName),
    /// In each line, what the pattern matches becomes the text; all matches or the first one.
    Edit(HeaderName, Regex, Box<str>, bool),
    /// `Expires` and `Cache-Control: max-age`, unless the response says how long it is good for.
    Expires(Duration),
}

impl ResponseChange {
    /// A change of all responses.
    #[must_use]
    pub const fn all(change: HeaderChange) -> Self {
        Self { types: Vec::new(), success: false, change }
    }

    /// Does it, if the response is one that it is for.
    pub fn apply(&self, status: u16, headers: &mut HeaderMap, now: SystemTime) {
        if (self.success && status >= 400) || !(self.types.is_empty() || self.fits(headers)) {
            return;
        }
        match &self.change {
            HeaderChange::Set(name, value) => drop(headers.insert(name.clone(), value.clone())),
            HeaderChange::Add(name, value) => drop(headers.append(name.clone(), value.clone())),
            HeaderChange::Merge(name, value) => merge(headers, name, value),
            HeaderChange::Default(name, value) => {
                if !headers.contains_key(name) {
                    headers.insert(name.clone(), value.clone());
                }
            }
            HeaderChange::Remove(name) => while headers.remove(name).is_some() {},
            HeaderChange::Edit(name, regex, text, every) => edit(headers, name, regex, text, *every),
            HeaderChange::Expires(after) => expires(headers, *after, now),
        }
    }

    fn fits(&self, headers: &HeaderMap) -> bool {
        let Some(media) = headers.get(header::CONTENT_TYPE) else { return false };
        let media = media.as_bytes().split(|&b| b == b';').next().unwrap_or_default().trim_ascii();
        self.types.iter().any(|pattern| pattern.matches_any_case(media))
    }
}

fn merge(headers: &mut HeaderMap, name: &HeaderName, value: &HeaderValue) {
    let there = headers.get_all(name);
    let has =
        |line: &HeaderValue| line.as_bytes().split(|&b| b == b',').any(|item| item.trim_ascii() == value.as_bytes());
    if there.iter().any(has) {
        return;
    }
    let mut joined: Vec<u8> = there.iter().map(HeaderValue::as_bytes).collect::<Vec<_>>().join(&b", "[..]);
    if !joined.is_empty() {
        joined.extend_from_slice(b", ");
    }
    joined.extend_from_slice(value.as_bytes());
    if let Ok(joined) = HeaderValue::from_bytes(&joined) {
        headers.insert(name.clone(), joined);
    }
}

fn edit(headers: &mut HeaderMap, name: &HeaderName, regex: &Regex, text: &str, every: bool) {
    let lines: Vec<HeaderValue> = headers.get_all(name).iter().cloned().collect();
    let edited = lines.into_iter().map(|line| {
        let new = regex.replace(line.as_bytes(), text, every);
        new.ok().and_then(|new| HeaderValue::from_bytes(&new).ok()).unwrap_or(line)
    });
    let edited: Vec<HeaderValue> = edited.collect();
    headers.remove(name);
    for line in edited {
        headers.append(name.clone(), line);
    }
}

fn expires(headers: &mut HeaderMap, after: Duration, now: SystemTime) {
    if headers.contains_key(header::EXPIRES) || says_how_long(headers) {
        return;
    }
    let Some(then) = now.checked_add(after) else { return };
    if let Ok(value) = HeaderValue::from_str(&httpdate::fmt_http_date(then)) {
        headers.insert(header::EXPIRES, value);
    }
    if let Ok(value) = HeaderValue::from_str(&format!("max-age={}", after.as_secs())) {
        headers.append(header::CACHE_CONTROL, value);
    }
}

/// `true` if `Cache-Control` has a lifetime, or forbids caching.
fn says_how_long(headers: &HeaderMap) -> bool {
    headers.get_all(header::CACHE_CONTROL).iter().any(|line| {
        line.as_bytes().split(|&b| b == b',').any(|item| {
            let name = item.split(|&b| b == b'=').next().unwrap_or_default().trim_ascii();
            [&b"max-age"[..], b"s-maxage", b"no-store", b"no-cache"]
                .iter()
                .any(|known| name.eq_ignore_ascii_case(known))
        })
    })
}

impl ResponseChange {
    /// Description of the change.
    #[must_use]
    pub(crate) fn describe(&self) -> String {
        let what = match &self.change {
            HeaderChange::Set(name, value) => format!("set {name}: {}", shown(value)),
            HeaderChange::Add(name, value) => format!("add {name}: {}", shown(value)),
            HeaderChange::Merge(name, value) => format!("put {} into {name}", shown(value)),
            HeaderChange::Default(name, value) => format!("set {name}: {} if it is not there", shown(value)),
            HeaderChange::Remove(name) => format!("remove {name}"),
            HeaderChange::Edit(name, ..) => format!("edit {name}"),
            HeaderChange::Expires(after) => format!("expires after {} s", after.as_secs()),
        };
        let types: Vec<String> = self.types.iter().map(Glob::text).collect();
        if types.is_empty() { what } else { format!("{what} for {}", types.join(" ")) }
    }
}

fn shown(value: &HeaderValue) -> std::borrow::Cow<'_, str> {
    String::from_utf8_lossy(value.as_bytes())
}
