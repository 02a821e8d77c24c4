//! Comparison with another server: requests pages from the server that serves the application now, and from Howdah,
//! started on a free port with the settings that will replace it. Sends only GET requests.

use crate::client::{Client, Request, Response};
use crate::compare::{Expected, NOT_COMPARED, Words};
use crate::interrupted;
use crate::mode::Mode;
use crate::pages::{self, Page};
use crate::run::{Options, Run};
use crate::traffic::Traffic;
use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::net::{SocketAddr, ToSocketAddrs};

/// Number of requests per page to the other server: values that differ between them vary anyway.
const SAMPLES: usize = 2;
/// Maximum length of a displayed value.
const SHOWN: usize = 80;

/// The address of the other server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// Address as given by the user.
    pub address: String,
    /// Host of the address, with the port unless that is 80.
    host: String,
    pub(crate) place: SocketAddr,
}

impl Origin {
    /// Parses `http://HOST[:PORT]` and resolves the host.
    ///
    /// # Errors
    /// The address has another form, or the host cannot be resolved.
    pub fn parse(address: &str) -> Result<Self> {
        let Some(rest) = address.strip_prefix("http://") else {
            bail!("{address}: expected http://HOST[:PORT]; if a proxy ends TLS, the address behind it");
        };
        let host = rest.trim_end_matches('/');
        if host.is_empty() || host.contains(['/', '?', '#', '@']) {
            bail!("{address}: expected http://HOST[:PORT] without a path");
        }
        let has_port = host.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
        let named = if has_port { host.to_owned() } else { format!("{host}:80") };
        let mut found = named.to_socket_addrs().with_context(|| format!("cannot resolve {host}"))?;
        let place = found.next().with_context(|| format!("{host} has no address"))?;
        Ok(Self { address: address.to_owned(), host: host.to_owned(), place })
    }
}

/// The result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Comparison {
    pub application: String,
    /// The other server.
    pub address: String,
    /// Number of pages requested from both servers; of copied requests, if the doctor was a proxy.
    pub pages: usize,
    /// Pages for which the other server had no response.
    pub unanswered: Vec<String>,
    pub different: Vec<DifferentPage>,
    /// The requests of clients, if the doctor was a proxy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traffic: Option<Traffic>,
}

/// A page that differs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DifferentPage {
    pub path: String,
    pub differences: Vec<PageDifference>,
}

/// A differing part of a response.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct PageDifference {
    /// `status`, `body`, or the name of a header field.
    pub part: String,
    pub there: String,
    pub here: String,
    /// Usual cause of such a difference.
    pub hint: String,
}

/// Compares the application with the other server.
///
/// # Errors
/// Nothing could be compared.
pub fn compare(options: &Options, origin: &Origin) -> Result<Comparison> {
    interrupted::watch()?;
    let client = Client::new()?;
    let run = Run::new(options, &client)?;
    // Host in the links of pages: both servers must be requested with the same one.
    let host = match run.host.as_str() {
        "localhost" => origin.host.clone(),
        named => named.to_owned(),
    };
    let mut classic = run.start(Mode::Classic, "classic", false)?;
    let pages = match &options.list {
        Some(list) => pages::logged(list, options.pages)?,
        None => run.find_pages(&mut classic)?,
    };
    let own = SocketAddr::from(([127, 0, 0, 1], classic.server.port()));
    let mut comparison = Comparison {
        application: options.application.clone(),
        address: origin.address.clone(),
        pages: 0,
        unanswered: Vec::new(),
        different: Vec::new(),
        traffic: None,
    };
    let mut why = String::new();
    for (at, page) in pages.iter().filter(|page| page.method == "GET").enumerate() {
        interrupted::check()?;
        (options.progress)(&format!("{} of {}: {}", at + 1, pages.len(), page.path));
        let request = request(page, &host);
        let there: Vec<Response> = (0..SAMPLES).map(|_| client.send_to(origin.place, &request)).collect();
        if let Some(response) = there.iter().find(|response| response.status == 0) {
            why = String::from_utf8_lossy(&response.body).into_owned();
            comparison.unanswered.push(page.path.clone());
            continue;
        }
        comparison.pages += 1;
        let differences = differences(&there, &client.send_to(own, &request));
        if !differences.is_empty() {
            comparison.different.push(DifferentPage { path: page.path.clone(), differences });
        }
    }
    if comparison.pages == 0 {
        bail!("{} has responded to none of {} pages: {why}", origin.address, pages.len());
    }
    Ok(comparison)
}

fn request(page: &Page, host: &str) -> Request {
    let headers = [
        ("Host", host),
        ("User-Agent", "howdah-doctor"),
        ("Accept", "text/html,application/xhtml+xml,application/json;q=0.9,*/*;q=0.8"),
        ("Accept-Language", "en"),
    ];
    let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
    Request { method: page.method.clone(), path: page.path.clone(), headers, body: String::new() }
}

/// Finds the differences between the other server's only response and several of Howdah.
pub(crate) fn between(there: &Response, here: &[Response]) -> Vec<PageDifference> {
    let found = differences(here, there).into_iter();
    found.map(|PageDifference { part, there, here, .. }| difference(&part, here, there)).collect()
}

/// Finds the differences between a response and those of the other server.
pub(crate) fn differences(there: &[Response], here: &Response) -> Vec<PageDifference> {
    let Some(first) = there.first() else { return Vec::new() };
    if here.status == 0 {
        let why = String::from_utf8_lossy(&here.body).into_owned();
        return vec![difference("status", first.status.to_string(), format!("no response: {why}"))];
    }
    let mut found = Vec::new();
    if there.iter().all(|response| response.status != here.status) {
        found.push(difference("status", first.status.to_string(), here.status.to_string()));
    }
    found.extend(different_fields(there, here));
    let body = |response: &Response| Words::of(response.status, &[], &response.body, None);
    let expected = Expected::of(there.iter().map(body).collect());
    // With another status, the bodies are different pages.
    if found.iter().all(|difference| difference.part != "status")
        && let Some(other) = expected.difference(&body(here))
    {
        found.push(difference("body", other.classic, other.here));
    }
    found
}

fn different_fields(there: &[Response], here: &Response) -> Vec<PageDifference> {
    let fields = |response: &Response, name: &str| -> Vec<(String, String)> {
        let own = response.headers.iter().filter(|(own, _)| own == name);
        // Media types are case-insensitive.
        let value = |value: &String| if name == "content-type" { value.to_ascii_lowercase() } else { value.clone() };
        own.map(|(name, text)| (name.clone(), value(text))).collect()
    };
    let names: BTreeSet<&String> =
        there.iter().chain([here]).flat_map(|response| response.headers.iter().map(|(name, _)| name)).collect();
    let names = names.into_iter().filter(|name| !NOT_COMPARED.contains(&name.as_str()));
    let differs = |name: &String| {
        let words = |response: &Response| Words::of(0, &fields(response, name), b"", None);
        let expected = Expected::of(there.iter().map(words).collect());
        // A header field is not compared if its number of lines varies between the other server's responses.
        let is_steady = there.iter().all(|response| fields(response, name).len() == fields(&there[0], name).len());
        (is_steady && expected.difference(&words(here)).is_some()).then(|| {
            let shown = |response: &Response| {
                let values: Vec<String> = fields(response, name).into_iter().map(|(_, value)| value).collect();
                if values.is_empty() { "(none)".to_owned() } else { values.join(", ") }
            };
            difference(name, shown(&there[0]), shown(here))
        })
    };
    names.filter_map(differs).collect()
}

fn difference(part: &str, there: String, here: String) -> PageDifference {
    PageDifference { part: part.to_owned(), hint: hint(part, &there, &here).to_owned(), there, here }
}

/// Returns the usual cause of a difference.
fn hint(part: &str, there: &str, here: &str) -> &'static str {
    match (part, there, here) {
        ("status", "404", "200") => "a file or a front controller that the web server did not serve",
        ("status", "200", "404") => {
            "a missing rewrite: `howdah init FILE` converts the web server's, `howdah explain` shows how a request is handled"
        }
        ("status", _, "403") => "a path that Howdah withholds: `howdah explain` shows why",
        ("status", "403" | "401", _) => "a missing access rule of the web server: add it, or the path stays open",
        ("status", "301" | "302" | "307" | "308", _) => "a missing redirect of the web server",
        ("status", _, "500" | "502" | "503" | "504") => "an error here: `howdah serve` logs the reason",
        ("status", ..) => "another route, or another state of the application",
        ("x-powered-by", ..) => "`expose_php` of another php.ini",
        ("content-type", ..) => "another media type: `default_charset` of php.ini, or types of the web server",
        ("cache-control" | "expires" | "pragma", ..) => {
            "a rule of the web server about caching, or `session.cache_limiter`"
        }
        ("content-encoding" | "vary", ..) => "compression: see `[compression]`",
        ("set-cookie", ..) => "a session: `session.*` of another php.ini, or another application state",
        ("location", ..) => "another host or scheme: see `server_name` and `http.trusted_proxies`",
        ("body", ..) => "another state (database, session, time), or another php.ini",
        (name, ..) if name.starts_with("x-") || name.contains("policy") || name.contains("security") => {
            "a field that the web server adds: a rule with `headers` does it here"
        }
        _ => "a field of the web server, or of PHP",
    }
}

/// Formats the report. Equal differences are listed once, with the number of pages.
pub fn text(comparison: &Comparison) -> String {
    let Comparison { application, address, pages, unanswered, different, traffic } = comparison;
    let (differ, what) = match traffic {
        Some(traffic) => (usize::try_from(traffic.different).unwrap_or(*pages), "copied requests"),
        None => (different.len(), "pages"),
    };
    let mut out =
        format!("{application} compared with {address}: {} of {pages} {what} alike\n", pages.saturating_sub(differ));
    if let Some(traffic) = traffic {
        let _ = writeln!(out, "{traffic}");
        if traffic.unlisted > 0 {
            let _ = writeln!(out, "{} that differ are not listed", traffic.unlisted);
        }
    }
    if !unanswered.is_empty() {
        let _ = writeln!(out, "{} without a response there, such as {}", unanswered.len(), unanswered[0]);
    }
    let mut groups: Vec<(&PageDifference, Vec<&str>)> = Vec::new();
    for page in different {
        for difference in &page.differences {
            match groups.iter_mut().find(|(other, _)| *other == difference) {
                Some((_, paths)) => paths.push(&page.path),
                None => groups.push((difference, vec![&page.path])),
            }
        }
    }
    // Different statuses first, then the most frequent differences.
    groups.sort_by_key(|(difference, paths)| (difference.part != "status", usize::MAX - paths.len()));
    for (difference, paths) in groups {
        let more = match paths.len() {
            1 => String::new(),
            n => format!(" and {} more", n - 1),
        };
        let PageDifference { part, there, here, hint } = difference;
        let _ =
            writeln!(out, "\n{part}: {} there, {} here\n    GET {}{more}\n    {hint}", cut(there), cut(here), paths[0]);
    }
    out
}

fn cut(text: &str) -> String {
    let text = text.replace(['\n', '\r'], " ");
    match text.char_indices().nth(SHOWN) {
        Some((at, _)) => format!("`{}…`", &text[..at]),
        None => format!("`{text}`"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn response(status: u16, headers: &[(&str, &str)], body: &str) -> Response {
        let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Response { status, headers, body: body.as_bytes().to_vec(), ..Response::default() }
    }

    #[test]
    fn differing_parts_are_found_once_and_varying_ones_are_not() {
        let there = [
            response(200, &[("x-frame-options", "DENY"), ("set-cookie", "s=a1a1a1a1a1a1a1; path=/")], "at 12:00:01"),
            response(200, &[("x-frame-options", "DENY"), ("set-cookie", "s=b2b2b2b2b2b2b2; path=/")], "at 12:00:02"),
        ];
        let same =
            response(200, &[("set-cookie", "s=c3c3c3c3c3c3c3; path=/"), ("x-frame-options", "DENY")], "at 12:00:09");
        assert_eq!(differences(&there, &same), []);
        let other = response(200, &[("set-cookie", "s=c3c3c3c3c3c3c3; path=/a"), ("x-new", "1")], "never");
        let parts: Vec<_> = differences(&there, &other).into_iter().map(|found| found.part).collect();
        assert_eq!(parts, ["set-cookie", "x-frame-options", "x-new", "body"]);
        let missing = differences(&there, &response(404, &there_fields(), "not found"));
        assert_eq!((missing[0].part.as_str(), missing.len()), ("status", 1));
        assert!(missing[0].hint.contains("howdah init"));
    }

    fn there_fields() -> [(&'static str, &'static str); 2] {
        [("x-frame-options", "DENY"), ("set-cookie", "s=d4d4d4d4d4d4d4; path=/")]
    }

    #[test]
    fn equal_differences_are_listed_once() {
        let of = |path: &str, part: &str| DifferentPage {
            path: path.to_owned(),
            differences: vec![difference(part, "a".to_owned(), "b".to_owned())],
        };
        let different = vec![of("/a", "vary"), of("/b", "vary"), of("/c", "status")];
        let comparison = Comparison {
            application: "shop".to_owned(),
            address: "http://old".to_owned(),
            pages: 9,
            unanswered: Vec::new(),
            different,
            traffic: None,
        };
        let text = text(&comparison);
        assert!(text.starts_with("shop compared with http://old: 6 of 9 pages alike\n\nstatus: `a` there, `b` here\n"));
        assert!(text.contains("vary: `a` there, `b` here\n    GET /a and 1 more\n    compression"), "{text}");
    }

    #[test]
    fn addresses_of_servers_have_a_scheme_and_no_path() {
        assert_eq!(Origin::parse("http://127.0.0.1:81/").unwrap().place.port(), 81);
        assert_eq!(Origin::parse("http://127.0.0.1").unwrap().place.port(), 80);
        for wrong in ["https://127.0.0.1", "http://", "http://127.0.0.1/a", "127.0.0.1"] {
            assert!(Origin::parse(wrong).is_err(), "{wrong}");
        }
    }
}
