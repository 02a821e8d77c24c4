//! Visitors: each has its own cookies and a name that the application can see.

use crate::client::{Request, Response};
use crate::pages::Page;
use std::collections::BTreeMap;

/// A simulated visitor.
#[derive(Debug, Clone)]
pub(crate) struct Visitor {
    number: usize,
    cookies: BTreeMap<String, String>,
}

impl Visitor {
    /// A new visitor with this number, without cookies.
    pub(crate) const fn new(number: usize) -> Self {
        Self { number, cookies: BTreeMap::new() }
    }

    /// Creates this many visitors.
    pub(crate) fn several(count: usize) -> Vec<Self> {
        (1..=count).map(Self::new).collect()
    }

    /// Builds a request of this visitor for a page. `tag` is for the probe.
    pub(crate) fn request(&self, page: &Page, host: &str, tag: &str) -> Request {
        let mut headers = vec![
            ("Host".to_owned(), host.to_owned()),
            ("User-Agent".to_owned(), format!("howdah-doctor (visitor {})", self.number)),
            ("Accept".to_owned(), "text/html,application/xhtml+xml,application/json;q=0.9,*/*;q=0.8".to_owned()),
            ("Accept-Language".to_owned(), "en".to_owned()),
            ("X-Howdah-Doctor".to_owned(), tag.to_owned()),
        ];
        if !self.cookies.is_empty() {
            let pairs: Vec<String> = self.cookies.iter().map(|(name, value)| format!("{name}={value}")).collect();
            headers.push(("Cookie".to_owned(), pairs.join("; ")));
        }
        if !page.body.is_empty() {
            let kind = if page.body.starts_with(['{', '[']) { "application/json" } else { FORM };
            headers.push(("Content-Type".to_owned(), kind.to_owned()));
        }
        Request { method: page.method.clone(), path: page.path.clone(), headers, body: page.body.clone() }
    }

    /// Stores the cookies of a response.
    pub(crate) fn take(&mut self, response: &Response) {
        for (_, cookie) in response.headers.iter().filter(|(name, _)| name == "set-cookie") {
            let mut parts = cookie.split(';');
            let Some((name, value)) = parts.next().and_then(|pair| pair.split_once('=')) else { continue };
            let gone = value.is_empty() || value == "deleted" || parts.any(|part| part.trim() == "Max-Age=0");
            if gone {
                self.cookies.remove(name.trim());
            } else {
                self.cookies.insert(name.trim().to_owned(), value.trim().to_owned());
            }
        }
    }
}

const FORM: &str = "application/x-www-form-urlencoded";
