//! The application that a site serves, as the setting `app` names it.

use crate::kind::Kind;
use crate::value::Value;
use howdah_rules::tree::quoted;

/// The application that a site serves.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum AppChoice {
    /// The one that is found in the directory, if there is no `howdah.toml`.
    #[default]
    Auto,
    /// No known one.
    None,
    /// The one of this name.
    Named(String),
}

impl AppChoice {
    /// Its name, if it is a known one.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        if let Self::Named(name) = self { Some(name) } else { None }
    }
}

impl Value for AppChoice {
    const KIND: Kind = Kind::Text;

    fn from_text(text: &str) -> Option<Self> {
        Some(match text {
            "auto" => Self::Auto,
            "none" => Self::None,
            "" => return None,
            name => Self::Named(name.to_owned()),
        })
    }

    fn show(&self) -> String {
        quoted(match self {
            Self::Auto => "auto",
            Self::None => "none",
            Self::Named(name) => name,
        })
    }
}
