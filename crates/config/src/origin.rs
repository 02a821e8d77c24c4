//! The origins of values, and errors with their origin.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

/// The origin of a setting's value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    Default,
    /// A line of `howdah.toml` or of a site file.
    File(Arc<PathBuf>, usize),
    /// A flag, or `ROOT`.
    Flag(String),
    /// An environment variable.
    Env(String),
    /// The application detected in the directory, by its title.
    Found(String),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File(path, line) => write!(f, "{}:{line}", path.display()),
            Self::Flag(flag) => f.write_str(flag),
            Self::Env(name) => write!(f, "environment {name}"),
            Self::Found(title) => write!(f, "found {title}"),
        }
    }
}

/// The origin of each setting by name (`http.max_body`, `pool.api.workers`, `php.ini.memory_limit`).
#[derive(Debug, Clone, Default)]
pub struct Origins(BTreeMap<String, Origin>);

impl Origins {
    /// The origin of a setting.
    pub fn of(&self, name: &str) -> Origin {
        self.0.get(name).cloned().unwrap_or(Origin::Default)
    }

    /// The names with a prefix, and their origins. The prefix is removed.
    pub(crate) fn under(&self, prefix: &str) -> Vec<(String, &Origin)> {
        let names = self.0.iter().filter_map(|(name, origin)| Some((name.strip_prefix(prefix)?.to_owned(), origin)));
        names.collect()
    }

    pub(crate) fn set(&mut self, name: String, origin: Origin) {
        self.0.insert(name, origin);
    }
}

/// An error in the settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigError {
    /// Origin of the wrong value; `None` for errors that concern the settings as a whole.
    pub origin: Option<Origin>,
    /// The setting, with its section in brackets; may be empty.
    pub setting: String,
    /// The mistake, and the remedy.
    pub message: String,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(origin) = &self.origin {
            write!(f, "{origin}: ")?;
        }
        if !self.setting.is_empty() {
            write!(f, "{}: ", self.setting)?;
        }
        f.write_str(&self.message)
    }
}

/// All errors in the settings; never empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigErrors(pub Vec<ConfigError>);

impl fmt::Display for ConfigErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, error) in self.0.iter().enumerate() {
            if at > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{error}")?;
        }
        Ok(())
    }
}

impl std::error::Error for ConfigErrors {}

/// Formats a setting's name for errors: `http.max_body` is `[http] max_body`.
pub(crate) fn bracketed(name: &str) -> String {
    match name.rfind('.') {
        Some(at) => format!("[{}] {}", &name[..at], &name[at + 1..]),
        None => name.to_owned(),
    }
}
