//! Reads `[[rule]]` and `app`. `howdah-rules` interprets them; this file passes their values with line numbers, and
//! converts the errors.

use std::path::Path;
use std::sync::Arc;

use howdah_rules::{Action, Problem, Route, Rule, Rules, Share};

use crate::file::File;
use crate::load_proxies;
use crate::rules::SiteRules;
use crate::settings::PoolSettings;
use crate::settings_proxy::ProxySettings;
use crate::source::{Source, entries, find};
use howdah_rules::tree::{self, Entry, Node, Tree, quoted};

/// Location of rules.
#[derive(Clone, Copy)]
pub(crate) struct Written<'a> {
    pub(crate) file: Option<&'a File>,
    /// The site's own entries.
    pub(crate) own: &'a [Entry],
    /// Prefix of the rules' names in errors.
    pub(crate) section: &'a str,
}

/// Lists shared by the rules of all sites.
pub(crate) struct Gathered {
    /// The `[proxy.NAME]` sections, and the addresses used in rules.
    pub(crate) proxies: Vec<ProxySettings>,
    /// Number of routes with a share.
    pub(crate) shares: u16,
}

impl Gathered {
    /// Numbers a route's share among those of all sites.
    fn number(&mut self, route: &mut Arc<Route>) {
        if let Some(share) = route.share {
            let share = Share { number: self.shares, ..share };
            *route = Arc::new(Route { share: Some(share), ..(**route).clone() });
            self.shares = self.shares.saturating_add(1);
        }
    }
}

/// Reads the rules of the top level or a site, the application's rules first. `None` if there are none.
pub(crate) fn read(
    source: &mut Source<'_>,
    written: Written<'_>,
    app: Option<&str>,
    pools: &[PoolSettings],
    gathered: &mut Gathered,
) -> Option<SiteRules> {
    let Written { file, own, section } = written;
    let list = find(own, "rule");
    if app.is_none() && list.is_none() {
        return None;
    }
    let at = |line: usize| file.filter(|_| line > 0).map(|file| file.line(line));
    let base = file.map_or(source.environment.current_dir.as_path(), |file| file.dir.as_path());
    let mut nodes: Vec<(bool, Node)> = Vec::new();
    if let Some(app) = app {
        let line = find(own, "app").map_or(0, |entry| entry.line);
        let name = Node { line, ..Node::of_text(app) };
        let key = Entry { key: "app".to_owned(), line, node: name };
        nodes.push((true, Node { tree: Tree::Table(vec![key]), line }));
    }
    let (mut problems, mut texts) = (Vec::new(), Vec::new());
    match list.map(|list| (&list.node.tree, list.line)) {
        Some((Tree::List(items), _)) => {
            nodes.extend(items.iter().map(|item| (false, item.clone())));
            texts.extend(items.iter().map(text));
        }
        Some((_, line)) => {
            let message = "expected sections [[rule]], each with conditions and actions (two brackets)".to_owned();
            source.error(at(line), &format!("{section}rule"), message);
        }
        None => {}
    }
    let mut rules: Vec<Rule> = Vec::new();
    let (of_app, written): (Vec<_>, Vec<_>) = nodes.into_iter().partition(|(is_app, _)| *is_app);
    for (part, is_app) in [(of_app, true), (written, false)] {
        let part: Vec<_> = part.into_iter().map(|(_, node)| node).collect();
        match howdah_rules::read(&part, base) {
            Ok(found) => rules.extend(found),
            Err(found) if is_app => {
                found.into_iter().for_each(|it| source.error(at(it.line), &format!("{section}app"), it.message));
            }
            Err(found) => problems.extend(found),
        }
    }
    for rule in &mut rules {
        for action in &mut rule.actions {
            if let Action::Route(route) = action {
                gathered.number(route);
            }
            let Action::Proxy(named) = action else { continue };
            *named = load_proxies::named(named.to_string(), &mut gathered.proxies).into();
            if !gathered.proxies.iter().any(|known| *known.name == **named) {
                let message = format!("there is no proxy \"{named}\": add [proxy.{named}], or write an address");
                source.error(at(rule.line), &format!("{section}rule.proxy"), message);
            }
        }
        let named =
            rule.actions.iter().find_map(|action| if let Action::Pool(pool) = action { Some(pool) } else { None });
        if let Some(pool) = named.filter(|pool| !pools.iter().any(|known| known.name == ***pool)) {
            let message = format!("there is no pool \"{pool}\": add [pool.{pool}]");
            source.error(at(rule.line), &format!("{section}rule.pool"), message);
        }
    }
    let compiled = if problems.is_empty() { Rules::new(rules).map_err(|found| problems = found) } else { Err(()) };
    for problem in problems {
        let dot =
            if problem.key.is_empty() || problem.key == "rule" { String::new() } else { format!(".{}", problem.key) };
        source.error(at(problem.line), &format!("{section}rule{dot}"), problem.message);
    }
    Some(SiteRules { compiled: Arc::new(compiled.unwrap_or_default()), written: texts })
}

impl SiteRules {
    /// Returns the rules with pools renamed.
    pub(crate) fn with_pools(&self, name: impl Fn(&str) -> String) -> Self {
        if self.pools().all(|pool| name(pool) == pool) {
            return self.clone();
        }
        let mut rules = self.rules().to_vec();
        for action in rules.iter_mut().flat_map(|rule| &mut rule.actions) {
            if let Action::Pool(pool) = action {
                *pool = name(pool).into();
            }
        }
        // They were compiled before, so there are no errors.
        Self { compiled: Arc::new(Rules::new(rules).unwrap_or_default()), written: self.written.clone() }
    }

    /// Returns the rules between other rules in the syntax of `howdah.toml`. The pools that the other rules name are
    /// not checked.
    ///
    /// # Errors
    /// Errors in the other rules.
    pub fn between(&self, before: &str, after: &str) -> Result<Self, String> {
        let (before, after) = (of_text(before)?, of_text(after)?);
        let compiled = [&before.compiled, &self.compiled, &after.compiled].into_iter().flat_map(|part| part.rules());
        let compiled = Rules::new(compiled.cloned().collect()).map_err(|found| in_words(&found))?;
        let written = [before.written, self.written.clone(), after.written].concat();
        Ok(Self { compiled: Arc::new(compiled), written })
    }
}

/// Parses a document that has only rules.
fn of_text(written: &str) -> Result<SiteRules, String> {
    let document = tree::parse(written).map_err(|errors| format!("{errors:?}"))?;
    let items = match find(entries(&document), "rule").map(|list| &list.node.tree) {
        Some(Tree::List(items)) => items.as_slice(),
        _ => &[],
    };
    let rules = howdah_rules::read(items, Path::new("")).and_then(Rules::new).map_err(|found| in_words(&found))?;
    Ok(SiteRules { compiled: Arc::new(rules), written: items.iter().map(text).collect() })
}

fn in_words(problems: &[Problem]) -> String {
    problems.iter().map(|problem| format!("rule.{}: {}", problem.key, problem.message)).collect::<Vec<_>>().join("; ")
}

/// Formats a rule, one line per key.
fn text(rule: &Node) -> String {
    let lines = entries(rule).iter().map(|entry| format!("{} = {}\n", quoted_key(&entry.key), value(&entry.node)));
    lines.collect()
}

fn quoted_key(key: &str) -> String {
    let bare = !key.is_empty() && key.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
    if bare { key.to_owned() } else { quoted(key) }
}

fn value(node: &Node) -> String {
    match &node.tree {
        Tree::Text(text) => quoted(text),
        Tree::List(items) => format!("[{}]", items.iter().map(value).collect::<Vec<_>>().join(", ")),
        Tree::Table(entries) => {
            let pairs = entries.iter().map(|entry| format!("{} = {}", quoted_key(&entry.key), value(&entry.node)));
            format!("{{ {} }}", pairs.collect::<Vec<_>>().join(", "))
        }
        _ => node.describe(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_put_between_others_and_keep_their_names() {
        let own = of_text("[[rule]]\npath = \"/a/*\"\nrewrite = \"/b/$1\"\n").unwrap();
        let all = own.between("[[rule]]\nname = \"first\"\nphp = true\n", "[[rule]]\nlisting = true\n").unwrap();
        let names: Vec<&str> = all.rules().iter().map(|rule| &*rule.name).collect();
        assert_eq!(names, ["first", "rule[0]", "rule[0]"]);
        assert_eq!(all.written.len(), 3);
        assert_eq!(own.between("", "").unwrap(), own);
        assert!(own.between("[[rule]]\nphp = 1\n", "").unwrap_err().starts_with("rule.php: "));
    }
}
