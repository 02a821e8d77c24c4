//! Pages to request: found by following links, or listed in a file or an access log.

use crate::client::Response;
use anyhow::{Context, Result, bail};
use regex::Regex;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Maximum number of pages per kind. Paths that differ only in digits or after the first `=` are of the same kind.
const PAGES_PER_KIND: usize = 3;

/// Parts of links that are not followed, because they may log out or delete something.
const ENDS_SOMETHING: &[&str] = &["logout", "signout", "delete", "remove", "destroy", "unsubscribe"];

/// Maximum number of paths that a server learns for its warm-up.
const LEARNT: usize = 16;

/// Files that the server sends without PHP.
const FILES: &[&str] = &[
    "css", "js", "mjs", "map", "png", "jpg", "jpeg", "gif", "svg", "webp", "avif", "ico", "woff", "woff2", "ttf",
    "pdf", "zip", "gz", "mp4", "webm", "mp3",
];

/// A page to request.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Page {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) body: String,
}

impl Page {
    pub(crate) fn get(path: &str) -> Self {
        Self { method: "GET".to_owned(), path: path.to_owned(), body: String::new() }
    }

    /// `GET /cart`.
    pub(crate) fn name(&self) -> String {
        format!("{} {}", self.method, self.path)
    }

    fn only_reads(&self) -> bool {
        matches!(self.method.as_str(), "GET" | "HEAD" | "OPTIONS")
    }

    /// Returns the common form of similar pages, without digits and the query's values.
    fn kind(&self) -> String {
        let path: String =
            self.path.split('=').next().unwrap_or_default().chars().filter(|c| !c.is_ascii_digit()).collect();
        format!("{} {path}", self.method)
    }

    /// Section of the site: pages of one section are mostly made by the same code, such as articles or languages.
    fn section(&self) -> String {
        let (path, query) = self.path.split_once('?').map_or((&*self.path, None), |(path, query)| (path, Some(query)));
        let query = query.map(|query| query.split('=').next().unwrap_or_default());
        let above = path.trim_end_matches('/').rsplit_once('/').map_or("", |(above, _)| above);
        match query {
            Some(query) => format!("{path}?{query}"),
            None => format!("{above}/"),
        }
    }
}

/// Reads the GET requests of a list or access log, including those for files and failed ones.
pub(crate) fn logged(file: &Path, most: usize) -> Result<Vec<Page>> {
    read(file, most, LineFilter::All, |page| page.method == "GET")
}

/// Reads the pages of a list or access log, without duplicates, the most frequent first.
pub(crate) fn listed(file: &Path, most: usize, may_write: bool) -> Result<Vec<Page>> {
    read(file, most, LineFilter::Good, |page| may_write || page.only_reads())
}

/// Selects lines of an access log.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LineFilter {
    /// Only successful requests that are not for files: others depend little on the application.
    Good,
    All,
}

fn read(file: &Path, most: usize, kept: LineFilter, wanted: impl Fn(&Page) -> bool) -> Result<Vec<Page>> {
    let text = std::fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
    let text = String::from_utf8_lossy(&text);
    let request = Regex::new(r#""([A-Z]{3,7}) (\S+) HTTP/[0-9.]+" (\d{3})"#).context("the pattern of log lines")?;
    let mut seen: BTreeMap<Page, (usize, usize)> = BTreeMap::new();
    for (at, line) in text.lines().enumerate() {
        let Some(page) = line_of(line.trim(), &request, kept) else { continue };
        if wanted(&page) {
            seen.entry(page).or_insert((0, at)).0 += 1;
        }
    }
    let mut pages: Vec<(Page, (usize, usize))> = seen.into_iter().collect();
    pages.sort_by_key(|(_, (count, first))| (usize::MAX - count, *first));
    if pages.is_empty() {
        bail!(
            "{} lists no page that may be requested (GET; without --against also HEAD, OPTIONS, and others by --writes)",
            file.display()
        );
    }
    Ok(pages.into_iter().map(|(page, _)| page).take(most).collect())
}

/// Returns the paths that a server with this traffic would learn for its warm-up: one of each kind, in order.
pub(crate) fn frequent(pages: &[Page]) -> Vec<String> {
    let mut kinds = BTreeSet::new();
    let gets = pages.iter().filter(|page| page.method == "GET" && kinds.insert(page.kind()));
    gets.take(LEARNT).map(|page| page.path.clone()).collect()
}

/// Parses a line: `/path`, `https://host/path`, `POST /path body`, or an access log's in the common format or as JSON.
fn line_of(line: &str, logged: &Regex, kept: LineFilter) -> Option<Page> {
    if line.is_empty() || line.starts_with('#') {
        return None;
    }
    let keeps = |path: &String, status: Option<char>| {
        kept == LineFilter::All || (status.is_none_or(|class| matches!(class, '2' | '3')) && !is_file(path))
    };
    if let Ok(entry) = serde_json::from_str::<serde_json::Value>(line) {
        let text = |names: [&str; 3]| names.iter().find_map(|name| entry[name].as_str()).map(str::to_owned);
        let status = entry["status"].to_string().chars().find(char::is_ascii_digit);
        return Some(Page {
            method: text(["method", "request_method", "verb"]).unwrap_or_else(|| "GET".to_owned()),
            path: local(&text(["uri", "path", "target"])?).filter(|path| keeps(path, status))?,
            body: String::new(),
        });
    }
    if let Some(found) = logged.captures(line) {
        let path = local(&found[2]).filter(|path| keeps(path, found[3].chars().next()))?;
        return Some(Page { method: found[1].to_owned(), path, body: String::new() });
    }
    let mut words = line.splitn(3, ' ');
    let first = words.next()?;
    if first.bytes().all(|byte| byte.is_ascii_uppercase()) {
        let path = local(words.next()?)?;
        return Some(Page { method: first.to_owned(), path, body: words.next().unwrap_or_default().to_owned() });
    }
    Some(Page::get(&local(first)?))
}

/// Maximum length of a path: servers refuse longer ones.
const MAX_PATH: usize = 8000;

/// Path of a URL, for any host.
fn local(address: &str) -> Option<String> {
    let path = match address.split_once("://") {
        Some((_, rest)) => rest.find('/').map_or("/", |at| &rest[at..]),
        None => address,
    };
    let path = path.split('#').next()?;
    let is_path = path.starts_with('/') && path.len() <= MAX_PATH && !path.contains(is_foreign);
    is_path.then(|| path.chars().map(encoded).collect())
}

/// `true` for characters that no address contains. The last one replaces bytes that are not UTF-8.
fn is_foreign(c: char) -> bool {
    c.is_control() || c == ' ' || c == char::REPLACEMENT_CHARACTER
}

/// A character as browsers send it: those outside of ASCII percent-encoded.
fn encoded(c: char) -> String {
    let is_plain = c.is_ascii();
    if is_plain { c.to_string() } else { c.to_string().bytes().map(|byte| format!("%{byte:02X}")).collect() }
}

fn is_file(path: &str) -> bool {
    let path = path.split('?').next().unwrap_or_default();
    path.rsplit_once('.').is_some_and(|(_, ending)| FILES.contains(&ending.to_ascii_lowercase().as_str()))
}

/// `true` if a GET request of this path may log out a visitor or delete something.
pub(crate) fn may_end_something(path: &str) -> bool {
    let path = path.to_lowercase();
    ENDS_SOMETHING.iter().any(|word| path.contains(word))
}

/// Follows links from the front page, up to `most` pages, taking sections in turn: in document order, the pages could
/// all be translations of the front page. `ask` fetches a page of the application in classic mode.
pub(crate) fn crawled(host: &str, most: usize, mut ask: impl FnMut(&Page) -> Response) -> Result<Vec<Page>> {
    let links = Links::new(host)?;
    let (mut pages, mut seen, mut kinds) = (Vec::new(), BTreeSet::new(), BTreeMap::<String, usize>::new());
    let mut asked = BTreeMap::<String, usize>::new();
    let mut left = vec![Page::get("/")];
    seen.insert("/".to_owned());
    while pages.len() < most {
        let turns = |at: &usize| asked.get(&left[*at].section()).copied().unwrap_or_default();
        let Some(next) = (0..left.len()).min_by_key(turns) else { break };
        let page = left.remove(next);
        *asked.entry(page.section()).or_default() += 1;
        let response = ask(&page);
        for path in links.of(&page, &response) {
            let next = Page::get(&path);
            let count = kinds.entry(next.kind()).or_default();
            if *count < PAGES_PER_KIND && seen.insert(path) {
                *count += 1;
                left.push(next);
            }
        }
        // A page that does not exist is not worth testing.
        if response.status != 404 || pages.is_empty() {
            pages.push(page);
        }
    }
    Ok(pages)
}

/// Finds links to further pages of the same application.
struct Links {
    host: String,
    link: Regex,
}

impl Links {
    fn new(host: &str) -> Result<Self> {
        let link = Regex::new(r#"(?i)<(?:a|area|form|iframe)\b[^>]*?\b(?:href|action|src)\s*=\s*["']?([^"'\s>]+)"#)
            .context("the pattern of links")?;
        Ok(Self { host: host.to_owned(), link })
    }

    fn of(&self, page: &Page, response: &Response) -> Vec<String> {
        let mut found: Vec<String> = response.header("location").map(str::to_owned).into_iter().collect();
        if response.is_html() {
            let text = String::from_utf8_lossy(&response.body);
            found.extend(self.link.captures_iter(&text).map(|link| link[1].replace("&amp;", "&")));
        }
        let ours = found.iter().filter_map(|link| self.path(page, link));
        ours.filter(|path| !is_file(path) && !may_end_something(path)).collect()
    }

    /// Path of a link, if it leads to the same application.
    fn path(&self, page: &Page, link: &str) -> Option<String> {
        let link = link.split('#').next().filter(|link| !link.is_empty())?;
        let rest = link.strip_prefix("https:").or(link.strip_prefix("http:")).unwrap_or(link);
        if let Some(rest) = rest.strip_prefix("//") {
            let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
            return (host == self.host).then(|| if path.is_empty() { "/".to_owned() } else { path.to_owned() });
        }
        if link.starts_with('/') {
            return Some(link.to_owned());
        }
        let scheme = link.split(['/', '?']).next().is_some_and(|start| start.contains(':'));
        if scheme {
            return None;
        }
        let here = page.path.split('?').next().unwrap_or("/");
        if link.starts_with('?') {
            return Some(format!("{here}{link}"));
        }
        let dir = here.rfind('/').map_or("/", |at| &here[..=at]);
        Some(without_dots(&format!("{dir}{link}")))
    }
}

/// Resolves `.` and `..` in a path.
fn without_dots(path: &str) -> String {
    let (path, query) = path.split_at(path.find('?').unwrap_or(path.len()));
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/').skip(1) {
        match part {
            "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    format!("/{}{query}", parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(line: &str) -> Option<Page> {
        line_of(line, &Regex::new(r#""([A-Z]{3,7}) (\S+) HTTP/[0-9.]+" (\d{3})"#).unwrap(), LineFilter::Good)
    }

    #[test]
    fn lines_of_lists_and_logs_are_pages() {
        assert_eq!(page("/a?b=1"), Some(Page::get("/a?b=1")));
        assert_eq!(page("https://shop.example/a#top"), Some(Page::get("/a")));
        assert_eq!(
            page("POST /a x=1 y"),
            Some(Page { method: "POST".into(), path: "/a".into(), body: "x=1 y".into() })
        );
        let logged = r#"192.0.2.1 - - [01/Jan/2026:00:00:00 +0000] "GET /cart?x=1 HTTP/1.1" 200 17 "-" "x""#;
        assert_eq!(page(logged), Some(Page::get("/cart?x=1")));
        assert_eq!(page(&logged.replace("200", "404")), None);
        for entry in
            [r#"{"method":"GET","uri":"/j","status":200}"#, r#"{"uri":"/j","status":"302"}"#, r#"{"uri":"/j"}"#]
        {
            assert_eq!(page(entry), Some(Page::get("/j")), "{entry}");
        }
        for entry in
            [r#"{"uri":"/j","status":404}"#, r#"{"uri":"/j","status":"500"}"#, r#"{"uri":"/j.css","status":200}"#]
        {
            assert_eq!(page(entry), None, "{entry}");
        }
        assert_eq!(page("# a comment"), None);
        assert_eq!(page("/für"), Some(Page::get("/f%C3%BCr")));
        for wrong in ["/\u{1}", "/\u{fffd}x", &format!("/{}", "a".repeat(MAX_PATH)), "GET /\u{7f}", "a/b"] {
            assert_eq!(page(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn links_to_other_hosts_and_those_that_end_something_are_not_followed() {
        let links = Links::new("shop.example").unwrap();
        let html = r#"<a href="/a?x=1&amp;y=2">1</a> <a class=x href='b/../c'>2</a> <a href="//shop.example/d">3</a>
            <a href="https://elsewhere.example/">4</a> <a href="mailto:x@y.z">5</a> <a href="/logout">6</a> <a href="x.css">7</a>
            <form action="?q=1">"#;
        let response = Response {
            status: 200,
            headers: vec![("content-type".into(), "text/html".into())],
            body: html.into(),
            ..Response::default()
        };
        assert_eq!(links.of(&Page::get("/shop/list"), &response), ["/a?x=1&y=2", "/shop/c", "/d", "/shop/list?q=1"]);
    }

    #[test]
    fn a_crawl_takes_sections_in_turn() {
        let pages = crawled("x", 7, |page| {
            let articles: String = ('a'..='z').map(|name| format!("<a href='/en/blog/{name}'>")).collect();
            let body = match page.path.as_str() {
                "/" => ('a'..='z')
                    .map(|name| format!("<a href='/{name}'>"))
                    .chain(["<a href='/en/blog/'>".into()])
                    .collect(),
                "/en/blog/" => articles + "<a href='/en/blog/?page=2'><a href='/en/admin/'>",
                _ => String::new(),
            };
            let headers = vec![("content-type".into(), "text/html".into())];
            Response { status: 200, headers, body: body.into(), ..Response::default() }
        });
        let names = pages.unwrap().iter().map(Page::name).collect::<Vec<_>>().join(" ");
        assert_eq!(
            names,
            "GET / GET /en/blog/ GET /en/blog/a GET /en/blog/?page=2 GET /a GET /en/blog/b GET /en/admin/"
        );
    }

    #[test]
    fn a_crawl_ends_and_samples_pages_of_each_kind() {
        let pages = crawled("x", 50, |page| {
            let links: String = (0..40).map(|n| format!("<a href='/item/{n}'>")).collect();
            let missing = page.path == "/item/2";
            Response {
                status: if missing { 404 } else { 200 },
                headers: vec![("content-type".into(), "text/html".into())],
                body: links.into(),
                ..Response::default()
            }
        });
        assert_eq!(pages.unwrap().iter().map(Page::name).collect::<Vec<_>>(), ["GET /", "GET /item/0", "GET /item/1"]);
    }
}
