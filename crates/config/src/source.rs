//! The sources of settings, weakest first: defaults, `howdah.toml`, the environment, flags. For a pool, its own section
//! overrides all of them. Reading a setting yields its value, its origin and its errors.

use std::collections::BTreeMap;
use std::path::{Component, PathBuf};
use std::sync::Arc;

use crate::file::File;
use crate::origin::{ConfigError, Origin, Origins, bracketed};
use crate::row::Row;
use crate::value::Value;
use howdah_rules::tree::{Entry, Node, Tree, quoted};

/// The program's environment when settings are loaded.
#[derive(Debug, Clone, Default)]
pub struct Environment {
    pub current_dir: PathBuf,
    pub env: BTreeMap<String, String>,
    /// The directory of the running program.
    pub program_dir: Option<PathBuf>,
    /// Directory of settings that packages install, for commands that control a server; `None` to ignore them.
    pub settings_dir: Option<PathBuf>,
    /// The system's directory of sockets.
    pub run_dir: Option<PathBuf>,
    /// The user that the process runs as; `None` skips the checks.
    pub uid: Option<u32>,
}

impl Environment {
    /// The surroundings of this process.
    pub fn of_process() -> Self {
        let env =
            std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
        let program = std::env::current_exe().ok();
        Self {
            current_dir: std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/")),
            env: env.collect(),
            program_dir: program.and_then(|program| program.parent().map(PathBuf::from)),
            settings_dir: Some(PathBuf::from("/etc/howdah")),
            run_dir: Some(PathBuf::from("/run")),
            uid: Some(rustix::process::geteuid().as_raw()),
        }
    }
}

/// State of reading settings: the sources, and the results so far.
pub(crate) struct Source<'a> {
    pub(crate) file: Option<&'a File>,
    pub(crate) flags: &'a BTreeMap<String, Vec<String>>,
    pub(crate) environment: &'a Environment,
    pub(crate) origins: Origins,
    pub(crate) errors: Vec<ConfigError>,
    pub(crate) warnings: Vec<String>,
}

/// Sources of a setting: all of them, or one section.
#[derive(Clone, Copy)]
pub(crate) enum Scope<'a> {
    Top,
    /// A section that overrides all other sources, such as `[pool.NAME]`.
    Over(&'a Section<'a>),
    /// A section without other sources, such as a `[[site]]`.
    Alone(&'a Section<'a>),
}

/// A section of a file, with its name in messages.
pub(crate) struct Section<'a> {
    pub(crate) file: &'a File,
    pub(crate) name: String,
    pub(crate) entries: &'a [Entry],
}

impl<'a> Source<'a> {
    pub(crate) fn new(
        file: Option<&'a File>,
        flags: &'a BTreeMap<String, Vec<String>>,
        environment: &'a Environment,
        errors: Vec<ConfigError>,
    ) -> Self {
        Self { file, flags, environment, origins: Origins::default(), errors, warnings: Vec::new() }
    }

    /// The entries of a top-level table; none for the empty key.
    pub(crate) fn section(&self, section: &str) -> &'a [Entry] {
        let Some(file) = self.file else { return &[] };
        let top = entries(&file.root);
        if section.is_empty() { top } else { find(top, section).map_or(&[], |entry| entries(&entry.node)) }
    }

    /// Reads the value of a setting from all sources.
    pub(crate) fn take<T: Value>(
        &mut self,
        scope: Scope<'_>,
        row: Option<&'static Row>,
        default: impl FnOnce() -> T,
    ) -> T {
        let mut value = default();
        let Some(row) = row else { return value };
        let (own, is_alone) = match scope {
            Scope::Top => (None, false),
            Scope::Over(own) => (Some(own), false),
            Scope::Alone(own) => (Some(own), true),
        };
        let name = own.map_or_else(|| row.name(), |own| format!("{}.{}", own.name, row.key));
        let mut origin = Origin::Default;
        if !is_alone {
            if let Some(file) = self.file
                && let Some(entry) = find(self.section(row.section), row.key)
            {
                origin = self.take_entry(file, row, &name, entry, &mut value).unwrap_or(origin);
            }
            origin = self.take_env(row, &name, &mut value).unwrap_or(origin);
            origin = self.take_flags(row, &name, &mut value).unwrap_or(origin);
        }
        if let Some(own) = own
            && let Some(entry) = find(own.entries, row.key)
        {
            origin = self.take_entry(own.file, row, &name, entry, &mut value).unwrap_or(origin);
        }
        self.origins.set(name, origin);
        value
    }

    /// Overrides an earlier value of a setting by a section's value. Only values that are set have their own origin.
    pub(crate) fn take_over<T: Value + Clone>(&mut self, own: &Section<'_>, row: Option<&'static Row>, base: &T) -> T {
        let mut value = base.clone();
        if let Some(row) = row
            && let Some(entry) = find(own.entries, row.key)
        {
            let name = format!("{}.{}", own.name, row.key);
            if let Some(origin) = self.take_entry(own.file, row, &name, entry, &mut value) {
                self.origins.set(name, origin);
            }
        }
        value
    }

    fn take_entry<T: Value>(
        &mut self,
        file: &File,
        row: &Row,
        name: &str,
        entry: &Entry,
        value: &mut T,
    ) -> Option<Origin> {
        let origin = Origin::File(Arc::clone(&file.path), entry.line);
        let Some(found) = T::from_node(&entry.node) else {
            let culprit = T::culprit(&entry.node);
            let origin = Origin::File(Arc::clone(&file.path), culprit.line.max(entry.line));
            self.wrong(row, name, origin, &culprit.describe());
            return None;
        };
        for part in found.parts() {
            let line = find(entries(&entry.node), part).map_or(entry.line, |entry| entry.line);
            self.origins.set(format!("{name}.{part}"), Origin::File(Arc::clone(&file.path), line));
        }
        let dir = file.dir.clone();
        self.accept(row, name, origin, &dir, found, value)
    }

    fn take_env<T: Value>(&mut self, row: &Row, name: &str, value: &mut T) -> Option<Origin> {
        let variable = row.variable()?;
        let text = self.environment.env.get(&variable)?.clone();
        let origin = Origin::Env(variable);
        let Some(found) = T::from_text(&text) else {
            self.wrong(row, name, origin, &quoted(&text));
            return None;
        };
        let dir = self.environment.current_dir.clone();
        self.accept(row, name, origin, &dir, found, value)
    }

    fn take_flags<T: Value>(&mut self, row: &Row, name: &str, value: &mut T) -> Option<Origin> {
        let texts = self.flags.get(&row.name())?;
        let origin = Origin::Flag(match row.flag {
            Some(flag) => format!("--{flag}"),
            None if row.key == "root" => "ROOT".to_owned(),
            None => format!("--set {}", row.name()),
        });
        let mut all: Option<T> = None;
        for text in texts {
            match (T::from_text(text), &mut all) {
                (Some(found), None) => all = Some(found),
                (Some(found), Some(all)) => all.more(found),
                (None, _) => self.wrong(row, name, origin.clone(), &quoted(text)),
            }
        }
        let found = all?;
        for part in found.parts() {
            self.origins.set(format!("{name}.{part}"), origin.clone());
        }
        let dir = self.environment.current_dir.clone();
        self.accept(row, name, origin, &dir, found, value)
    }

    /// Checks a value's range, makes its paths absolute and merges it over the weaker value.
    fn accept<T: Value>(
        &mut self,
        row: &Row,
        name: &str,
        origin: Origin,
        dir: &std::path::Path,
        mut found: T,
        value: &mut T,
    ) -> Option<Origin> {
        if let (Some((least, most)), Some(size)) = (row.range, found.magnitude())
            && !(least..=most).contains(&size)
        {
            self.error(Some(origin), name, format!("must be from {least} to {most}, not {size}"));
            return None;
        }
        for path in found.paths() {
            *path = absolute(dir, path);
        }
        value.over(found);
        Some(origin)
    }

    /// Reports a value that its setting does not accept.
    fn wrong(&mut self, row: &Row, name: &str, origin: Origin, found: &str) {
        let example = match &origin {
            Origin::File(..) => format!("{} = {}", row.key, row.example),
            Origin::Flag(flag) if flag.starts_with("--set ") => format!("{flag}={}", plain_example(row)),
            Origin::Flag(flag) if flag.starts_with("--") => format!("{flag} {}", plain_example(row)),
            Origin::Env(variable) => format!("{variable}={}", plain_example(row)),
            Origin::Flag(_) | Origin::Default | Origin::Found(_) => row.example.to_owned(),
        };
        self.error(
            Some(origin),
            name,
            format!("expected {}, found {found}; for example: {example}", row.kind.expected()),
        );
    }

    /// Reports an error in a setting.
    pub(crate) fn error(&mut self, origin: Option<Origin>, name: &str, message: String) {
        self.errors.push(ConfigError { origin, setting: bracketed(name), message });
    }

    /// Reports an error in a setting, at its value's origin.
    pub(crate) fn object(&mut self, name: &str, message: String) {
        let origin = Some(self.origins.of(name)).filter(|origin| *origin != Origin::Default);
        self.error(origin, name, message);
    }
}

/// A row's example in the syntax of flags and the environment.
pub(crate) fn plain_example(row: &Row) -> String {
    let plain = |node: &Node| match &node.tree {
        Tree::Text(text) => text.clone(),
        // The files of a certificate.
        Tree::Table(entries) => {
            let paths = entries.iter().filter_map(|entry| match &entry.node.tree {
                Tree::Text(path) => Some(path.as_str()),
                _ => None,
            });
            paths.collect::<Vec<_>>().join(":")
        }
        _ => node.describe(),
    };
    match Node::from_literal(row.example) {
        Some(Node { tree: Tree::List(items), .. }) => items.iter().map(plain).collect::<Vec<_>>().join(","),
        Some(Node { tree: Tree::Table(entries), .. }) => {
            entries.first().map_or_else(String::new, |entry| format!("{}={}", entry.key, plain(&entry.node)))
        }
        Some(node) => plain(&node),
        None => row.example.to_owned(),
    }
}

/// Makes a path absolute, and removes `.` and `..` parts; symbolic links are kept.
pub(crate) fn absolute(dir: &std::path::Path, path: &std::path::Path) -> PathBuf {
    let joined = dir.join(path);
    without_detours(&std::path::absolute(&joined).unwrap_or(joined))
}

/// Removes each `..` with the directory before it, since scripts see these paths. A `..` after a symbolic link is kept:
/// the link leads elsewhere, and its target may change at a deployment.
fn without_detours(path: &std::path::Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        let is_name = matches!(plain.components().next_back(), Some(Component::Normal(_)));
        if part == Component::ParentDir && is_name && !plain.is_symlink() {
            plain.pop();
        } else {
            plain.push(part);
        }
    }
    plain
}

/// The entries of a table; none for other values.
pub(crate) fn entries(node: &Node) -> &[Entry] {
    if let Tree::Table(entries) = &node.tree { entries } else { &[] }
}

pub(crate) fn find<'a>(entries: &'a [Entry], key: &str) -> Option<&'a Entry> {
    entries.iter().find(|entry| entry.key == key)
}
