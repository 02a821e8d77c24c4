//! Removes everything from a response that differs between any two runs of an application on any server: times, nonces,
//! random ids, the port and the directory of the copy.

use howdah_tests::{Response, Site};
use regex_lite::Regex;

/// Header fields that belong to the server or the connection, not to the application.
const OWN_HEADERS: &[&str] =
    &["server", "date", "connection", "keep-alive", "transfer-encoding", "content-length", "accept-ranges"];

/// Times in the formats in which applications print them.
const TIMES: &[(&str, &str)] = &[
    (r"(Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d{1,2}[ -][A-Z][a-z]{2}[ -]\d{4} \d\d:\d\d:\d\d ?(GMT|\+0000)?", "<http-date>"),
    (r"\b20\d\d([-/])\d\d[-/]\d\d([ T]|%20|\+)\d\d(:|%3A)\d\d((:|%3A)\d\d)?", "<date-time>"),
    (r"\b20\d\d[-/]\d\d[-/]\d\d\b", "<date>"),
    (r"\b1[789]\d{8}(\.\d+|\d{3})?\b", "<epoch>"),
];

/// Replacements, in order.
pub(crate) struct Rules(Vec<(Regex, &'static str)>);

impl Rules {
    /// Creates the application's own rules, pattern and replacement, followed by those for times.
    pub(crate) fn new(own: &[(&str, &'static str)]) -> Self {
        let compile = |(pattern, word): &(&str, &'static str)| {
            (Regex::new(pattern).unwrap_or_else(|e| panic!("{pattern}: {e}")), *word)
        };
        Self(own.iter().map(compile).chain(TIMES.iter().map(compile)).collect())
    }

    /// Applies all replacements to a text.
    pub(crate) fn apply(&self, site: &Site, text: &str) -> String {
        self.replace(&site.place().top.display().to_string(), site.port(), text)
    }

    /// As `apply`, for a server with this directory and port.
    pub(crate) fn replace(&self, top: &str, port: u16, text: &str) -> String {
        let port = Regex::new(&format!(r"\b{port}\b")).unwrap();
        let mut text = text.replace(top, "<top>").replace(&top.replace('/', "\\/"), "<top>");
        text = port.replace_all(&text, "<port>").into_owned();
        for (pattern, word) in &self.0 {
            text = pattern.replace_all(&text, *word).into_owned();
        }
        text
    }
}

/// Header fields that the application set or that describe the body, sorted: `name: value`.
pub(crate) fn headers(response: &Response) -> Vec<String> {
    let from_php = response.header("x-powered-by").is_some();
    let mut lines: Vec<String> = response
        .headers
        .iter()
        .map(|(name, value)| (name.to_ascii_lowercase(), value.as_str()))
        .filter(|(name, _)| !OWN_HEADERS.contains(&name.as_str()))
        .filter_map(|(name, value)| match name.as_str() {
            // Howdah compresses and declares it; the reference's nginx does not compress.
            "vary" => without_token(value, "accept-encoding").map(|rest| format!("vary: {rest}")),
            "content-encoding" => None,
            // Each server generates its own entity tags for static files.
            "etag" if !from_php => None,
            "content-type" if !from_php => Some(format!("content-type: {}", media_type(value))),
            _ => Some(format!("{name}: {value}")),
        })
        .collect();
    lines.sort();
    lines
}

/// The type of a static file without its charset, which Howdah adds and nginx does not; treats both names of JavaScript
/// as equal.
fn media_type(value: &str) -> &str {
    match value.split(';').next().unwrap_or_default() {
        "application/javascript" => "text/javascript",
        other => other,
    }
}

fn without_token(list: &str, token: &str) -> Option<String> {
    let rest: Vec<&str> = list.split(',').map(str::trim).filter(|t| !t.eq_ignore_ascii_case(token)).collect();
    if rest.is_empty() { None } else { Some(rest.join(", ")) }
}
