//! Media types of files: `AddType`, `ForceType`, `AddCharset`, `AddDefaultCharset`, `AddEncoding`, and handlers as far
//! as they select PHP.

use std::collections::BTreeMap;

/// Media types set by directives.
#[derive(Debug, Clone, Default)]
pub(crate) struct Media {
    /// Media types by extension, in lower case and without a dot; `None` resets the type to the default.
    pub types: BTreeMap<String, Option<String>>,
    pub charsets: BTreeMap<String, Option<String>>,
    pub encodings: BTreeMap<String, Option<String>>,
    pub handlers: BTreeMap<String, Option<bool>>,
    /// Extensions with a named handler (`AddHandler`), which also applies to missing files.
    pub handled: BTreeMap<String, bool>,
    pub force: Option<Option<String>>,
    /// The inner `None` adds no charset.
    pub default_charset: Option<Option<String>>,
    /// PHP runs all files (`true`) or none (`false`); the inner `None` resets this.
    pub handler: Option<Option<bool>>,
}

impl Media {
    /// Number of extensions.
    pub(crate) fn len(&self) -> usize {
        self.types.len() + self.charsets.len() + self.encodings.len() + self.handlers.len()
    }
}

/// Properties of a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FileType {
    pub media_type: Option<String>,
    /// The charset, for every media type.
    pub charset: Option<String>,
    /// The charset of texts without one; the inner `None` disables it.
    pub default_charset: Option<Option<String>>,
    /// `Content-Encoding`.
    pub encoding: Option<String>,
    /// PHP runs the file, or must not; `None` if the file's name decides.
    pub php: Option<bool>,
}

/// `true` if the name of a handler or media type selects PHP.
pub(crate) fn means_php(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let known = name.contains("httpd-php") && !name.contains("source");
    known
        || name.starts_with("php")
        || name.contains("php-fpm")
        || name.starts_with("proxy:fcgi:")
        || name.contains("|fcgi:")
}

impl Media {
    /// Parses a directive with its words; `name` is in lower case. Returns `false` for other directives.
    pub(crate) fn add(&mut self, name: &str, words: &[String]) -> Result<bool, String> {
        // Apache lower-cases these values (mod_mime.c, add_extension_info).
        let lower = words.first().filter(|_| name != "adddefaultcharset").map(|word| word.to_ascii_lowercase());
        let first = lower.as_ref().or(words.first()).map(String::as_str);
        let none = |text: &&str| !text.eq_ignore_ascii_case("none");
        match (name, first) {
            ("forcetype", Some(kind)) => self.force = Some(Some(kind).filter(none).map(str::to_owned)),
            ("adddefaultcharset", Some(charset)) => {
                self.default_charset = Some(match charset.to_ascii_lowercase().as_str() {
                    "off" => None,
                    "on" => Some("iso-8859-1".to_owned()),
                    _ => Some(charset.to_owned()),
                });
            }
            ("sethandler", Some(handler)) => self.handler = Some(Some(handler).filter(none).map(means_php)),
            ("addtype" | "addcharset" | "addencoding" | "addhandler", Some(value)) if words.len() > 1 => {
                for ending in endings(&words[1..]) {
                    match name {
                        "addtype" if means_php(value) => drop(self.handlers.insert(ending, Some(true))),
                        "addtype" => drop(self.types.insert(ending, Some(value.to_owned()))),
                        "addcharset" => drop(self.charsets.insert(ending, Some(value.to_owned()))),
                        "addencoding" => drop(self.encodings.insert(ending, Some(value.to_owned()))),
                        _ => {
                            self.handled.insert(ending.clone(), true);
                            self.handlers.insert(ending, Some(means_php(value)));
                        }
                    }
                }
            }
            ("removetype" | "removecharset" | "removeencoding" | "removehandler", Some(_)) => {
                for ending in endings(words) {
                    match name {
                        "removetype" => {
                            // An earlier type may have selected PHP.
                            self.handlers.insert(ending.clone(), Some(false));
                            self.types.insert(ending, None);
                        }
                        "removecharset" => drop(self.charsets.insert(ending, None)),
                        "removeencoding" => drop(self.encodings.insert(ending, None)),
                        _ => {
                            self.handled.insert(ending.clone(), false);
                            self.handlers.insert(ending, Some(false));
                        }
                    }
                }
            }
            (
                "forcetype" | "adddefaultcharset" | "sethandler" | "addtype" | "addcharset" | "addencoding"
                | "addhandler" | "removetype" | "removecharset" | "removeencoding" | "removehandler",
                _,
            ) => return Err("arguments are missing".to_owned()),
            _ => return Ok(false),
        }
        Ok(true)
    }

    pub(crate) fn merge(&mut self, later: &Self) {
        let extend = |ours: &mut BTreeMap<String, Option<String>>, theirs: &BTreeMap<String, Option<String>>| {
            ours.extend(theirs.iter().map(|(ending, value)| (ending.clone(), value.clone())));
        };
        extend(&mut self.types, &later.types);
        extend(&mut self.charsets, &later.charsets);
        extend(&mut self.encodings, &later.encodings);
        self.handlers.extend(later.handlers.iter().map(|(ending, value)| (ending.clone(), *value)));
        self.handled.extend(later.handled.iter().map(|(ending, value)| (ending.clone(), *value)));
        for (ours, theirs) in [(&mut self.force, &later.force), (&mut self.default_charset, &later.default_charset)] {
            if theirs.is_some() {
                ours.clone_from(theirs);
            }
        }
        self.handler = later.handler.or(self.handler);
    }

    /// `true` if a named handler applies to files with this name, existing or not.
    pub(crate) fn has_handler(&self, name: &[u8]) -> bool {
        let name = name.rsplit(|&b| b == b'/').next().unwrap_or(name);
        let text = String::from_utf8_lossy(name).to_ascii_lowercase();
        let named = text.split('.').skip(1).take(20).any(|ending| self.handled.get(ending) == Some(&true));
        named || matches!(self.handler, Some(Some(_)))
    }

    /// Properties of a file with this name. All its extensions count; for the same property, the last one wins.
    pub(crate) fn of(&self, name: &[u8]) -> FileType {
        let mut found = FileType { default_charset: self.default_charset.clone(), ..FileType::default() };
        let name = name.rsplit(|&b| b == b'/').next().unwrap_or(name);
        for ending in name.split(|&b| b == b'.').skip(1).take(20) {
            let Ok(ending) = std::str::from_utf8(ending) else { continue };
            let ending = ending.to_ascii_lowercase();
            if let Some(Some(value)) = self.types.get(&ending) {
                found.media_type = Some(value.clone());
            }
            if let Some(Some(value)) = self.charsets.get(&ending) {
                found.charset = Some(value.clone());
            }
            if let Some(Some(value)) = self.encodings.get(&ending) {
                found.encoding = Some(value.clone());
            }
            if let Some(Some(php)) = self.handlers.get(&ending) {
                found.php = Some(*php);
            }
        }
        if let Some(Some(forced)) = &self.force {
            let php = means_php(forced);
            found.php = Some(php);
            if !php {
                found.media_type = Some(forced.clone());
            }
        }
        if let Some(Some(php)) = self.handler {
            found.php = Some(php);
        }
        found
    }
}

fn endings(words: &[String]) -> impl Iterator<Item = String> {
    words.iter().map(|word| word.trim_start_matches('.').to_ascii_lowercase())
}
