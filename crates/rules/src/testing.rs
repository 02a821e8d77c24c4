//! Rules and requests in one line of text, for tests.

use crate::outcome::{Access, Attempt, Outcome, Stop};
use crate::request::{Files, Request};
use crate::rule::{Kind, Place};
use crate::trace::{Lines, NoTrace};
use crate::tree;
use crate::{Problem, Rules, Tree, read};
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use std::path::Path;

/// Parses rules in the syntax of `howdah.toml`.
pub(crate) fn rules(text: &str) -> Result<Rules, Vec<Problem>> {
    let table = tree::parse(text).unwrap();
    let nodes = table.entries().iter().find(|entry| entry.key == "rule").map(|entry| &entry.node);
    let Some(Tree::List(nodes)) = nodes.map(|node| &node.tree) else { return Ok(Rules::default()) };
    Rules::new(read(nodes, Path::new("/"))?)
}

/// The errors in rules, on one line.
pub(crate) fn problems(text: &str) -> String {
    let problems = rules(text).err().unwrap_or_default();
    problems.iter().map(|problem| format!("{}: {}", problem.key, problem.message)).collect::<Vec<_>>().join(" | ")
}

/// A file system in which the end of a name decides whether a file exists.
pub(crate) struct SomeFiles;

impl Files for SomeFiles {
    fn kind(&self, _place: Option<&Place>, path: &[u8]) -> Kind {
        match path {
            path if path.ends_with(b".txt") => Kind::File,
            path if path.ends_with(b"dir/") => Kind::Directory,
            _ => Kind::No,
        }
    }

    fn is_there(&self, file: &Path) -> bool {
        file.ends_with("flag")
    }
}

/// Parses a request such as `GET https://host/path?query`, with headers `name: value` and the client's address after
/// `from`.
pub(crate) fn with_request<T>(line: &str, then: impl FnOnce(&Request<'_>) -> T) -> T {
    let mut words = line.split(' ');
    let method = Method::from_bytes(words.next().unwrap().as_bytes()).unwrap();
    let address = words.next().unwrap();
    let (scheme, rest) = address.split_once("://").unwrap_or(("http", address));
    let (host, rest) = rest.split_at(rest.find('/').unwrap());
    let (path, query) = rest.split_once('?').map_or((rest, None), |(path, query)| (path, Some(query.as_bytes())));
    let mut headers = HeaderMap::new();
    let mut client = Some([192, 0, 2, 1].into());
    while let Some(word) = words.next() {
        match word {
            "from" => client = words.next().unwrap().parse().ok(),
            name => {
                let name: HeaderName = name.trim_end_matches(':').parse().unwrap();
                headers.append(name, HeaderValue::from_str(words.next().unwrap()).unwrap());
            }
        }
    }
    let (path, host) = (path.as_bytes(), host.as_bytes());
    then(&Request { method: &method, https: scheme == "https", host, path, query, headers: &headers, client })
}

/// Result for a request, in one line.
pub(crate) fn outcome(rules: &Rules, line: &str) -> String {
    with_request(line, |request| {
        let outcome = rules.evaluate(request, &SomeFiles, &mut NoTrace);
        // With a trace the index excludes no rule; the outcome must be the same.
        let mut lines = Lines::default();
        let traced = rules.evaluate(request, &SomeFiles, &mut lines);
        assert_eq!(outcome.as_deref().map(describe), traced.as_deref().map(describe), "{line}: {lines:?}");
        outcome.as_deref().map_or_else(|| "-".to_owned(), describe)
    })
}

fn describe(outcome: &Outcome) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let mut parts = Vec::new();
    parts.extend(outcome.path.as_deref().map(text));
    parts.extend(outcome.query.iter().flatten().map(|query| format!("?{}", text(query))));
    parts.extend(outcome.access.iter().map(|access| match access {
        Access::Limit(_) => "limit".to_owned(),
        Access::Auth(_) => "auth".to_owned(),
    }));
    parts.extend(outcome.place.iter().map(|place| format!("in {}:{}", place.mount, place.directory.display())));
    parts.extend(outcome.index.iter().map(|index| format!("index {}", index.join(","))));
    parts.extend(outcome.front_controller.iter().map(|it| format!("front {}", it.as_deref().unwrap_or("none"))));
    parts.extend(outcome.try_files.iter().flatten().map(|attempt| match attempt {
        Attempt::Path(path, query) => format!(
            "try {}{}",
            text(path),
            query.as_deref().map(|query| format!("?{}", text(query))).unwrap_or_default()
        ),
        Attempt::Status(status) => format!("try {}", status.as_u16()),
    }));
    parts.extend(outcome.php.map(|php| format!("php {php}")));
    parts.extend(outcome.request_headers.iter().map(|(name, value)| format!("> {name} {value:?}")));
    parts.extend(outcome.variables.iter().map(|(name, value)| format!("{name}={}", String::from_utf8_lossy(value))));
    parts.extend(outcome.response.iter().map(|change| change.describe()));
    parts.extend(outcome.cors.iter().map(|_| "cors".to_owned()));
    parts.extend(
        outcome
            .mime
            .iter()
            .flat_map(|mime| &mime.0)
            .map(|(ending, media)| format!("{ending} is {}", text(media.as_bytes()))),
    );
    parts.extend(outcome.error_pages.iter().flat_map(|pages| &pages.0).map(|(_, page)| format!("page {page}")));
    parts.extend(outcome.listing.map(|listing| format!("listing {listing}")));
    parts.extend(outcome.pool.iter().map(|pool| format!("pool {pool}")));
    parts.extend(outcome.websocket.iter().map(|script| format!("websocket {script}")));
    parts.extend(
        outcome
            .ini
            .iter()
            .flat_map(|ini| ini.values.iter().chain(&ini.admin))
            .map(|(name, value)| format!("ini {name}={value}")),
    );
    parts.extend(outcome.times.deadline.map(|time| format!("deadline {time:?}")));
    parts.extend(outcome.times.queue.map(|time| format!("queue {time:?}")));
    parts.extend(outcome.max_body.map(|bytes| format!("body {bytes}")));
    parts.extend(outcome.access_log.map(|log| format!("log {log}")));
    parts.extend(outcome.stop.iter().map(|stop| match stop {
        Stop::Status(status, None) => status.as_u16().to_string(),
        Stop::Status(status, Some(body)) => format!("{} {:?}", status.as_u16(), body.text),
        Stop::Redirect(status, location) => format!("{} {}", status.as_u16(), text(location.as_bytes())),
        Stop::Maintenance(it) => format!("maintenance {}", it.page.as_deref().unwrap_or_default()),
        Stop::Proxy(proxy) => format!("proxy {proxy}"),
        Stop::Failed(failure) => format!("500 {}: {}", failure.rule, failure.reason),
    }));
    parts.join(" ")
}
