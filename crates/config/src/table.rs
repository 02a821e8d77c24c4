//! The table of settings: one row per setting, written once as a field of a settings struct with its default,
//! documentation and example. The macro [`settings!`] makes of it the struct, its `Default` and its rows; the
//! loader, the flags' help, the reference and the JSON schema are made from the rows.

/// Declares a settings struct: fields with defaults, documentation and examples, each once.
macro_rules! settings {
    (
        $(#[doc = $sdoc:literal])+
        pub struct $name:ident at $section:literal {
            $(
                $(#[doc = $doc:literal])+
                $field:ident : $ty:ty = $default:literal $(auto($auto:path))? $(in($lo:literal, $hi:literal))?
                    $(key($key:literal))? $(flag($flag:literal))? $(restart($restart:literal))? example($example:literal);
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
            pub const ROWS: &'static [$crate::row::Row] = &[$(
                $crate::row::Row {
                    section: $section,
                    key: settings!(@key $field $($key)?),
                    kind: <$ty as $crate::value::Value>::KIND,
                    default: $default,
                    computed: settings!(@computed $($auto)?),
                    range: settings!(@range $($lo, $hi)?),
                    flag: settings!(@flag $($flag)?),
                    restart: settings!(@restart $($restart)?),
                    doc: concat!($($doc, "\n"),+),
                    example: $example,
                }
            ),*];
        }

        impl $name {
            /// Reads this section from the sources of settings.
            pub(crate) fn read(source: &mut $crate::source::Source<'_>, scope: $crate::source::Scope<'_>) -> Self {
                // Fields are evaluated in the order in which they are written, which is that of the rows.
                let mut rows = Self::ROWS.iter();
                Self {
                    $( $field: source.take(scope, rows.next(), || settings!(@default $ty, $default $(, $auto)?)), )*
                    $( $pfield: $pdefault, )*
                }
            }

            /// Reads this section of a site over the top level's.
            #[allow(dead_code, reason = "not every section is allowed in a site")]
            pub(crate) fn read_over(base: &Self, source: &mut $crate::source::Source<'_>, own: &$crate::source::Section<'_>) -> Self {
                let mut rows = Self::ROWS.iter();
                Self {
                    $( $field: source.take_over(own, rows.next(), &base.$field), )*
                    $( $pfield: base.$pfield.clone(), )*
                }
            }

            /// Takes over the values of `old` for the rows that stay.
            #[allow(dead_code, reason = "not every section has settings that need a restart")]
            pub(crate) fn keep(&mut self, old: &Self, stays: &dyn Fn(&$crate::row::Row) -> bool) {
                let mut rows = Self::ROWS.iter();
                $( if rows.next().is_some_and(stays) { self.$field.clone_from(&old.$field); } )*
            }

            /// Every row with its value as it would be written.
            #[allow(dead_code, reason = "a site is shown otherwise")]
            pub(crate) fn shown(&self) -> Vec<(&'static $crate::row::Row, String)> {
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
    (@restart) => { false };
    (@restart $restart:literal) => { $restart };
    (@default $ty:ty, $default:literal) => { $crate::value::from_literal::<$ty>($default) };
    (@default $ty:ty, $default:literal, $auto:path) => { $auto() };
}
pub(crate) use settings;
