//! The fuzz target "access": rules that protect paths, and requests for these paths in any spelling. They run through
//! the code that serves requests, with a tree of files and without PHP. The result is checked against a simple model:
//! nothing that a rule protects is run or sent, neither by its file name nor by the path that a front controller sees.

use crate::exchange::Exchange;
use crate::service::Service;
use crate::sites::Sites;
use crate::upstream::{self, Upstream};
use bytes::Bytes;
use howdah_budget::Budgets;
use howdah_config::{Settings, SiteRules};
use howdah_observe::{AccessLogs, Metrics};
use howdah_pool::{Fault, FaultKind};
use howdah_protocol::{Connection, Head, Peer, Request, RequestBody, Shared, Target};
use http::{HeaderMap, HeaderValue, Method, Version, header};
use parking_lot::Mutex;
use std::path::Path;
use std::sync::Arc;

/// Outcome of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum AccessOutcome {
    /// This script was run: its path below the root, with links unresolved.
    Runs(String),
    /// This file was sent.
    Sent(String),
    /// Neither.
    Status(u16),
}

/// Records the script that would run, without running it.
#[derive(Debug, Default)]
struct RecordingUpstream(Mutex<Option<Vec<u8>>>);

impl Upstream for RecordingUpstream {
    async fn run(
        &self,
        _target: upstream::Target,
        request: Box<howdah_pool::Request>,
    ) -> Result<howdah_pool::Response, Fault> {
        *self.0.lock() = Some(request.head.script().to_vec());
        Err(Fault::new(FaultKind::ClientGone))
    }
}

/// A site with files, each of a different length.
pub(crate) struct TestSite {
    root: tempfile::TempDir,
    files: Vec<String>,
    service: Service<RecordingUpstream>,
    noted: Arc<RecordingUpstream>,
    shared: Arc<Shared>,
    runtime: tokio::runtime::Runtime,
}

/// The shortest file.
const MIN_FILE_LEN: usize = 1000;

impl TestSite {
    /// Creates files below a root, links (name and target), and changes the settings. Fails if the settings are
    /// invalid.
    pub(crate) fn new(
        files: &[String],
        links: &[(&str, &str)],
        change: impl FnOnce(&mut Settings),
    ) -> Result<Self, String> {
        let root = tempfile::tempdir().map_err(|error| error.to_string())?;
        for (at, name) in files.iter().enumerate() {
            let path = root.path().join(name.trim_start_matches('/'));
            let made = path.parent().map_or(Ok(()), std::fs::create_dir_all);
            made.and_then(|()| std::fs::write(&path, "x".repeat(MIN_FILE_LEN + at)))
                .map_err(|error| format!("{name}: {error}"))?;
        }
        for (link, to) in links {
            let _ = std::os::unix::fs::symlink(to, root.path().join(link));
        }
        let budgets = Budgets::new(1 << 40, 1 << 40);
        let mut settings = Settings { root: root.path().to_owned(), ..Settings::default() };
        change(&mut settings);
        let metrics = Metrics::new();
        let shared = Arc::new(Shared::new(&settings.http, budgets, metrics.clone()));
        let sites = Sites::new(Arc::new(settings), metrics, &AccessLogs::default(), budgets)?;
        let noted = Arc::new(RecordingUpstream::default());
        let service = Service::new(Arc::new(sites), noted.clone());
        let runtime = tokio::runtime::Builder::new_current_thread().build().map_err(|error| error.to_string())?;
        Ok(Self { root, files: files.to_vec(), service, noted, shared, runtime })
    }

    pub(crate) fn root(&self) -> &Path {
        self.root.path()
    }

    /// Outcome of a remote client's request; `None` if it is invalid.
    pub(crate) fn ask(&self, method: &str, host: &str, target: &str, version: Version) -> Option<AccessOutcome> {
        let target = Target::parse(Bytes::copy_from_slice(target.as_bytes())).ok()?;
        let headers = HeaderMap::from_iter([(header::HOST, HeaderValue::from_str(host).ok()?)]);
        let peer = Peer::tcp(([203, 0, 113, 9], 4000).into(), ([192, 0, 2, 1], 80).into(), |_| false);
        let head = Head { method: Method::from_bytes(method.as_bytes()).ok()?, target, version, headers };
        let connection = Arc::new(Connection::of_no_client(self.shared.clone(), peer));
        let request = Request::arrived(Box::new(head), RequestBody::none(), None, connection);
        let (mut exchange, body) = Exchange::begin(&self.service.sites, request);
        let outcome = self.runtime.block_on(self.service.respond(&mut exchange, body));
        if let Some(script) = self.noted.0.lock().take() {
            let below = Path::new(std::str::from_utf8(&script).ok()?).strip_prefix(self.root.path()).ok()?.to_str()?;
            return Some(AccessOutcome::Runs(format!("/{below}")));
        }
        match outcome {
            Ok(response) if response.status().is_success() => {
                let length = response.headers().get(header::CONTENT_LENGTH)?.to_str().ok()?.parse::<usize>().ok();
                let sent = length.and_then(|length| self.files.get(length.checked_sub(MIN_FILE_LEN)?));
                Some(sent.map_or(AccessOutcome::Status(response.status().as_u16()), |name| {
                    AccessOutcome::Sent(name.clone())
                }))
            }
            Ok(response) => Some(AccessOutcome::Status(response.status().as_u16())),
            Err(refusal) => Some(AccessOutcome::Status(refusal.status().as_u16())),
        }
    }

    /// Returns the names of the served file: the name as it was found, the name that links lead to, and the path that
    /// the application sees.
    pub(crate) fn names(&self, fate: &AccessOutcome, target: &str, front: Option<&str>) -> Vec<String> {
        let (AccessOutcome::Runs(name) | AccessOutcome::Sent(name)) = fate else { return Vec::new() };
        let mut names = vec![name.clone()];
        let real = self.root.path().join(&name[1..]).canonicalize().ok();
        let root = self.root.path().canonicalize().unwrap_or_default();
        names.extend(real.and_then(|real| Some(format!("/{}", real.strip_prefix(&root).ok()?.to_str()?))));
        if front == Some(name) && matches!(fate, AccessOutcome::Runs(_)) {
            let target = target.split(['?', '#']).next().unwrap_or_default();
            let plain = crate::request_path::plain_path(target.as_bytes());
            let plain = plain.map(|plain| String::from_utf8_lossy(&plain).into_owned()).unwrap_or_default();
            let beside = plain.strip_prefix(name.as_str()).filter(|rest| rest.starts_with('/')).map(str::to_owned);
            names.extend([Some(plain), beside].into_iter().flatten());
        }
        names
    }
}

/// Parses rules, as in `howdah.toml`.
pub(crate) fn rules(text: &str) -> Result<SiteRules, String> {
    SiteRules::default().between(text, "")
}

/// The files of the fuzzed site. Requests use the same names.
const FILES: [&str; 10] = [
    "/index.php",
    "/a.php",
    "/b.php",
    "/a/index.php",
    "/a/b.php",
    "/a/b.txt",
    "/b/a.php",
    "/b/index.html",
    "/b/a.txt",
    "/a/c.PHP",
];

/// Lines: the request's path, then rules, each a letter for its action and a pattern: `d` deny, `s` status, `l` an
/// allow list, `p` no PHP, `w` a rewrite to the path after a space, `h` the same in `.htaccess`, `t` the same in
/// `try_files`.
///
/// Nothing that a rule protects is run or sent, whatever the path is.
pub fn access(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let mut lines = text.lines();
    let Some(target) = lines.next().filter(|target| target.len() < 500 && target.starts_with('/')) else { return };
    let (mut written, mut file, mut protected) = (String::new(), String::new(), Vec::new());
    for line in lines.take(8) {
        let Some(kind) = line.chars().next().filter(char::is_ascii) else { continue };
        let (pattern, to) = line[1..].split_once(' ').unwrap_or((&line[1..], ""));
        let plain = |text: &str| text.bytes().all(|b| b.is_ascii_alphanumeric() || b"/.*-_".contains(&b));
        if !plain(pattern) || !plain(to) || !pattern.starts_with(['/', '*']) {
            continue;
        }
        let to = to.trim_start_matches('/');
        let action = match kind {
            'd' => "deny = true".to_owned(),
            's' => "status = 404".to_owned(),
            'l' => "allow = '10.0.0.0/8'".to_owned(),
            'p' => "php = false".to_owned(),
            'w' => format!("rewrite = '/{to}'"),
            't' => format!("try_files = ['$path', '/{to}']"),
            'h' => {
                let pattern = pattern.trim_start_matches('/').replace('.', "\\.").replace('*', ".*");
                file.push_str(&format!("RewriteEngine on\nRewriteRule ^{pattern}$ /{to} [L]\n"));
                continue;
            }
            _ => continue,
        };
        let Ok(rule) = howdah_rules::pattern::PathPattern::new(pattern) else { continue };
        if matches!(kind, 'd' | 's' | 'l' | 'p') {
            protected.push((kind, rule));
        }
        written.push_str(&format!("[[rule]]\npath = '{pattern}'\n{action}\n"));
    }
    let Ok(rules) = rules(&written) else { return };
    let files: Vec<String> = FILES.iter().map(|name| (*name).to_owned()).collect();
    let links = [("link", "a"), ("b/link.php", "../a/b.php"), ("link.txt", "b/a.txt")];
    let front = data.len().is_multiple_of(2).then(|| "index.php".to_owned());
    let world = TestSite::new(&files, &links, |settings| {
        settings.rules = rules;
        settings.htaccess = !file.is_empty();
        settings.front_controller.clone_from(&front);
    });
    let Ok(world) = world else { return };
    if !file.is_empty() && std::fs::write(world.root().join(".htaccess"), &file).is_err() {
        return;
    }
    let Some(fate) = world.ask("GET", "example.org", target, Version::HTTP_11) else { return };
    let front = front.map(|front| format!("/{front}"));
    for name in world.names(&fate, target, front.as_deref()) {
        for (kind, pattern) in &protected {
            let applies = *kind != 'p' || matches!(fate, AccessOutcome::Runs(_));
            let fits = pattern.matches(name.as_bytes()).unwrap_or(false);
            assert!(!(applies && fits), "{fate:?} as {name}, which {pattern:?} protects");
        }
    }
    if let AccessOutcome::Runs(name) | AccessOutcome::Sent(name) = &fate {
        assert!(!name.ends_with(".PHP"), "{fate:?}");
    }
}
