//! Patterns of file names, in the syntax of `static.never_send`.

use howdah_rules::pattern::Glob;

/// A pattern of file names: `*` matches any text, everything else is literal, ignoring case. A leading `!` exempts
/// files from the other patterns of the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamePattern {
    text: String,
    exempts: bool,
    glob: Glob,
}

impl NamePattern {
    /// Parses a pattern; `None` if it cannot match any name.
    pub fn new(pattern: &str) -> Option<Self> {
        let (name, exempts) = pattern.strip_prefix('!').map_or((pattern, false), |name| (name, true));
        let is_name = !name.is_empty() && !name.contains('/');
        is_name.then(|| Self { text: pattern.to_owned(), exempts, glob: Glob::new(name) })
    }

    /// `true` if a list matches this file: some pattern matches, and none exempts it.
    pub fn any(list: &[Self], name: &[u8]) -> bool {
        let is_named =
            |exempts| list.iter().any(|pattern| pattern.exempts == exempts && pattern.glob.matches_any_case(name));
        is_named(false) && !is_named(true)
    }
}

impl std::fmt::Display for NamePattern {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_names_files_in_any_case_but_those_it_exempts() {
        let list: Vec<_> = ["*.php.*", "*.inc", "!*.html"].iter().map(|text| NamePattern::new(text).unwrap()).collect();
        for (name, named) in [
            ("x.php.bak", true),
            ("X.PHP.Bak", true),
            ("a.INC", true),
            ("x.php.html", false),
            ("x.php.HTML", false),
            ("x.html", false),
            ("inc", false),
            ("x.php", false),
        ] {
            assert_eq!(NamePattern::any(&list, name.as_bytes()), named, "{name}");
        }
        for bad in ["", "!", "a/b", "!/"] {
            assert_eq!(NamePattern::new(bad), None, "{bad}");
        }
    }
}
