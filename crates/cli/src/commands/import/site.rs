//! A site of the `howdah.toml` under construction: keys, sections, rules.

use super::directive::Directive;
use howdah_config::quoted;
use std::fmt::Write as _;

/// Keys of a table with their values, in the order of their first mention.
#[derive(Debug, Default, Clone)]
pub(super) struct Keys(Vec<(String, Value)>);

#[derive(Debug, Clone)]
enum Value {
    /// A value in TOML syntax.
    Written(String),
    Text(String),
    List(Vec<String>),
}

impl Keys {
    /// Sets a key to a value in TOML syntax.
    pub(super) fn write(&mut self, key: &str, value: impl Into<String>) {
        self.put(key, Value::Written(value.into()));
    }

    pub(super) fn set(&mut self, key: &str, text: &str) {
        self.put(key, Value::Text(text.to_owned()));
    }

    /// Sets a key to a list, even with a single element.
    pub(super) fn set_list(&mut self, key: &str, texts: &[String]) {
        self.put(key, Value::List(texts.to_vec()));
    }

    /// Appends to the list of a key.
    pub(super) fn add(&mut self, key: &str, text: &str) {
        match self.0.iter_mut().find(|(own, _)| own == key) {
            Some((_, Value::List(texts))) => texts.push(text.to_owned()),
            _ => self.put(key, Value::List(vec![text.to_owned()])),
        }
    }

    /// Sets one entry of a key that is a table, such as `headers`.
    pub(super) fn set_in(&mut self, key: &str, name: &str, text: &str) {
        self.set(&format!("{key}.{}", quoted(name)), text);
    }

    fn put(&mut self, key: &str, value: Value) {
        match self.0.iter_mut().find(|(own, _)| own == key) {
            Some((_, own)) => *own = value,
            None => self.0.push((key.to_owned(), value)),
        }
    }

    pub(super) fn remove(&mut self, key: &str) {
        self.0.retain(|(own, _)| own != key);
    }

    pub(super) fn text(&self, key: &str) -> Option<String> {
        let (_, value) = self.0.iter().find(|(own, _)| own == key)?;
        match value {
            Value::Text(text) => Some(text.clone()),
            _ => None,
        }
    }

    pub(super) fn has(&self, key: &str) -> bool {
        self.0.iter().any(|(own, _)| own == key)
    }

    /// `true` if the name of one of its keys begins like this.
    pub(super) fn has_any(&self, start: &str) -> bool {
        self.0.iter().any(|(own, _)| own.starts_with(start))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The keys of both; `None` if both have a key.
    fn and(&self, other: &Self) -> Option<Self> {
        let is_free = other.0.iter().all(|(key, _)| !self.has(key));
        is_free.then(|| Self(self.0.iter().chain(&other.0).cloned().collect()))
    }

    fn written(&self) -> impl Iterator<Item = String> + '_ {
        self.0.iter().map(|(key, value)| match value {
            Value::Written(text) => format!("{key} = {text}"),
            Value::Text(text) => format!("{key} = {}", quoted(text)),
            Value::List(texts) => format!("{key} = [{}]", commas(texts)),
        })
    }

    pub(super) fn lines(&self) -> String {
        self.written().map(|line| line + "\n").collect()
    }

    fn inline(&self) -> String {
        format!("{{ {} }}", self.written().collect::<Vec<_>>().join(", "))
    }
}

pub(super) fn commas(texts: &[String]) -> String {
    texts.iter().map(|text| quoted(text)).collect::<Vec<_>>().join(", ")
}

/// Formats a list; a single element is written without brackets.
fn list(texts: &[String]) -> String {
    if let [one] = texts { quoted(one) } else { format!("[{}]", commas(texts)) }
}

/// Escapes a path for a regular expression.
pub(super) fn escaped(path: &str) -> String {
    path.chars().fold(String::new(), |mut all, c| {
        if !c.is_alphanumeric() && !matches!(c, '/' | '-' | '_' | '~') {
            all.push('\\');
        }
        all.push(c);
        all
    })
}

/// Paths of scripts.
pub(super) const SCRIPTS: &str = "~\\.php(/|$)";

/// `true` for regular expressions like `\.php$`, which begin with nothing but wildcards: they fit scripts of all
/// directories.
pub(super) fn is_for_all_directories(regex: &str) -> bool {
    regex.trim_start_matches("(?i)").trim_start_matches(|c| "^([]/.+*?:)".contains(c)).starts_with("\\.")
}

/// `true` for patterns that fit an empty text, as far as that is easy to see: a header that is not there fits no pattern
/// of a rule.
pub(super) fn fits_empty(regex: &str) -> bool {
    let inner: String = regex.trim_start_matches("(?i)").chars().filter(|c| !"^$()".contains(*c)).collect();
    inner.split('|').any(|part| matches!(part, "" | ".*" | ".?" | ".*?"))
}

/// One pattern in place of several: a header has one in each rule.
pub(super) fn joined(patterns: &[String]) -> String {
    if let [one] = patterns {
        return one.clone();
    }
    let all = patterns.iter().map(|pattern| {
        let pattern = pattern.strip_prefix('~').unwrap_or(pattern);
        pattern.strip_prefix("(?i)").map_or_else(|| format!("(?:{pattern})"), |rest| format!("(?i:{rest})"))
    });
    format!("~{}", all.collect::<Vec<_>>().join("|"))
}

/// A `[[site]]`.
#[derive(Debug, Default, Clone)]
pub(super) struct Site {
    pub(super) hosts: Vec<String>,
    pub(super) is_default: bool,
    /// Addresses of the site; they are written to the server's `listen`.
    pub(super) listen: Vec<String>,
    pub(super) keys: Keys,
    /// `[site.NAME]` with its keys.
    pub(super) sections: Vec<(String, Keys)>,
    /// Certificate file and key file.
    pub(super) certificate: (Option<String>, Option<String>),
    pub(super) rules: Vec<Rule>,
}

/// A `[[site.rule]]`.
#[derive(Debug, Default, Clone)]
pub(super) struct Rule {
    pub(super) paths: Vec<String>,
    /// Paths that the rule excludes.
    pub(super) except: Vec<String>,
    /// Additional conditions.
    pub(super) when: Keys,
    /// Conditions that must not hold.
    pub(super) unless: Keys,
    /// Actions. A rule without actions is not written.
    pub(super) keys: Keys,
    /// Lines above the rule.
    comment: String,
}

pub(super) fn section_of<'a>(sections: &'a mut Vec<(String, Keys)>, name: &str) -> &'a mut Keys {
    let at = sections.iter().position(|(own, _)| own == name).unwrap_or(sections.len());
    if at == sections.len() {
        sections.push((name.to_owned(), Keys::default()));
    }
    &mut sections[at].1
}

impl Site {
    pub(super) fn section(&mut self, name: &str) -> &mut Keys {
        section_of(&mut self.sections, name)
    }

    pub(super) fn text(&self) -> String {
        let mut hosts = self.hosts.clone();
        if self.is_default || hosts.is_empty() {
            hosts.push("default".to_owned());
        }
        let mut text = format!("\n[[site]]\nhosts = {}\n{}", list(&hosts), self.keys.lines());
        if let (Some(cert), Some(key)) = &self.certificate {
            let (cert, key) = (quoted(cert), quoted(key));
            let _ = write!(text, "\n[site.tls]\ncertificates = [{{ cert = {cert}, key = {key} }}]\n");
        }
        for (name, keys) in self.sections.iter().filter(|(_, keys)| !keys.is_empty()) {
            let _ = write!(text, "\n[site.{name}]\n{}", keys.lines());
        }
        text + &self.rules.iter().map(|rule| rule.text("site.rule")).collect::<String>()
    }
}

impl Rule {
    pub(super) fn for_paths(paths: Vec<String>) -> Self {
        Self { paths, ..Self::default() }
    }

    /// A rule that refuses all scripts but those of these paths.
    pub(super) fn no_scripts_but(paths: Vec<String>) -> Self {
        let mut rule = Self::for_paths(vec![SCRIPTS.to_owned()]);
        rule.except = paths;
        rule.refuse_scripts();
        rule
    }

    /// Refuses scripts that exist: the other server sends their source.
    pub(super) fn refuse_scripts(&mut self) {
        self.when.set("exists", "file");
        self.keys.write("php", "false");
    }

    /// A rule with the same conditions and without actions.
    pub(super) fn conditions(&self) -> Self {
        Self { keys: Keys::default(), comment: String::new(), ..self.clone() }
    }

    /// A rule with the conditions of both and without actions; `None` if one rule cannot have both.
    pub(super) fn and(&self, other: &Self) -> Option<Self> {
        if !self.paths.is_empty() && !other.paths.is_empty() {
            return None;
        }
        let both = |own: &[String], other: &[String]| own.iter().chain(other).cloned().collect();
        Some(Self {
            paths: both(&self.paths, &other.paths),
            except: both(&self.except, &other.except),
            when: self.when.and(&other.when)?,
            unless: self.unless.and(&other.unless)?,
            ..Self::default()
        })
    }

    /// Refuses all clients, unless the rule admits some.
    pub(super) fn deny(&mut self) {
        if !self.keys.has("allow") {
            self.keys.write("deny", "true");
        }
    }

    /// These conditions without the requests that meet those of another rule, which has these conditions and further ones.
    /// `None` if there are none left. Further conditions of several kinds cannot be excluded, and are ignored.
    pub(super) fn without(&self, other: &Self) -> Option<Self> {
        let mut left = self.clone();
        let paths: Vec<String> = other.paths.iter().filter(|path| !self.paths.contains(path)).cloned().collect();
        let further: Vec<_> = other.when.0.iter().filter(|(key, _)| !self.when.has(key)).cloned().collect();
        let is_plain = other.except.len() == self.except.len() && other.unless.0.len() == self.unless.0.len();
        match (paths.as_slice(), further.as_slice()) {
            _ if !is_plain => {}
            ([], []) => return None,
            (_, []) => left.except.extend(paths),
            ([], [(key, value)]) if matches!(&**key, "client" | "host" | "method") && !left.unless.has(key) => {
                left.unless.0.push((key.clone(), value.clone()));
            }
            _ => {}
        }
        Some(left)
    }

    /// `true` if its only condition is that the path names nothing.
    pub(super) fn is_for_missing(&self) -> bool {
        let when = &self.when.0;
        let has_others =
            !self.paths.is_empty() || !self.except.is_empty() || !self.unless.is_empty() || when.len() != 1;
        !has_others && self.when.text("exists").as_deref() == Some("no")
    }

    /// A rule that refuses all requests under these conditions, for a block that refuses some of them.
    pub(super) fn closed(&self, block: &Directive) -> Self {
        let mut rule = self.conditions();
        rule.keys.write("deny", "true");
        rule.comment = format!(
            "# LINE {}: {}\n# Its condition has no counterpart, so every client is refused. Write the condition into this rule, or\n\
             # delete the rule to admit every client.\n",
            block.line,
            block.shown()
        );
        rule
    }

    /// Text of the rule under `[[site.rule]]` or `[[rule]]`; empty without actions.
    pub(super) fn text(&self, header: &str) -> String {
        if self.keys.is_empty() {
            return String::new();
        }
        let mut text = format!("\n{}[[{header}]]\n", self.comment);
        if !self.paths.is_empty() {
            let _ = writeln!(text, "path = {}", list(&self.paths));
        }
        text.push_str(&self.when.lines());
        let mut unless = self.unless.clone();
        if !self.except.is_empty() {
            unless.write("path", list(&self.except));
        }
        if !unless.is_empty() {
            let _ = writeln!(text, "not = {}", unless.inline());
        }
        text + &self.keys.lines()
    }
}
