//! Reads rules from a tree of values. Reports the errors of all rules, each with its line.

use crate::keys::{KEYS, meant, nearest};
use crate::pattern::{PathPattern, TextPattern};
use crate::presets;
use crate::regex::Regex;
use crate::rule::{Conditions, Kind, Rule};
use crate::tree::{Entry, Node, Problem, Tree};
use http::Method;
use ipnet::IpNet;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

/// The keys of conditions, which `not` accepts as well.
const CONDITIONS: [&str; 8] = ["host", "path", "method", "header", "query", "client", "https", "exists"];

/// State of reading rules.
#[derive(Debug)]
pub(crate) struct Reader<'a> {
    /// Base directory of relative file paths.
    pub(crate) base: &'a Path,
    /// Prefix of all URL paths; empty for the site's own rules.
    pub(crate) mount: String,
    pub(crate) problems: Vec<Problem>,
}

/// Reads rules. Relative file paths are resolved from `base`. Rules without a name are called by their position:
/// `rule[0]`.
///
/// # Errors
/// All errors in the rules.
pub fn read(nodes: &[Node], base: &Path) -> Result<Vec<Rule>, Vec<Problem>> {
    let mut reader = Reader { base, mount: String::new(), problems: Vec::new() };
    let mut rules = Vec::new();
    for (at, node) in nodes.iter().enumerate() {
        reader.rule(node, &format!("rule[{at}]"), &mut rules);
    }
    if reader.problems.is_empty() { Ok(rules) } else { Err(reader.problems) }
}

impl Reader<'_> {
    /// Reads a rule, and the rules of the application that it names, if any.
    pub(crate) fn rule(&mut self, node: &Node, place: &str, rules: &mut Vec<Rule>) {
        let Tree::Table(entries) = &node.tree else {
            self.problem(node, "rule", "a rule is a table");
            return;
        };
        self.unknown_keys(entries, &KEYS.iter().map(|key| key.name).collect::<Vec<_>>());
        let get = |key: &str| entries.iter().find(|entry| entry.key == key).map(|entry| &entry.node);
        let name = get("name").and_then(|node| self.text("name", node)).unwrap_or_else(|| place.to_owned());
        let mut conditions = self.conditions(entries);
        if conditions.path.is_empty() && !self.mount.is_empty() {
            conditions.path = self.whole_mount();
        }
        let not = get("not").map_or_else(Conditions::default, |node| {
            self.unknown_keys(node.entries(), &CONDITIONS);
            if node.entries().is_empty() {
                self.problem(node, "not", "expected a table of conditions");
            }
            self.conditions(node.entries())
        });
        let path = conditions.path.first().map(PathPattern::text);
        let mut actions = Vec::new();
        self.route(entries, &name, path, &mut actions);
        self.actions(entries, &name, &conditions, &mut actions);
        let flag = |reader: &mut Self, key| get(key).is_some_and(|node| reader.flag(key, node).unwrap_or(false));
        let rule =
            Rule { name: name.as_str().into(), line: node.line, last: flag(self, "last"), conditions, not, actions };
        let application = get("app").map(|node| (node, self.text("app", node)));
        let empty = rule.actions.is_empty() && !rule.last;
        if empty && application.is_none() && self.problems.is_empty() {
            self.problem(node, "rule", "the rule does nothing: add an action, such as deny = true");
        }
        let (paths, has_not) = (rule.conditions.clone(), rule.not != Conditions::default());
        if !empty {
            rules.push(rule);
        }
        if let Some((node, Some(name))) = application {
            if paths != paths.host_and_path() || has_not {
                self.problem(
                    node,
                    "app",
                    "can be combined with `host` and `path` only: put further conditions into separate rules",
                );
            }
            self.application(node, &name, &paths, rules);
        }
    }

    /// The rules of an application, mounted at the path of the rule that names it.
    fn application(&mut self, node: &Node, name: &str, conditions: &Conditions, rules: &mut Vec<Rule>) {
        let mut mounts = conditions.path.iter().map(PathPattern::mount);
        let mount = match mounts.next() {
            None => String::new(),
            Some(Some(mount)) if mounts.all(|other| other == Some(mount)) => mount.to_owned(),
            Some(_) => {
                self.problem(node, "app", "needs one path: exact, or with /* at its end");
                return;
            }
        };
        let Some(nodes) = presets::nodes(name) else {
            let near = nearest(name, presets::NAMES.iter().copied()).map(|near| format!(", did you mean \"{near}\"?"));
            let known = presets::NAMES.join(", ");
            self.problem(
                node,
                "app",
                format!("unknown application \"{name}\"{} Known: {known}", near.unwrap_or_else(|| ".".to_owned())),
            );
            return;
        };
        let outer = std::mem::replace(&mut self.mount, mount);
        for (at, preset) in nodes.into_iter().enumerate() {
            let from = rules.len();
            self.rule(&preset, &format!("{name}[{at}]"), rules);
            for rule in &mut rules[from..] {
                rule.line = node.line;
                if rule.conditions.host.is_empty() {
                    rule.conditions.host.clone_from(&conditions.host);
                }
            }
        }
        self.mount = outer;
    }

    fn conditions(&mut self, entries: &[Entry]) -> Conditions {
        let mut conditions = Conditions::default();
        for Entry { key, node, .. } in entries {
            match key.as_str() {
                "host" => conditions.host = self.each(key, node, TextPattern::host),
                "path" => {
                    let mount = self.mount.clone();
                    conditions.path = self.each(key, node, |text| match text.strip_prefix('~') {
                        Some(regex) => regex_below(&mount, regex).map(PathPattern::Regex),
                        None => PathPattern::new(&below(&mount, text)),
                    });
                }
                "method" => {
                    conditions.method = self.each(key, node, |text| {
                        Method::from_bytes(text.as_bytes()).map_err(|_| format!("{text:?} is not a method"))
                    })
                }
                "header" => {
                    conditions.header = self
                        .pairs(key, node)
                        .into_iter()
                        .filter_map(|(name, pattern, node)| {
                            let header = name.parse();
                            if header.is_err() {
                                self.problem(node, key, format!("{name:?} is not a header"));
                            }
                            Some((header.ok()?, pattern))
                        })
                        .collect()
                }
                "query" => {
                    conditions.query.whole = match &node.tree {
                        Tree::Table(_) => Vec::new(),
                        Tree::Bool(true) => vec![TextPattern::Present],
                        Tree::Bool(false) => vec![TextPattern::Absent],
                        _ => self.each(key, node, TextPattern::new),
                    };
                    if matches!(node.tree, Tree::Table(_)) {
                        let pairs = self.pairs(key, node).into_iter();
                        conditions.query.parts = pairs.map(|(name, pattern, _)| (name.into(), pattern)).collect();
                    }
                }
                "client" => conditions.client = self.each(key, node, network),
                "https" => conditions.https = self.flag(key, node),
                "exists" => conditions.exists = self.each(key, node, kind),
                _ => {}
            }
        }
        conditions
    }

    /// Patterns for the mount and everything below it.
    fn whole_mount(&self) -> Vec<PathPattern> {
        let patterns = [self.mount.clone(), format!("{}/*", self.mount)];
        patterns.iter().filter_map(|text| PathPattern::new(text).ok()).collect()
    }

    /// Reads names and patterns; `true` means any value, `false` no value.
    fn pairs<'n>(&mut self, key: &str, node: &'n Node) -> Vec<(String, TextPattern, &'n Node)> {
        if node.entries().is_empty() {
            self.problem(node, key, "expected a table of names and patterns");
        }
        let mut pairs = Vec::new();
        for entry in node.entries() {
            let pattern = match &entry.node.tree {
                Tree::Bool(true) => Ok(TextPattern::Present),
                Tree::Bool(false) => Ok(TextPattern::Absent),
                Tree::Text(text) => TextPattern::new(text),
                Tree::Integer(number) => TextPattern::new(&number.to_string()),
                _ => Err("expected a pattern in quotes, true or false".to_owned()),
            };
            match pattern {
                Ok(pattern) => pairs.push((entry.key.clone(), pattern, &entry.node)),
                Err(error) => self.problem(&entry.node, key, error),
            }
        }
        pairs
    }

    /// Reads one or several texts, and converts each with `make`.
    pub(crate) fn each<T>(&mut self, key: &str, node: &Node, make: impl Fn(&str) -> Result<T, String>) -> Vec<T> {
        if matches!(&node.tree, Tree::List(items) if items.is_empty()) {
            self.problem(node, key, "is an empty list");
        }
        let mut made = Vec::new();
        for item in node.items() {
            match item.text().map(&make) {
                Some(Ok(value)) => made.push(value),
                Some(Err(error)) => self.problem(item, key, error),
                None => self.problem(item, key, "expected text in quotes, or a list of such"),
            }
        }
        made
    }

    pub(crate) fn text(&mut self, key: &str, node: &Node) -> Option<String> {
        let text = node.text().map(str::to_owned);
        if text.is_none() {
            self.problem(node, key, "expected text in quotes");
        }
        text
    }

    pub(crate) fn flag(&mut self, key: &str, node: &Node) -> Option<bool> {
        if let Tree::Bool(flag) = node.tree {
            return Some(flag);
        }
        self.problem(node, key, "expected true or false");
        None
    }

    /// Reads a file path and makes it absolute.
    pub(crate) fn file(&mut self, key: &str, node: &Node) -> Option<PathBuf> {
        let text = self.text(key, node)?;
        if text.is_empty() {
            self.problem(node, key, "expected a path");
            return None;
        }
        Some(self.base.join(text))
    }

    /// Reads a URL path and puts it below the mount.
    pub(crate) fn address(&mut self, key: &str, node: &Node) -> Option<String> {
        let text = self.text(key, node)?;
        if text.starts_with('/') {
            return Some(below(&self.mount, &text));
        }
        self.problem(node, key, "expected a path that starts with \"/\"");
        None
    }

    pub(crate) fn unknown_keys(&mut self, entries: &[Entry], known: &[&str]) {
        for entry in entries.iter().filter(|entry| !known.contains(&entry.key.as_str())) {
            let near = meant(&entry.key, known.iter().copied());
            let hint = near.map_or_else(String::new, |near| format!(", did you mean `{near}`?"));
            self.problems.push(Problem::new(entry.line, &entry.key, format!("is not a key of a rule{hint}")));
        }
    }

    pub(crate) fn problem(&mut self, node: &Node, key: &str, message: impl Into<String>) {
        self.problems.push(Problem::new(node.line, key, message));
    }
}

/// Puts a path or pattern of an application below its mount.
pub(crate) fn below(mount: &str, text: &str) -> String {
    match text.strip_prefix('*') {
        Some(_) if !mount.is_empty() => format!("{mount}/{text}"),
        _ if text.starts_with('/') => format!("{mount}{text}"),
        _ => text.to_owned(),
    }
}

fn regex_below(mount: &str, text: &str) -> Result<Regex, String> {
    if mount.is_empty() {
        return Regex::new(text);
    }
    let rest = text.strip_prefix("^/").ok_or_else(|| format!("{text:?} must begin with ^/ below a path"))?;
    Regex::new(&format!("^{}/{rest}", regex::escape(mount)))
}

pub(crate) fn network(text: &str) -> Result<IpNet, String> {
    let network = text.parse::<IpNet>().or_else(|_| text.parse::<IpAddr>().map(IpNet::from));
    network
        .map(|network| network.trunc())
        .map_err(|_| format!("{text:?} is not an address or network such as \"10.0.0.0/8\""))
}

fn kind(text: &str) -> Result<Kind, String> {
    let kinds = [Kind::File, Kind::Directory, Kind::No];
    kinds
        .into_iter()
        .find(|kind| kind.word() == text)
        .ok_or_else(|| format!("{text:?} is not one of file, directory, no"))
}
