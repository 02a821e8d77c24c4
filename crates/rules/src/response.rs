//! Changes of a response's headers in the order of the rules, which `site` applies to every response.

use crate::pattern::Glob;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};

/// A change, and the responses it applies to.
#[derive(Debug, Clone, PartialEq)]
pub struct ResponseChange {
    /// Media types without parameters (`text/css`, `image/*`); empty for all responses.
    pub types: Vec<Glob>,
    /// Only responses with a status below 400.
    pub success: bool,
    pub change: HeaderChange,
}

#[derive(Debug, Clone, PartialEq)]
pub enum HeaderChange {
    /// Sets the header, replacing all its values.
    Set(HeaderName, HeaderValue),
    /// Adds a line.
    Add(HeaderName, HeaderValue),
    /// Sets the header if it is missing.
    Default(HeaderName, HeaderValue),
    Remove(HeaderName),
}

impl ResponseChange {
    pub fn apply(&self, status: u16, headers: &mut HeaderMap) {
        if (self.success && status >= 400) || !(self.types.is_empty() || self.fits(headers)) {
            return;
        }
        match &self.change {
            HeaderChange::Set(name, value) => drop(headers.insert(name.clone(), value.clone())),
            HeaderChange::Add(name, value) => drop(headers.append(name.clone(), value.clone())),
            HeaderChange::Default(name, value) => {
                if !headers.contains_key(name) {
                    headers.insert(name.clone(), value.clone());
                }
            }
            HeaderChange::Remove(name) => while headers.remove(name).is_some() {},
        }
    }

    fn fits(&self, headers: &HeaderMap) -> bool {
        let Some(media) = headers.get(header::CONTENT_TYPE) else { return false };
        let media = media.as_bytes().split(|&b| b == b';').next().unwrap_or_default().trim_ascii();
        self.types.iter().any(|pattern| pattern.matches_any_case(media))
    }
}

impl ResponseChange {
    /// Description of the change.
    pub(crate) fn describe(&self) -> String {
        let what = match &self.change {
            HeaderChange::Set(name, value) => format!("set {name}: {}", shown(value)),
            HeaderChange::Add(name, value) => format!("add {name}: {}", shown(value)),
            HeaderChange::Default(name, value) => format!("set {name}: {} if it is missing", shown(value)),
            HeaderChange::Remove(name) => format!("remove {name}"),
        };
        let types: Vec<String> = self.types.iter().map(Glob::text).collect();
        if types.is_empty() { what } else { format!("{what} for {}", types.join(" ")) }
    }
}

fn shown(value: &HeaderValue) -> std::borrow::Cow<'_, str> {
    String::from_utf8_lossy(value.as_bytes())
}
