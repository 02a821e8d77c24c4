//! The application of a site: the setting `app`.

use crate::kind::Kind;
use crate::value::Value;
use howdah_rules::tree::quoted;

/// The application that a site serves.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum AppChoice {
    /// The application detected in the directory, if there is no `howdah.toml`.
    #[default]
    Auto,
    /// No known application.
    None,
    /// The application with this name.
    Named(String),
}

impl AppChoice {
    /// The application's name, if it is known.
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
