//! Parsing and formatting of a setting's value. It comes from `howdah.toml` as a [`Node`], or from a flag or the
//! environment as text; both become the same type. This file has the trait and the simple types; `quantity` has values
//! with a unit, `collection` lists and tables.

use std::path::PathBuf;

use crate::address::{ListenAddr, TrustedProxy};
use crate::choice::{
    Algorithm, Balance, ClientAuth, ForwardedFields, LogFormat, LogLevel, Mode, ParentTrust, Proof, ProxyHost,
    RootLinks, Sampler, SandboxProfile, Symlinks, SystemCalls, TlsVersion, TrustedHeader,
};
use crate::host::HostPattern;
use crate::kind::Kind;
use crate::pattern::NamePattern;
use crate::secret::{HIDDEN, Secret, without_password};
use crate::upstream_address::UpstreamAddr;
use howdah_rules::tree::{Node, Tree, quoted};

/// A type that settings can have.
pub(crate) trait Value: Sized {
    /// Its syntax.
    const KIND: Kind;

    /// Parses a value from `howdah.toml`; `None` if its type or syntax is wrong.
    fn from_node(node: &Node) -> Option<Self> {
        match &node.tree {
            Tree::Text(text) => Self::from_text(text),
            _ => None,
        }
    }

    /// Parses a value from a flag or the environment.
    fn from_text(text: &str) -> Option<Self>;

    /// Formats the value in the syntax of `howdah.toml`.
    fn show(&self) -> String;

    /// The value's size, if the row's range has to be checked.
    fn magnitude(&self) -> Option<u64> {
        None
    }

    /// Merges the value of a stronger source (a flag over `howdah.toml`).
    fn over(&mut self, stronger: Self) {
        *self = stronger;
    }

    /// Merges another value from the same source (a repeated flag).
    fn more(&mut self, further: Self) {
        *self = further;
    }

    /// The part of a node that `from_node` rejects, for the error.
    fn culprit(node: &Node) -> &Node {
        node
    }

    /// Parts of the value with separate origins: the keys of a table.
    fn parts(&self) -> Vec<&str> {
        Vec::new()
    }

    /// The paths in the value, which must be made absolute.
    fn paths(&mut self) -> Vec<&mut PathBuf> {
        Vec::new()
    }
}

/// Parses a literal from the table of settings; a test checks all of them.
pub(crate) fn from_literal<T: Value>(literal: &str) -> T {
    let value = Node::from_literal(literal).and_then(|node| T::from_node(&node));
    value.unwrap_or_else(|| unreachable!("the table of settings holds a broken default: {literal}"))
}

impl Value for bool {
    const KIND: Kind = Kind::Bool;

    fn from_node(node: &Node) -> Option<Self> {
        if let Tree::Bool(value) = node.tree { Some(value) } else { None }
    }

    fn from_text(text: &str) -> Option<Self> {
        match text {
            "true" | "1" | "on" | "yes" => Some(true),
            "false" | "0" | "off" | "no" => Some(false),
            _ => None,
        }
    }

    fn show(&self) -> String {
        self.to_string()
    }
}

/// Whole numbers.
macro_rules! number {
    ($($ty:ty: $kind:ident),+) => { $(
        impl Value for $ty {
            const KIND: Kind = Kind::$kind;

            fn from_node(node: &Node) -> Option<Self> {
                if let Tree::Integer(value) = node.tree { value.try_into().ok() } else { None }
            }

            fn from_text(text: &str) -> Option<Self> {
                text.parse().ok()
            }

            fn show(&self) -> String {
                self.to_string()
            }

            fn magnitude(&self) -> Option<u64> {
                u64::try_from(*self).ok()
            }
        }
    )+ };
}
number!(i32: Signed, u16: Number, u32: Number, u64: Number, usize: Number);

impl Value for String {
    const KIND: Kind = Kind::Text;

    fn from_text(text: &str) -> Option<Self> {
        Some(text.to_owned())
    }

    fn show(&self) -> String {
        quoted(&without_password(self))
    }
}

impl Value for Secret {
    const KIND: Kind = Kind::Text;

    fn from_text(text: &str) -> Option<Self> {
        Some(text.into())
    }

    fn show(&self) -> String {
        quoted(HIDDEN)
    }
}

impl Value for PathBuf {
    const KIND: Kind = Kind::Path;

    fn from_text(text: &str) -> Option<Self> {
        (!text.is_empty()).then(|| Self::from(text))
    }

    fn show(&self) -> String {
        quoted(&self.to_string_lossy())
    }

    fn paths(&mut self) -> Vec<&mut PathBuf> {
        vec![self]
    }
}

/// Optional types, with the word for "none".
macro_rules! optional {
    ($($ty:ty: $none:literal, $is_none:expr;)+) => { $(
        impl Value for Option<$ty> {
            const KIND: Kind = <$ty as Value>::KIND;

            fn from_node(node: &Node) -> Option<Self> {
                if matches!(&node.tree, Tree::Text(text) if text.is_empty()) {
                    return matches!(Self::KIND, Kind::Text | Kind::Path | Kind::Mode).then_some(None);
                }
                let value = <$ty as Value>::from_node(node)?;
                Some(if $is_none(&value) { None } else { Some(value) })
            }

            fn from_text(text: &str) -> Option<Self> {
                Self::from_node(&Node::of_text(text))
            }

            fn show(&self) -> String {
                self.as_ref().map_or_else(|| $none.to_owned(), Value::show)
            }

            fn magnitude(&self) -> Option<u64> {
                self.as_ref().and_then(Value::magnitude)
            }

            fn paths(&mut self) -> Vec<&mut PathBuf> {
                self.as_mut().map_or_else(Vec::new, Value::paths)
            }
        }
    )+ };
}
pub(crate) use optional;

optional! {
    String: "\"\"", String::is_empty;
    PathBuf: "\"\"", |_: &PathBuf| false;
    Secret: "\"\"", Secret::is_none;
}

/// Enums written as words.
macro_rules! words {
    ($($ty:ty),+) => { $(
        impl Value for $ty {
            const KIND: Kind = Kind::Choice(Self::WORDS);

            fn from_text(text: &str) -> Option<Self> {
                Self::from_word(text)
            }

            fn show(&self) -> String {
                quoted(self.word())
            }
        }
    )+ };
}
words!(
    Mode,
    Proof,
    SandboxProfile,
    SystemCalls,
    Symlinks,
    Algorithm,
    LogLevel,
    LogFormat,
    TrustedHeader,
    RootLinks,
    TlsVersion,
    ClientAuth,
    Balance,
    ProxyHost,
    ForwardedFields,
    Sampler,
    ParentTrust
);

impl Value for ListenAddr {
    const KIND: Kind = Kind::Address;

    fn from_text(text: &str) -> Option<Self> {
        text.parse().ok()
    }

    fn show(&self) -> String {
        quoted(&self.to_string())
    }

    fn paths(&mut self) -> Vec<&mut PathBuf> {
        match self {
            Self::Unix(path) | Self::FastCgiUnix(path) => vec![path],
            Self::Tcp(_) | Self::Https(_) | Self::FastCgiTcp(_) => Vec::new(),
        }
    }
}

/// Types that are shown as their `Display` writes them, with the function that parses them.
macro_rules! parsed {
    ($($ty:ty: $kind:ident, $parse:expr;)+) => { $(
        impl Value for $ty {
            const KIND: Kind = Kind::$kind;

            fn from_text(text: &str) -> Option<Self> {
                $parse(text)
            }

            fn show(&self) -> String {
                quoted(&self.to_string())
            }
        }
    )+ };
}
parsed! {
    TrustedProxy: Network, |text: &str| text.parse().ok();
    UpstreamAddr: Upstream, |text: &str| text.parse().ok();
    NamePattern: NamePattern, NamePattern::new;
    HostPattern: Host, HostPattern::new;
}

#[cfg(test)]
#[path = "value_tests.rs"]
mod tests;
