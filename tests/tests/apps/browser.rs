//! A visitor's browser for applications: keeps cookies and a connection, and fills in forms.

use howdah_tests::{Conn, Request, Response, Target};
use regex_lite::Regex;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// A connection that was idle for longer is not reused: a server may close it at any moment, according to its settings.
const IDLE: Duration = Duration::from_secs(10);

pub(crate) struct Browser {
    target: Target,
    conn: Option<(Conn, Instant)>,
    cookies: BTreeMap<String, String>,
}

impl Browser {
    pub(crate) fn new(target: Target) -> Self {
        Self { target, conn: None, cookies: BTreeMap::new() }
    }

    /// Sends a request with the cookies set so far, over the open connection.
    pub(crate) fn send(&mut self, request: &Request) -> Response {
        let cookies: Vec<String> = self.cookies.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let mut request = request.clone();
        if !cookies.is_empty() {
            request = request.header("Cookie", &cookies.join("; "));
        }
        let kept = self.conn.take().filter(|(_, used)| used.elapsed() < IDLE).map(|(conn, _)| conn);
        let mut conn = kept.unwrap_or_else(|| Conn::open(&self.target));
        let response = conn.exchange(&request);
        let framed = response.header("content-length").is_some() || response.header("transfer-encoding").is_some();
        let closes = response.header("connection").is_some_and(|v| v.eq_ignore_ascii_case("close"));
        let empty = matches!(response.status, 204 | 304) || request.method() == "HEAD";
        if !closes && (framed || empty) {
            self.conn = Some((conn, Instant::now()));
        }
        for line in response.all("set-cookie") {
            self.keep_cookie(line);
        }
        response
    }

    fn keep_cookie(&mut self, line: &str) {
        let (name, value) = line.split(';').next().unwrap_or("").split_once('=').unwrap_or_default();
        let expired = value == "deleted" || line.contains("Max-Age=0") || line.contains("max-age=0");
        if expired || value.trim() == "+" || value == "%20" || value.is_empty() {
            self.cookies.remove(name);
        } else {
            self.cookies.insert(name.to_owned(), value.to_owned());
        }
    }

    pub(crate) fn cookie_names(&self) -> Vec<&str> {
        self.cookies.keys().map(String::as_str).collect()
    }
}

/// The first group of a pattern in a page; fails if the pattern does not match.
pub(crate) fn find(page: &str, pattern: &str) -> String {
    let found = Regex::new(pattern).unwrap().captures(page).and_then(|c| c.get(1));
    found.map(|m| m.as_str().to_owned()).unwrap_or_else(|| panic!("no {pattern:?} in: {page}"))
}

fn attribute(tag: &str, name: &str) -> Option<String> {
    let tag = &tag[..=tag.find('>')?];
    let pattern = format!(r#"\s{name}=(?:"([^"]*)"|'([^']*)')"#);
    let captures = Regex::new(&pattern).unwrap().captures(tag)?;
    let value = captures.get(1).or_else(|| captures.get(2))?.as_str();
    Some(
        value
            .replace("&quot;", "\"")
            .replace("&#039;", "'")
            .replace("&lt;", "<")
            .replace("&gt;", ">")
            .replace("&amp;", "&"),
    )
}

/// Fields that a browser would send for an untouched form: the first form whose tag and content contain `marker`.
/// `changes` sets the values of fields, and adds fields that the form lacks.
pub(crate) fn form(page: &str, marker: &str, changes: &[(&str, &str)]) -> Vec<(String, String)> {
    let forms = Regex::new(r"(?s)<form\b.*?</form>").unwrap();
    let form = forms.find_iter(page).map(|m| m.as_str()).find(|form| form.contains(marker));
    let form = form.unwrap_or_else(|| panic!("no form with {marker:?} in: {page}"));
    let mut fields = Vec::new();
    for tag in Regex::new(r"(?s)<input\b[^>]*>").unwrap().find_iter(form).map(|m| m.as_str()) {
        let Some(name) = attribute(tag, "name") else { continue };
        let kind = attribute(tag, "type").unwrap_or_default();
        let ticked = Regex::new(r"\schecked\b").unwrap().is_match(tag);
        let sent = match kind.as_str() {
            "submit" | "button" | "image" | "reset" | "file" => false,
            "checkbox" | "radio" => ticked,
            _ => true,
        };
        if sent {
            fields.push((name, attribute(tag, "value").unwrap_or_else(|| "on".to_owned())));
        }
    }
    for select in Regex::new(r"(?s)<select\b.*?</select>").unwrap().find_iter(form).map(|m| m.as_str()) {
        let options: Vec<&str> =
            Regex::new(r"<option\b[^>]*>").unwrap().find_iter(select).map(|m| m.as_str()).collect();
        let chosen = options.iter().find(|tag| Regex::new(r"\sselected\b").unwrap().is_match(tag)).or(options.first());
        if let (Some(name), Some(chosen)) = (attribute(select, "name"), chosen) {
            fields.push((name, attribute(chosen, "value").unwrap_or_default()));
        }
    }
    for (name, value) in changes {
        fields.retain(|(n, _)| n != name);
        fields.push(((*name).to_owned(), (*value).to_owned()));
    }
    fields
}

/// Encodes fields like a posted form.
pub(crate) fn encode(fields: &[(String, String)]) -> String {
    let pairs: Vec<String> = fields.iter().map(|(name, value)| format!("{}={}", escape(name), escape(value))).collect();
    pairs.join("&")
}

fn escape(text: &str) -> String {
    text.bytes().fold(String::new(), |mut out, byte| {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
        out
    })
}
