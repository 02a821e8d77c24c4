//! A visitor of both servers: sends each request to both and compares the responses.

use super::Servers;
use crate::browser::Browser;
use crate::normal::{self, Rules};
use howdah_tests::{Request, Response};

/// Fields that presets add to responses, and Apache's configurations do not.
const ADDED: &[&str] =
    &["cache-control", "x-content-type-options", "x-robots-tag", "x-frame-options", "expires", "last-modified"];

pub(crate) struct ServerPair<'a> {
    world: &'a Servers,
    browsers: [Browser; 2],
    /// The last responses of Howdah and Apache.
    pub(crate) last: [Response; 2],
    rules: Rules,
    pub(crate) differences: Vec<String>,
    pub(crate) steps: usize,
}

impl<'a> ServerPair<'a> {
    pub(crate) fn new(world: &'a Servers, rules: Rules) -> Self {
        let browsers = [Browser::new(world.site.target().clone()), Browser::new(world.apache.target())];
        let last = [Response::default(), Response::default()];
        Self { world, browsers, last, rules, differences: Vec::new(), steps: 0 }
    }

    /// Sends a request that may depend on the last response; both must respond with this status, or with the same one
    /// if it is 0.
    pub(crate) fn step(&mut self, name: &str, status: u16, request: impl Fn(&str) -> Request) {
        self.steps += 1;
        for (browser, last) in self.browsers.iter_mut().zip(&mut self.last) {
            *last = browser.send(&request(&last.text()));
        }
        let [ours, theirs] = &self.last;
        let mut found = Vec::new();
        if ours.status != theirs.status || (status != 0 && status != ours.status) {
            found.push(format!("status {} and {} (Apache) instead of {status}", ours.status, theirs.status));
        }
        let ports = [self.world.site.port(), self.world.apache.port];
        let plain = |text: &str, port| self.rules.replace("/no/such", port, text);
        let head = |response, port| -> Vec<String> {
            normal::headers(response).iter().map(|line| alike(&plain(line, port))).collect()
        };
        let (mine, truth) = (head(ours, ports[0]), head(theirs, ports[1]));
        let name_of = |line: &str| line.split(':').next().unwrap_or_default().to_owned();
        // A client that supports Cache-Control does not need Expires.
        let lasts = |l: &str| name_of(l) == "expires" && mine.iter().any(|m| name_of(m) == "cache-control");
        found.extend(truth.iter().filter(|l| !mine.contains(l) && !lasts(l)).map(|l| format!("header missing: {l}")));
        let added = mine.iter().filter(|l| !truth.contains(l));
        let by_preset =
            |line: &str| ADDED.contains(&name_of(line).as_str()) && !truth.iter().any(|t| name_of(t) == name_of(line));
        found.extend(added.filter(|l| !by_preset(l)).map(|l| format!("header added: {l}")));
        // Error pages that the servers generate differ.
        let page = theirs.text();
        let of_apache =
            (page.contains("-//IETF//DTD") || page.contains("-//W3C//DTD HTML 4.01//EN")) && page.contains("Apache");
        if of_apache && theirs.status >= 300 {
            found.retain(|what| !["content-type", "cache-control", "expires"].iter().any(|name| what.contains(name)));
        } else if ours.decoded() != theirs.decoded() {
            let (a, b) = (
                String::from_utf8_lossy(&ours.decoded()).into_owned(),
                String::from_utf8_lossy(&theirs.decoded()).into_owned(),
            );
            let (a, b) = (plain(&a, ports[0]), plain(&b, ports[1]));
            found.extend((a != b).then(|| first_difference(&a, &b)));
        }
        self.differences.extend(found.into_iter().map(|what| format!("{name}: {what}")));
    }

    pub(crate) fn get(&mut self, status: u16, target: &str) {
        self.step(target, status, |_| Request::get(target));
    }

    /// Gets a path on both without a comparison: for pages whose first visit by any client changes the application's
    /// state.
    pub(crate) fn visited(&mut self, target: &str) {
        for browser in &mut self.browsers {
            let _ = browser.send(&Request::get(target));
        }
    }

    /// Gets resources of the last page from the same server, at most `limit`.
    pub(crate) fn assets(&mut self, base: &str, limit: usize) {
        let pattern = regex_lite::Regex::new(r#"<(?:script|link|img)\b[^>]*?(?:src|href)=["']([^"'#]+)["']"#).unwrap();
        let page = self.last[1].text();
        let mut found: Vec<String> = Vec::new();
        for captures in pattern.captures_iter(&page) {
            let text = captures.get(1).map_or("", |m| m.as_str()).replace("&amp;", "&");
            let text = text.strip_prefix("http://localhost").unwrap_or(&text).trim_start_matches("./").to_owned();
            if text.contains("//") || text.starts_with("data:") || text.contains("../") {
                continue;
            }
            let path = if text.starts_with('/') { text } else { format!("{base}{text}") };
            if !found.contains(&path) {
                found.push(path);
            }
        }
        if found.is_empty() {
            self.differences.push("the last page loads nothing".to_owned());
        }
        let page = self.last.clone();
        for path in found.iter().take(limit) {
            self.get(0, path);
        }
        self.last = page;
    }

    /// True if both pages contain this text; otherwise records a difference.
    pub(crate) fn shows(&mut self, text: &str) -> bool {
        let before = self.differences.len();
        for (response, who) in self.last.iter().zip(["Howdah", "Apache"]) {
            if !response.text().contains(text) {
                self.differences.push(format!("{text:?} is not on the page of {who}"));
            }
        }
        self.differences.len() == before
    }
}

/// Normalizes a line that browsers treat alike.
fn alike(line: &str) -> String {
    let line = line.replace("public, ", "").replace("image/vnd.microsoft.icon", "image/x-icon");
    let line = line
        .replace("location: http://localhost:<port>", "location: ")
        .replace("location: http://localhost", "location: ");
    let value = regex_lite::Regex::new("^(set-cookie: [^=]+)=[^;]+").unwrap();
    value.replace(&line, "$1=<value>").into_owned()
}

fn first_difference(a: &str, b: &str) -> String {
    let mut text = format!("bodies differ ({} and {} lines)", a.lines().count(), b.lines().count());
    for (a, b) in a.lines().zip(b.lines()).filter(|(a, b)| a != b).take(2) {
        let same = a.chars().zip(b.chars()).take_while(|(a, b)| a == b).count().saturating_sub(40);
        let clip = |line: &str| line.chars().skip(same).take(160).collect::<String>();
        text += &format!("\n    howdah …{}\n    apache …{}", clip(a), clip(b));
    }
    text
}
