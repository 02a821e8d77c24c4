//! nginx's `map`: a directive that names its variable becomes a rule for each entry, with the conditions of that entry.

use super::condition;
use super::constant::with_value;
use super::entry::{Entry, entries};
use crate::commands::import::directive::Directive;
use crate::commands::import::report::Report;
use crate::commands::import::site::Rule;
use std::cell::Cell;

/// Name of the directives that stand for an entry of a map, in place of those that named its variable. nginx has no such
/// directive in a server.
pub(super) const ENTRY: &str = "map";

/// Name of the directives around an `if` whose map has no counterpart, with the reason.
pub(super) const UNKNOWN: &str = "if without counterpart";

#[derive(Default)]
pub(super) struct Maps(Vec<Map>);

struct Map {
    /// With `$`.
    variable: String,
    directive: Directive,
    /// The entries, or why they have no counterpart.
    entries: Result<Vec<Entry>, String>,
    is_used: Cell<bool>,
}

impl Maps {
    /// The maps at the top level and in `http`.
    pub(super) fn read(directives: &[Directive]) -> Self {
        let mut maps = Vec::new();
        for directive in directives {
            match (&*directive.name, &directive.block) {
                ("http", Some(block)) => maps.extend(Self::read(block).0),
                ("map", Some(block)) => maps.push(Map {
                    variable: plain(directive.word(1)),
                    directive: directive.clone(),
                    entries: entries(&plain(directive.word(0)), block),
                    is_used: Cell::new(false),
                }),
                _ => {}
            }
        }
        Self(maps)
    }

    /// Replaces directives that name a map's variable with blocks for its entries, to which [`Self::rule`] gives the
    /// conditions. Those that cannot be replaced are reported and removed.
    pub(super) fn expanded(&self, block: &[Directive], report: &mut Report) -> Vec<Directive> {
        block.iter().flat_map(|directive| self.replacing(directive, report)).collect()
    }

    /// A server's `root` that names a map's variable, with the value that the map has if no entry fits.
    pub(super) fn default_root(&self, block: &[Directive]) -> Option<Directive> {
        let root = block.iter().find(|directive| directive.name == "root")?;
        let map = self.0.iter().find(|map| map.is_in(&root.words))?;
        let default = map.entries().ok()?.last().filter(|default| !default.value.is_empty())?;
        Some(map.with(root, &default.value))
    }

    /// Conditions of an entry, in addition to those of `base`. `None`: one rule cannot have both.
    pub(super) fn rule(&self, directive: &Directive, base: &Rule) -> Option<Rule> {
        let map = self.0.iter().find(|map| map.variable == directive.word(0))?;
        let entry = map.entries.as_ref().ok()?.get(directive.word(1).parse::<usize>().ok()?)?;
        base.and(&entry.conditions)
    }

    /// Reports how the maps themselves were converted.
    pub(super) fn report(&self, report: &mut Report) {
        for map in &self.0 {
            let became = match &map.entries {
                Err(why) => format!("dropped: {why}"),
                Ok(_) if map.is_used.get() => "taken: rules where its variable is named".to_owned(),
                Ok(_) => "dropped: nothing that has a counterpart names its variable".to_owned(),
            };
            report.say(&map.directive, became.as_str());
            map.directive.inner().iter().for_each(|entry| report.say(entry, became.as_str()));
        }
    }

    fn replacing(&self, directive: &Directive, report: &mut Report) -> Vec<Directive> {
        let (name, words) = (&*directive.name, &directive.words);
        let named: Vec<&Map> = self.0.iter().filter(|map| map.is_in(words)).collect();
        if name == "if" {
            let inner = directive.inner();
            let found = match named.as_slice() {
                [] if inner.iter().any(|part| self.0.iter().any(|map| map.is_in(&part.words))) => {
                    Err("a condition around the variable of a map: write rules by hand".to_owned())
                }
                [] => return vec![directive.clone()],
                [map] => map.conditions(directive, self),
                _ => Err("it has variables of several maps".to_owned()),
            };
            // The importer decides: it knows the location.
            let unknown = |why| Directive {
                name: UNKNOWN.to_owned(),
                words: vec![why],
                block: Some(vec![directive.clone()]),
                line: directive.line,
            };
            return found.unwrap_or_else(|why| vec![unknown(why)]);
        }
        if let Some(block) = &directive.block {
            return vec![Directive { block: Some(self.expanded(block, report)), ..directive.clone() }];
        }
        let found = match named.as_slice() {
            [map] if name == "auth_basic" => {
                report.say(directive, "changed: a password is always required, whatever the map says");
                Ok(map.strictest(directive))
            }
            [map] if is_expandable(name) => map.each(directive),
            [_, _, ..] if is_expandable(name) => Err("it has variables of several maps".to_owned()),
            _ => return vec![directive.clone()],
        };
        found.unwrap_or_else(|why| {
            report.dropped_block(directive, &why);
            Vec::new()
        })
    }
}

impl Map {
    fn is_in(&self, words: &[String]) -> bool {
        words.iter().any(|word| with_value(word, &self.variable, "") != *word)
    }

    fn entries(&self) -> Result<&[Entry], String> {
        self.entries.as_deref().map_err(|why| format!("its map has no counterpart: {why}"))
    }

    /// A block for the entry at this place.
    fn block(&self, at: usize, line: usize, inner: Vec<Directive>) -> Directive {
        self.is_used.set(true);
        Directive {
            name: ENTRY.to_owned(),
            words: vec![self.variable.clone(), at.to_string()],
            block: Some(inner),
            line,
        }
    }

    fn with(&self, directive: &Directive, value: &str) -> Directive {
        let words = directive.words.iter().map(|word| with_value(word, &self.variable, value)).collect();
        Directive { words, ..directive.clone() }
    }

    /// A block for each entry. Without a value, nginx sends no header and a setting keeps its default.
    fn each(&self, directive: &Directive) -> Result<Vec<Directive>, String> {
        let mut blocks = Vec::new();
        for (at, entry) in self.entries()?.iter().enumerate() {
            let part = self.with(directive, &entry.value);
            if part.words.last().is_some_and(|word| !word.is_empty()) {
                blocks.push(self.block(at, directive.line, vec![part]));
            }
        }
        Ok(blocks)
    }

    /// A block for each entry whose value meets the condition of an `if`.
    fn conditions(&self, directive: &Directive, all: &Maps) -> Result<Vec<Directive>, String> {
        let inner = directive.inner();
        if inner.iter().any(|part| all.0.iter().any(|map| map.variable != self.variable && map.is_in(&part.words))) {
            return Err("it has variables of several maps".to_owned());
        }
        let mut blocks = Vec::new();
        for (at, entry) in self.entries()?.iter().enumerate() {
            let holds = condition::of_value(&directive.words, &self.variable, &entry.value);
            if holds.ok_or("the value of a map can only be compared with a text")? {
                let inner = inner.iter().map(|part| self.with(part, &entry.value)).collect();
                blocks.push(self.block(at, directive.line, inner));
            }
        }
        Ok(blocks)
    }

    /// `auth_basic`, with a value that asks for passwords if there is one: a map must not open what it protects in part.
    fn strictest(&self, directive: &Directive) -> Vec<Directive> {
        self.is_used.set(true);
        let entries = self.entries.as_deref().unwrap_or_default();
        let realm = entries.iter().map(|entry| &*entry.value).find(|value| !matches!(*value, "off" | ""));
        vec![self.with(directive, realm.unwrap_or("Restricted"))]
    }
}

/// A block for an entry of a map, as the report names it.
pub(super) fn shown(entry: &Directive) -> Directive {
    Directive { name: "if".to_owned(), words: vec![format!("({})", entry.word(0))], ..entry.clone() }
}

/// Directives that become a rule for each entry of a map whose variable they name.
fn is_expandable(name: &str) -> bool {
    const NAMES: &[&str] = &[
        "add_header",
        "alias",
        "client_max_body_size",
        "error_page",
        "expires",
        "fastcgi_param",
        "index",
        "proxy_pass",
        "return",
        "rewrite",
        "root",
    ];
    NAMES.contains(&name)
}

/// Removes the braces of `${name}`.
fn plain(variable: &str) -> String {
    let inner = variable.strip_prefix("${").and_then(|rest| rest.strip_suffix('}'));
    inner.map_or_else(|| variable.to_owned(), |name| format!("${name}"))
}
