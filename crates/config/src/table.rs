//! The table of settings: one row per setting, written once as a field of a settings struct with its default,
//! documentation and example. The macro [`settings!`] makes of it the struct, its `Default` and its rows; the
//! loader, the flags' help, the reference and the JSON schema are made from the rows.

use crate::kind::Kind;

/// One setting, as the reference, the schema and the flags see it.
#[derive(Debug, Clone, Copy)]
pub struct Row {
    /// The section of `howdah.toml` it stands in; empty at the top level.
    pub section: &'static str,
    /// Its key in that section.
    pub key: &'static str,
    /// How its value is written.
    pub kind: Kind,
    /// Its default: the text that would be written in `howdah.toml`, or the words that describe a computed one.
    pub default: &'static str,
    /// Whether `default` describes a value that is computed when the settings are loaded.
    pub computed: bool,
    /// The smallest and largest value allowed, for whole numbers.
    pub range: Option<(u64, u64)>,
    /// The long flag of `howdah serve` that sets it too.
    pub flag: Option<&'static str>,
    /// What it means.
    pub doc: &'static str,
    /// A value, as it would be written in `howdah.toml`.
    pub example: &'static str,
}

impl Row {
    /// What it means, as plain text: paragraphs of one line each.
    #[must_use]
    pub fn text(&self) -> String {
        let paragraphs = self.doc.split("\n\n").map(|paragraph| {
            paragraph.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ")
        });
        paragraphs.filter(|paragraph| !paragraph.is_empty()).collect::<Vec<_>>().join("\n\n")
    }

    /// The environment variable that sets it, where its value can be written as one text.
    #[must_use]
    pub fn variable(&self) -> Option<String> {
        let name = self.name().replace('.', "_").to_ascii_uppercase();
        (!matches!(self.kind, Kind::Map) && !matches!(self.section, "route" | "proxy"))
            .then(|| format!("HOWDAH_{name}"))
    }

    /// The setting's full name: section and key.
    #[must_use]
    pub fn name(&self) -> String {
        if self.section.is_empty() { self.key.to_owned() } else { format!("{}.{}", self.section, self.key) }
    }
}

/// Declares a settings struct: fields with defaults, documentation and examples, each once.
macro_rules! settings {
    (
        $(#[doc = $sdoc:literal])+
        pub struct $name:ident at $section:literal {
            $(
                $(#[doc = $doc:literal])+
                $field:ident : $ty:ty = $default:literal $(auto($auto:path))? $(in($lo:literal, $hi:literal))?
                    $(key($key:literal))? $(flag($flag:literal))? example($example:literal);
            )*
        }
        plus { $( $(#[doc = $pdoc:literal])+ $pfield:ident : $pty:ty = $pdefault:expr; )* }
    ) => {
        $(#[doc = $sdoc])+
        #[derive(Debug, Clone, PartialEq)]
        pub struct $name {
            $( $(#[doc = $doc])+ pub $field: $ty, )*
            $( $(#[doc = $pdoc])+ pub $pfield: $pty, )*
        }

        impl $name {
            /// The table's rows of this section.
            pub const ROWS: &'static [$crate::table::Row] = &[$(
                $crate::table::Row {
                    section: $section,
                    key: settings!(@key $field $($key)?),
                    kind: <$ty as $crate::value::Value>::KIND,
                    default: $default,
                    computed: settings!(@computed $($auto)?),
                    range: settings!(@range $($lo, $hi)?),
                    flag: settings!(@flag $($flag)?),
                    doc: concat!($($doc, "\n"),+),
                    example: $example,
                }
            ),*];
        }

        impl $name {
            /// Reads this section from the sources of settings.
            pub(crate) fn read(source: &mut $crate::source::Source<'_>) -> Self {
                // Fields are evaluated in the order in which they are written, which is that of the rows.
                let mut rows = Self::ROWS.iter();
                Self {
                    $( $field: source.take(rows.next(), || settings!(@default $ty, $default $(, $auto)?)), )*
                    $( $pfield: $pdefault, )*
                }
            }

            /// Every row with its value as it would be written.
            pub(crate) fn shown(&self) -> Vec<(&'static $crate::table::Row, String)> {
                Self::ROWS.iter().zip([$( $crate::value::Value::show(&self.$field) ),*]).collect()
            }
        }

        impl Default for $name {
            fn default() -> Self {
                Self {
                    $( $field: settings!(@default $ty, $default $(, $auto)?), )*
                    $( $pfield: $pdefault, )*
                }
            }
        }
    };
    (@key $field:ident) => { stringify!($field) };
    (@key $field:ident $key:literal) => { $key };
    (@computed) => { false };
    (@computed $auto:path) => { true };
    (@range) => { None };
    (@range $lo:literal, $hi:literal) => { Some(($lo, $hi)) };
    (@flag) => { None };
    (@flag $flag:literal) => { Some($flag) };
    (@default $ty:ty, $default:literal) => { $crate::value::from_literal::<$ty>($default) };
    (@default $ty:ty, $default:literal, $auto:path) => { $auto() };
}
pub(crate) use settings;
