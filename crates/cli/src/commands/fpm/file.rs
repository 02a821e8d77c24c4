//! Reads PHP-FPM configurations: sections, `include` with patterns, `$pool`, `NAME[KEY] = VALUE`.

use howdah_config::Glob;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Maximum depth of files that include one another.
const MAX_DEPTH: usize = 16;

#[derive(Debug, Default)]
pub(crate) struct Config {
    pub(crate) global: Section,
    pub(crate) pools: Vec<Section>,
}

/// `[global]`, or a pool.
#[derive(Debug, Default)]
pub(crate) struct Section {
    pub(crate) name: String,
    /// In the order of the files; later directives override earlier ones with the same name and key.
    directives: Vec<Directive>,
}

/// A line `NAME = VALUE` or `NAME[KEY] = VALUE`.
#[derive(Debug)]
pub(crate) struct Directive {
    pub(crate) name: String,
    /// The key in brackets; empty for `NAME[]`.
    pub(crate) key: Option<String>,
    pub(crate) value: String,
    /// `FILE:LINE`, for messages.
    pub(crate) place: String,
}

impl Directive {
    /// Returns the value; for `php_flag` and the like, `1` or `0`.
    pub(crate) fn flag_or_value(&self) -> &str {
        match self.name.ends_with("_flag") {
            true if is_on(&self.value) == Some(true) => "1",
            true => "0",
            false => &self.value,
        }
    }
}

impl Section {
    /// Returns the section's directives, in the order of the files.
    pub(crate) fn directives(&self) -> &[Directive] {
        &self.directives
    }

    /// Returns the last value of a directive without a key.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        let found = self.directives.iter().rev().find(|directive| directive.name == name && directive.key.is_none());
        found.map(|directive| directive.value.as_str()).filter(|value| !value.is_empty())
    }

    /// `true` if the directive is set to a value, with or without a key.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.directives.iter().any(|directive| directive.name == name && !directive.value.is_empty())
    }

    /// Returns the keys and values of `NAME[KEY]` for these names, each key once. Values of `php_flag` and the like are
    /// `1` or `0`.
    pub(crate) fn table(&self, names: &[&str]) -> Vec<(&str, &str)> {
        let mut found: Vec<(&str, &str)> = Vec::new();
        for directive in self.directives.iter().filter(|directive| names.contains(&directive.name.as_str())) {
            let Some(key) = directive.key.as_deref() else { continue };
            found.retain(|(other, _)| *other != key);
            found.push((key, directive.flag_or_value()));
        }
        found
    }

    /// Returns the value as a number.
    ///
    /// # Errors
    /// The value is not a number.
    pub(crate) fn number(&self, name: &str) -> Result<Option<u64>, String> {
        let parse = |text: &str| text.parse().map_err(|_| format!("{name} = {text}: expected a number"));
        self.get(name).map(parse).transpose()
    }

    /// Returns a time in seconds: a number, or one with the suffix `s`, `m`, `h` or `d`.
    ///
    /// # Errors
    /// The value is not a time.
    pub(crate) fn seconds(&self, name: &str) -> Result<Option<u64>, String> {
        let Some(text) = self.get(name) else { return Ok(None) };
        let (number, unit) = match text.trim_end_matches(['s', 'm', 'h', 'd']) {
            number if number.len() + 1 >= text.len() => (number, &text[number.len()..]),
            _ => (text, ""),
        };
        let factor = match unit {
            "m" => 60,
            "h" => 3600,
            "d" => 86_400,
            _ => 1,
        };
        let number = number.parse::<u64>().ok().and_then(|number| number.checked_mul(factor));
        let wrong = || format!("{name} = {text}: expected a number of seconds, or one with s, m, h or d");
        number.map(Some).ok_or_else(wrong)
    }

    /// Returns the value of a switch.
    ///
    /// # Errors
    /// The value is not a switch.
    pub(crate) fn switch(&self, name: &str) -> Result<Option<bool>, String> {
        let parse = |text: &str| is_on(text).ok_or_else(|| format!("{name} = {text}: expected yes or no"));
        self.get(name).map(parse).transpose()
    }
}

/// Looks up a variable of the environment.
type Variables<'a> = &'a dyn Fn(&str) -> Option<String>;

/// State of a switch for a word; `None` for any other word.
fn is_on(word: &str) -> Option<bool> {
    match word.to_ascii_lowercase().as_str() {
        "yes" | "on" | "true" | "1" => Some(true),
        "no" | "off" | "false" | "none" | "0" => Some(false),
        _ => None,
    }
}

/// Reads a file and the files that it includes. `prefix` is the directory that relative patterns start from.
///
/// # Errors
/// A file that cannot be read, or an invalid line.
pub(crate) fn read(path: &Path, prefix: &Path) -> Result<Config, String> {
    let variable = |name: &str| std::env::var(name).ok();
    let mut reader = Reader { config: Config::default(), in_pool: false, prefix, variable: &variable };
    reader.file(path, 0)?;
    Ok(reader.config)
}

/// Parses the text of a file and the files that it includes. Variables of the environment are empty.
///
/// # Errors
/// An included file that cannot be read, or an invalid line.
pub(crate) fn parse(text: &str, path: &Path) -> Result<Config, String> {
    let none = |_: &str| None;
    let prefix = path.parent().unwrap_or(Path::new("/"));
    let mut reader = Reader { config: Config::default(), in_pool: false, prefix, variable: &none };
    reader.text(text, path, 0)?;
    Ok(reader.config)
}

struct Reader<'a> {
    config: Config,
    /// `true` if the current section is a pool.
    in_pool: bool,
    prefix: &'a Path,
    variable: Variables<'a>,
}

impl Reader<'_> {
    fn file(&mut self, path: &Path, depth: usize) -> Result<(), String> {
        let text = std::fs::read(path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
        self.text(&String::from_utf8_lossy(&text), path, depth)
    }

    fn text(&mut self, text: &str, path: &Path, depth: usize) -> Result<(), String> {
        for (number, line) in text.lines().enumerate() {
            let place = format!("{}:{}", path.display(), number + 1);
            let line = line.trim();
            if line.is_empty() || line.starts_with([';', '#']) {
                continue;
            }
            if let Some(name) =
                line.strip_prefix('[').and_then(|rest| rest.split_once(']')).map(|(name, _)| name.trim())
            {
                self.section(name, &place)?;
                continue;
            }
            let (name, value) =
                line.split_once('=').ok_or_else(|| format!("{place}: {line}: expected NAME = VALUE"))?;
            let name = name.trim();
            let is_plain = !value.trim_start().starts_with(['"', '\'']);
            let mut value = value_of(value.trim(), self.variable);
            if is_plain && name.starts_with("php_") {
                value = ini_word(value);
            }
            if name == "include" {
                self.include(&value, depth).map_err(|why| format!("{place}: {why}"))?;
                continue;
            }
            self.directive(name, value, place)?;
        }
        Ok(())
    }

    fn section(&mut self, name: &str, place: &str) -> Result<(), String> {
        self.in_pool = name != "global";
        if !self.in_pool {
            return Ok(());
        }
        if name.is_empty() {
            return Err(format!("{place}: a pool needs a name"));
        }
        // A repeated pool section continues the first one.
        let pools = &mut self.config.pools;
        match pools.iter().position(|pool| pool.name == name) {
            Some(at) => {
                let pool = pools.remove(at);
                pools.push(pool);
            }
            None => pools.push(Section { name: name.to_owned(), directives: Vec::new() }),
        }
        Ok(())
    }

    fn directive(&mut self, name: &str, value: String, place: String) -> Result<(), String> {
        let section = match self.config.pools.last_mut() {
            Some(pool) if self.in_pool => pool,
            _ => &mut self.config.global,
        };
        let value = value.replace("$pool", &section.name);
        let (name, key) = match name.split_once('[') {
            Some((name, key)) => {
                let key = key.strip_suffix(']').ok_or_else(|| format!("{place}: {name}[{key}: expected NAME[KEY]"))?;
                (name.trim(), Some(key.trim().to_owned()))
            }
            None => (name, None),
        };
        section.directives.push(Directive { name: name.to_owned(), key, value, place });
        Ok(())
    }

    fn include(&mut self, pattern: &str, depth: usize) -> Result<(), String> {
        if depth >= MAX_DEPTH {
            return Err(format!("include = {pattern}: more than {MAX_DEPTH} files include one another"));
        }
        let pattern = self.prefix.join(pattern);
        let text = pattern.to_string_lossy();
        if !text.contains(['*', '?', '[', '{']) {
            return self.file(&pattern, depth + 1);
        }
        let glob = Glob::new(&text, Path::new("/")).map_err(|why| format!("include = {text} {why}"))?;
        let mut files: BTreeSet<PathBuf> = BTreeSet::new();
        glob.find(&mut files);
        // After the included files, the including file continues in its own section.
        let (in_pool, name) = (self.in_pool, self.config.pools.last().map(|pool| pool.name.clone()));
        for file in files {
            self.file(&file, depth + 1)?;
        }
        if let Some(name) = name.filter(|_| in_pool) {
            self.section(&name, "")?;
        }
        self.in_pool = in_pool;
        Ok(())
    }
}

/// Value of an unquoted word, as PHP reads it in a `php.ini`.
fn ini_word(value: String) -> String {
    match value.to_ascii_lowercase().as_str() {
        "true" | "on" | "yes" => "1".to_owned(),
        "false" | "off" | "no" | "none" | "null" => String::new(),
        _ => value,
    }
}

/// Removes a value's quotes and the comment after it, and replaces variables of the environment outside of single quotes.
fn value_of(text: &str, variable: Variables<'_>) -> String {
    for (quote, is_literal) in [('"', false), ('\'', true)] {
        if let Some((inside, _)) = text.strip_prefix(quote).and_then(|rest| rest.split_once(quote)) {
            return if is_literal { inside.to_owned() } else { expanded(inside, variable) };
        }
    }
    expanded(text.split(';').next().unwrap_or_default().trim(), variable)
}

/// Replaces `${NAME}`, and `${NAME:-DEFAULT}` of PHP 8.3, by variables of the environment. Without such a variable the
/// text is empty, as PHP has it.
fn expanded(text: &str, variable: Variables<'_>) -> String {
    let mut parts = text.split("${");
    let mut made = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let Some((name, rest)) = part.split_once('}') else {
            made.extend(["${", part]);
            continue;
        };
        let (name, default) = name.split_once(":-").unwrap_or((name, ""));
        made += &variable(name).filter(|value| !value.is_empty()).unwrap_or_else(|| default.to_owned());
        made += rest;
    }
    made
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_read_in_the_order_of_their_names_with_included_ones() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).unwrap();
        write(
            "main.conf",
            "; a comment\n[global]\npid = run/pid ; after it\ninclude=pool.d/*.conf\nlog_level = notice\n",
        );
        std::fs::create_dir(dir.path().join("pool.d")).unwrap();
        write("pool.d/b.conf", "[b]\nuser=b\nslowlog = /log/$pool.slow\n[a]\nuser = other\n");
        write("pool.d/a.conf", "[a]\nuser = a\nenv[X] = \"one; two\"\nphp_value[x] = 1\nphp_flag[x] = on\n");
        write("pool.d/a.txt", "[c]\n");
        let config = read(&dir.path().join("main.conf"), dir.path()).unwrap();
        assert_eq!((config.global.get("pid"), config.global.get("log_level")), (Some("run/pid"), Some("notice")));
        let names: Vec<_> = config.pools.iter().map(|pool| (&*pool.name, pool.get("user").unwrap())).collect();
        assert_eq!(names, [("b", "b"), ("a", "other")]);
        assert_eq!(config.pools[0].get("slowlog"), Some("/log/b.slow"));
        assert_eq!(config.pools[1].table(&["env"]), [("X", "one; two")]);
        assert_eq!(config.pools[1].table(&["php_value", "php_flag"]), [("x", "1")]);
        write("main.conf", "include=main.conf\n");
        assert!(read(&dir.path().join("main.conf"), dir.path()).unwrap_err().contains("include one another"));
        write("main.conf", "include=none.conf\n");
        assert!(read(&dir.path().join("main.conf"), dir.path()).unwrap_err().contains("none.conf"));
    }

    #[test]
    fn variables_of_the_environment_are_replaced_as_php_does() {
        let variable = |name: &str| (name == "SIZE").then(|| "32M".to_owned());
        let of = |text: &str| value_of(text, &variable);
        assert_eq!(
            (of("${SIZE}"), of("\"a ${SIZE} b\" ; c"), of("'${SIZE}'")),
            ("32M".into(), "a 32M b".into(), "${SIZE}".into())
        );
        assert_eq!((of("x${NONE}y"), of("${NONE:-8}"), of("${SIZE:-8}")), ("xy".into(), "8".into(), "32M".into()));
        assert_eq!((of("a${b"), of("$pool")), ("a${b".into(), "$pool".into()));
    }

    #[test]
    fn numbers_times_and_switches_are_read_as_php_fpm_does() {
        let config =
            parse("[p]\na = 5\nb = 2m\nc = 1h\nd = 3x\ne = ms\nf = On\ng = maybe\nh = 0\n", Path::new("/etc/fpm.conf"))
                .unwrap();
        let pool = &config.pools[0];
        assert_eq!(
            (pool.seconds("a"), pool.seconds("b"), pool.seconds("c")),
            (Ok(Some(5)), Ok(Some(120)), Ok(Some(3600)))
        );
        assert!(pool.seconds("d").is_err() && pool.seconds("e").is_err() && pool.number("b").is_err());
        assert_eq!(
            (pool.switch("f"), pool.switch("h"), pool.switch("none")),
            (Ok(Some(true)), Ok(Some(false)), Ok(None))
        );
        assert!(pool.switch("g").is_err());
    }
}
