//! Reads the actions of a rule in their order of execution: file locations, PHP settings and request headers, response
//! changes, access control, and finally `maintenance`, `rewrite` and the actions that end the evaluation.

use crate::auth::Auth;
use crate::limit::Limit;
use crate::pattern::{Glob, PathPattern};
use crate::quantity;
use crate::read::{Reader, below, network};
use crate::rule::{
    Action, Body, Conditions, Cors, ErrorPages, Maintenance, Mime, Place, QueryMode, Route, Share, Statuses, Times, Try,
};
use crate::template::Template;
use crate::tree::{Entry, Node, Tree};
use crate::users::Users;
use bytes::Bytes;
use http::{HeaderValue, StatusCode};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// The entries of a rule by key.
#[derive(Clone, Copy)]
pub(crate) struct Keys<'a>(pub(crate) &'a [Entry]);

impl<'a> Keys<'a> {
    pub(crate) fn get(self, key: &str) -> Option<&'a Node> {
        self.0.iter().find(|entry| entry.key == key).map(|entry| &entry.node)
    }
}

impl Reader<'_> {
    pub(crate) fn actions(
        &mut self,
        entries: &[Entry],
        rule: &str,
        conditions: &Conditions,
        actions: &mut Vec<Action>,
    ) {
        let keys = Keys(entries);
        self.files(keys, conditions, actions);
        self.php(keys, actions);
        self.response(keys, actions);
        self.access(keys, rule, actions);
        self.ends(keys, actions);
    }

    /// Adds a route, if the rule selects a pool, proxy or WebSocket script, or sets a share of the workers.
    pub(crate) fn route(&mut self, entries: &[Entry], place: &str, path: Option<String>, actions: &mut Vec<Action>) {
        let keys = Keys(entries);
        let has = |key: &str| keys.get(key).is_some();
        if has("proxy") {
            for key in ["pool", "workers", "weight"] {
                if let Some(node) = keys.get(key) {
                    self.problem(node, key, "cannot be combined with `proxy`: it applies to PHP workers only");
                }
            }
        }
        if !["pool", "proxy", "websocket", "workers", "weight"].iter().any(|key| has(key)) {
            return;
        }
        let workers = self.number("workers", keys.get("workers"), 0).unwrap_or_default() as usize;
        let weight = self.number("weight", keys.get("weight"), 1).unwrap_or(1);
        for (key, is_right, range) in [
            ("workers", workers <= 100_000, "must be from 0 to 100000"),
            ("weight", (1..=1000).contains(&weight), "must be from 1 to 1000"),
        ] {
            if let Some(node) = keys.get(key).filter(|_| !is_right) {
                self.problem(node, key, range);
            }
        }
        let share = (workers > 0 || weight > 1).then_some(Share { number: 0, workers, weight });
        let name = if has("name") { place } else { path.as_deref().unwrap_or(place) };
        let (name, path) = (name.into(), path.as_deref().map(Arc::from));
        actions.push(Action::Route(Arc::new(Route { name, path, number: 0, share })));
    }

    /// Reads the actions about files, scripts, media types, error pages and the access log.
    fn files(&mut self, keys: Keys<'_>, conditions: &Conditions, actions: &mut Vec<Action>) {
        if let Some(node) = keys.get("root")
            && let Some(directory) = self.directory("root", node)
        {
            actions.push(Action::Place(Arc::new(Place { directory, mount: "".into() })));
        }
        if let Some(node) = keys.get("alias")
            && let Some(directory) = self.directory("alias", node)
        {
            let mut mounts = conditions.path.iter().map(PathPattern::mount);
            match mounts.next().flatten() {
                Some(mount) if mounts.all(|other| other == Some(mount)) => {
                    actions.push(Action::Place(Arc::new(Place { directory, mount: mount.into() })));
                }
                _ => self.problem(
                    node,
                    "alias",
                    "needs one path in its rule: exact, or with /* at its end; or use `root`",
                ),
            }
        }
        if let Some(node) = keys.get("index") {
            let names = self.each("index", node, |text| match text {
                "" => Err("has an empty name".to_owned()),
                text if text.contains('/') => Err(format!("{text:?} is not a file name")),
                text => Ok(text.to_owned()),
            });
            actions.push(Action::Index(names.into()));
        }
        if let Some(node) = keys.get("front_controller") {
            if node.text() == Some("") {
                actions.push(Action::FrontController(None));
            } else if let Some(path) = self.address("front_controller", node) {
                actions.push(Action::FrontController(Some(path.into())));
            }
        }
        if let Some(node) = keys.get("websocket") {
            actions.extend(self.address("websocket", node).map(|script| Action::WebSocket(script.into())));
        }
        if let Some(node) = keys.get("try_files") {
            let mount = self.mount.clone();
            let attempts = self.each("try_files", node, |text| match text.strip_prefix('=') {
                Some(status) => status_of(status).map(Try::Status),
                None if text.starts_with(['/', '$']) => Template::new(&below(&mount, text)).map(Try::Path),
                None => Err(format!("{text:?} is neither a path nor a status such as \"=404\"")),
            });
            actions.push(Action::TryFiles(attempts.into()));
        }
        if let Some(node) = keys.get("mime") {
            let list = self.table("mime", node, |name, value| {
                let media = HeaderValue::from_str(value).ok().filter(|_| value.contains('/'));
                let media = media.ok_or_else(|| format!("{value:?} is not a media type such as \"text/plain\""))?;
                Ok((Box::from(name.trim_start_matches('.')), media))
            });
            actions.push(Action::Mime(Arc::new(Mime(list))));
        }
        if let Some(node) = keys.get("error_pages") {
            let mount = self.mount.clone();
            let pages = self.table("error_pages", node, |name, value| {
                let page = value.starts_with('/').then(|| below(&mount, value));
                let page = page.ok_or_else(|| format!("{value:?} is not a path that starts with \"/\""))?;
                Ok((statuses(name)?, Arc::from(page)))
            });
            actions.push(Action::ErrorPages(Arc::new(ErrorPages(pages))));
        }
        self.one_flag(keys, "listing", actions, Action::Listing);
        if let Some(node) = keys.get("links") {
            let directories = self.each("links", node, |text| match text {
                "" => Err("contains an empty name".to_owned()),
                text if text.ends_with("**") || text.matches("**").count() > 1 => {
                    Err("use `**` only once, and not at the end".to_owned())
                }
                text => Ok(PathBuf::from(text)),
            });
            actions.push(Action::Links(directories));
        }
        self.one_flag(keys, "access_log", actions, Action::AccessLog);
    }

    /// Reads the actions about PHP, request headers, time limits and the body limit.
    fn php(&mut self, keys: Keys<'_>, actions: &mut Vec<Action>) {
        self.one_flag(keys, "php", actions, Action::Php);
        if let Some(node) = keys.get("pool") {
            actions.extend(self.text("pool", node).map(|pool| Action::Pool(pool.into())));
        }
        if let Some(node) = keys.get("env") {
            let list = self.table("env", node, |name, value| {
                let is_name = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
                if name.is_empty() || !name.bytes().all(is_name) || value.contains('\0') {
                    return Err(format!("{name:?} is not a variable"));
                }
                Ok(Action::Variable(name.into(), value.into()))
            });
            actions.extend(list);
        }
        if let Some(node) = keys.get("request_headers") {
            let list = self.table("request_headers", node, |name, value| {
                let header = name.parse().map_err(|_| format!("{name:?} is not a header"))?;
                let set = HeaderValue::from_str(value).map_err(|_| format!("{value:?} cannot be a header's value"))?;
                Ok(Action::RequestHeader(header, (!value.is_empty()).then_some(set)))
            });
            actions.extend(list);
        }
        let mut time = |key| keys.get(key).and_then(|node| self.duration(key, Some(node), Duration::ZERO));
        let times = Times { deadline: time("deadline"), queue: time("queue_timeout") };
        if times != Times::default() {
            actions.push(Action::Times(times));
        }
        if let Some(node) = keys.get("max_body") {
            let bytes = match &node.tree {
                Tree::Integer(number) => u64::try_from(*number).ok(),
                _ => node.text().and_then(quantity::size),
            };
            match bytes {
                Some(bytes) => actions.push(Action::MaxBody(bytes)),
                None => {
                    self.problem(node, "max_body", "expected a size (\"64K\", \"8M\", \"1G\" or a number of bytes)")
                }
            }
        }
    }

    /// Reads access control.
    fn access(&mut self, keys: Keys<'_>, rule: &str, actions: &mut Vec<Action>) {
        if let Some(node) = keys.get("allow") {
            actions.push(Action::Allow(self.each("allow", node, network)));
        }
        match keys.get("deny") {
            Some(Node { tree: Tree::Bool(true), .. }) => actions.push(Action::Status(StatusCode::FORBIDDEN, None)),
            Some(Node { tree: Tree::Bool(false), .. }) | None => {}
            Some(node) => actions.push(Action::Deny(self.each("deny", node, network))),
        }
        if let Some(node) = keys.get("limit") {
            actions.extend(self.limit(node, rule).map(|limit| Action::Limit(Arc::new(limit))));
        }
        match keys.get("auth") {
            Some(Node { tree: Tree::Bool(false), .. }) => actions.push(Action::Auth(None)),
            Some(node) => actions.extend(self.auth(node).map(|auth| Action::Auth(Some(Arc::new(auth))))),
            None => {}
        }
        // A denial must come after all access control actions.
        let denied = actions.iter().position(|action| matches!(action, Action::Status(..)));
        if let Some(at) = denied {
            let status = actions.remove(at);
            actions.push(status);
        }
    }

    fn limit(&mut self, node: &Node, rule: &str) -> Option<Limit> {
        self.unknown_keys(node.entries(), &["rate", "burst", "connections"]);
        let keys = Keys(node.entries());
        let (requests, per) = match keys.get("rate") {
            None => (0, Duration::from_secs(1)),
            Some(rate) => match rate.text().and_then(quantity::rate) {
                Some(rate) => rate,
                None => {
                    self.problem(
                        rate,
                        "limit.rate",
                        "expected a number and a time, such as \"10/s\", \"300/m\" or \"1000/h\"",
                    );
                    return None;
                }
            },
        };
        let burst = self.number("limit.burst", keys.get("burst"), 0)?;
        let at_once = self.number("limit.connections", keys.get("connections"), 0)?;
        if requests == 0 && at_once == 0 {
            self.problem(
                node,
                "limit",
                "needs a rate or connections: { rate = \"10/s\", burst = 20, connections = 10 }",
            );
            return None;
        }
        Some(Limit::new(requests, per, burst, at_once).of_rule(rule))
    }

    fn auth(&mut self, node: &Node) -> Option<Auth> {
        self.unknown_keys(node.entries(), &["realm", "file", "users", "only"]);
        let keys = Keys(node.entries());
        let realm = keys.get("realm").map_or(Some("Restricted".to_owned()), |node| self.text("auth.realm", node))?;
        let only = keys.get("only").map_or_else(Vec::new, |node| self.each("auth.only", node, |name| Ok(name.into())));
        let users = match (keys.get("file"), keys.get("users")) {
            (Some(node), None) => Users::file(&self.file("auth.file", node)?),
            (None, Some(node)) => {
                Users::named(&self.table("auth.users", node, |name, hash| Ok((name.to_owned(), hash.to_owned()))))
            }
            _ => Err("needs a file that htpasswd wrote (file), or names and hashes (users)".to_owned()),
        };
        match users.and_then(|users| Auth::new(&realm, users, only)) {
            Ok(auth) => Some(auth),
            Err(error) => {
                self.problem(node, "auth", error);
                None
            }
        }
    }

    /// Reads `maintenance`, `rewrite` and the actions that end the evaluation.
    fn ends(&mut self, keys: Keys<'_>, actions: &mut Vec<Action>) {
        let status = keys.get("status").and_then(|node| self.status(node));
        if let Some(node) = keys.get("maintenance") {
            actions.extend(self.maintenance(node).map(|it| Action::Maintenance(Arc::new(it))));
        }
        if let Some(node) = keys.get("rewrite")
            && let Some((template, mode)) = self.target("rewrite", node)
        {
            actions.push(Action::Rewrite(template, mode));
        }
        if let Some(node) = keys.get("redirect") {
            let status = status.unwrap_or(StatusCode::FOUND);
            if !status.is_redirection() {
                self.problem(node, "redirect", format!("has the status {}, which is not a redirect", status.as_u16()));
            }
            if let Some((template, mode)) = self.target("redirect", node) {
                actions.push(Action::Redirect(template, mode, status));
            }
        } else if let Some(status) = status {
            let body = keys.get("body").and_then(|node| self.text("body", node)).map(|text| {
                let media_type = HeaderValue::from_static("text/plain; charset=utf-8");
                Arc::new(Body { media_type, text: Bytes::from(text) })
            });
            actions.push(Action::Status(status, body));
        }
        if let Some(node) = keys.get("body").filter(|_| keys.get("status").is_none()) {
            self.problem(node, "body", "needs a `status`");
        }
        if let Some(node) = keys.get("proxy") {
            actions.extend(self.text("proxy", node).map(|proxy| Action::Proxy(proxy.into())));
        }
    }

    fn status(&mut self, node: &Node) -> Option<StatusCode> {
        let number = if let Tree::Integer(number) = node.tree { u16::try_from(number).ok() } else { None };
        let status =
            number.and_then(|number| StatusCode::from_u16(number).ok()).filter(|it| (200..600).contains(&it.as_u16()));
        if status.is_none() {
            self.problem(node, "status", "expected a status from 200 to 599");
        }
        status
    }

    /// Reads the target of a rewrite or redirect. If it contains `$query`, the query is not appended again.
    fn target(&mut self, key: &str, node: &Node) -> Option<(Template, QueryMode)> {
        let text = self.text(key, node)?;
        let (text, drops) = text.strip_suffix('?').map_or((&*text, false), |text| (text, true));
        let names_it = text.contains("$query") || text.contains("${query}");
        let mode = if drops || names_it { QueryMode::Drop } else { QueryMode::Append };
        let is_address = key == "redirect" && (text.contains("://") || text.starts_with("//"));
        let wrong = if text.bytes().any(|b| b <= b' ' || b == 0x7f) && key == "redirect" {
            Some(format!("{text:?} has blanks: write them as %20"))
        } else if text.starts_with(['/', '$']) || is_address {
            None
        } else {
            Some(format!("{text:?} is not a path that starts with \"/\""))
        };
        match wrong.map_or_else(|| Template::new(&below(&self.mount, text)), Err) {
            Ok(template) => Some((template, mode)),
            Err(error) => {
                self.problem(node, key, error);
                None
            }
        }
    }

    fn maintenance(&mut self, node: &Node) -> Option<Maintenance> {
        let mut maintenance = Maintenance { page: None, flag: None, retry_after: Duration::from_secs(60) };
        if let Tree::Bool(on) = node.tree {
            return on.then_some(maintenance);
        }
        self.unknown_keys(node.entries(), &["page", "flag", "retry_after"]);
        let keys = Keys(node.entries());
        if node.entries().is_empty() {
            self.problem(node, "maintenance", "expected true, or a table such as { page = \"/maintenance.html\" }");
            return None;
        }
        maintenance.page = keys.get("page").and_then(|node| self.address("maintenance.page", node)).map(Arc::from);
        maintenance.flag = keys.get("flag").and_then(|node| self.file("maintenance.flag", node));
        maintenance.retry_after =
            self.duration("maintenance.retry_after", keys.get("retry_after"), maintenance.retry_after)?;
        Some(maintenance)
    }

    /// Reads the CORS permissions.
    pub(crate) fn cors(&mut self, node: &Node) -> Option<Cors> {
        const KNOWN: [&str; 6] = ["origins", "methods", "headers", "expose", "credentials", "max_age"];
        self.unknown_keys(node.entries(), &KNOWN);
        let keys = Keys(node.entries());
        let Some(origins) = keys.get("origins") else {
            self.problem(node, "cors", "needs origins: { origins = [\"https://app.example\"] }");
            return None;
        };
        let origins = self.each("cors.origins", origins, |text| match text {
            "*" => Ok(Glob::new(text)),
            text if text.contains("://") && !text.ends_with('/') => Ok(Glob::new(text)),
            text => Err(format!("{text:?} is not an origin such as \"https://app.example\"")),
        });
        let credentials = keys.get("credentials").is_some_and(|node| self.flag("cors.credentials", node) == Some(true));
        let any = origins.iter().any(|origin| origin.text() == "*");
        if any && credentials {
            self.problem(
                node,
                "cors",
                "lets every origin act for its users: name the origins, or leave out credentials",
            );
        }
        let max_age = match keys.get("max_age") {
            Some(node) => Some(self.duration("cors.max_age", Some(node), Duration::ZERO)?),
            None => None,
        };
        Some(Cors {
            origins,
            any,
            methods: self
                .header_list("cors.methods", keys.get("methods"))
                .unwrap_or(HeaderValue::from_static("GET, HEAD, POST, PUT, PATCH, DELETE")),
            headers: self.header_list("cors.headers", keys.get("headers")),
            expose: self.header_list("cors.expose", keys.get("expose")),
            credentials,
            max_age: max_age.map(|age| HeaderValue::from(age.as_secs())),
        })
    }

    fn header_list(&mut self, key: &str, node: Option<&Node>) -> Option<HeaderValue> {
        let names = self.each(key, node?, |text| Ok(text.to_owned())).join(", ");
        HeaderValue::from_str(&names).ok()
    }

    pub(crate) fn duration(&mut self, key: &str, node: Option<&Node>, default: Duration) -> Option<Duration> {
        let Some(node) = node else { return Some(default) };
        let duration = match &node.tree {
            Tree::Integer(number) => u64::try_from(*number).ok().map(Duration::from_secs),
            _ => node.text().and_then(quantity::duration),
        };
        if duration.is_none() {
            self.problem(
                node,
                key,
                "expected a duration (\"500ms\", \"30s\", \"2m\", \"1h\", \"30d\" or a number of seconds)",
            );
        }
        duration
    }

    pub(crate) fn number(&mut self, key: &str, node: Option<&Node>, default: u32) -> Option<u32> {
        let Some(node) = node else { return Some(default) };
        let number = if let Tree::Integer(number) = node.tree { u32::try_from(number).ok() } else { None };
        if number.is_none() {
            self.problem(node, key, "expected a whole number");
        }
        number
    }

    /// Reads a table, and converts each name and value with `make`.
    pub(crate) fn table<T>(
        &mut self,
        key: &str,
        node: &Node,
        make: impl Fn(&str, &str) -> Result<T, String>,
    ) -> Vec<T> {
        if node.entries().is_empty() {
            self.problem(node, key, "expected a table of names and values");
        }
        let mut made = Vec::new();
        for entry in node.entries() {
            let value = match &entry.node.tree {
                Tree::Text(text) => text.clone(),
                Tree::Integer(number) => number.to_string(),
                Tree::Bool(flag) => flag.to_string(),
                _ => {
                    self.problem(&entry.node, key, format!("expected text in quotes for {}", entry.key));
                    continue;
                }
            };
            match make(&entry.key, &value) {
                Ok(value) => made.push(value),
                Err(error) => self.problem(&entry.node, key, error),
            }
        }
        made
    }

    fn directory(&mut self, key: &str, node: &Node) -> Option<PathBuf> {
        let path = self.file(key, node)?;
        if !path.exists() {
            self.problem(node, key, format!("{} does not exist", path.display()));
        }
        Some(path)
    }

    fn one_flag(&mut self, keys: Keys<'_>, key: &str, actions: &mut Vec<Action>, make: fn(bool) -> Action) {
        if let Some(node) = keys.get(key) {
            actions.extend(self.flag(key, node).map(make));
        }
    }
}

fn status_of(text: &str) -> Result<StatusCode, String> {
    let status = text.parse::<u16>().ok().filter(|status| (200..600).contains(status));
    status
        .and_then(|status| StatusCode::from_u16(status).ok())
        .ok_or_else(|| format!("={text} is not a status such as =404"))
}

fn statuses(text: &str) -> Result<Statuses, String> {
    match text {
        "4xx" => Ok(Statuses::Class(4)),
        "5xx" => Ok(Statuses::Class(5)),
        text => match text.parse() {
            Ok(status) if (400..600).contains(&status) => Ok(Statuses::One(status)),
            _ => Err(format!("{text:?} is not a status from 400 to 599, \"4xx\" or \"5xx\"")),
        },
    }
}
