//! Patterns of file names, as `static.never_send` has them.

/// A pattern of file names: `*` stands for any text, everything else for itself in whatever case. With a `!` before it, it
/// exempts what other patterns of its list name.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct NamePattern(String);

impl NamePattern {
    /// A pattern; `None` if it can fit no name.
    #[must_use]
    pub fn new(pattern: &str) -> Option<Self> {
        let text = pattern.strip_prefix('!').unwrap_or(pattern);
        (!text.is_empty() && !text.contains('/')).then(|| Self(pattern.to_owned()))
    }

    /// The pattern's text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// `true` if a list names this file: some pattern matches, and none exempts it.
    #[must_use]
    pub fn any(list: &[Self], name: &[u8]) -> bool {
        let fits = |text: &str| fits(text.as_bytes(), name);
        let (mut named, mut exempt) = (false, false);
        for pattern in list {
            match pattern.0.strip_prefix('!') {
                Some(text) => exempt = exempt || fits(text),
                None => named = named || fits(&pattern.0),
            }
        }
        named && !exempt
    }
}

/// `true` if a text matches a pattern with stars, in any case.
fn fits(pattern: &[u8], text: &[u8]) -> bool {
    let (mut at, mut from) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while from < text.len() {
        if pattern.get(at) == Some(&b'*') {
            star = Some((at + 1, from));
            at += 1;
        } else if pattern.get(at).is_some_and(|byte| byte.eq_ignore_ascii_case(&text[from])) {
            at += 1;
            from += 1;
        } else if let Some((after, begun)) = star {
            // The last star takes one byte more; earlier stars never need to be tried again.
            star = Some((after, begun + 1));
            at = after;
            from = begun + 1;
        } else {
            return false;
        }
    }
    pattern[at..].iter().all(|&byte| byte == b'*')
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

    #[test]
    fn stars_stand_for_any_text() {
        for (pattern, name, fits) in [
            ("*", "a", true),
            ("a", "ab", false),
            ("a*b*c", "axxbxbyc", true),
            ("a*b*c", "axxbxby", false),
            ("a**", "a", true),
            ("a?", "ab", false),
        ] {
            let pattern = NamePattern::new(pattern).unwrap();
            assert_eq!(NamePattern::any(std::slice::from_ref(&pattern), name.as_bytes()), fits, "{pattern:?} {name}");
        }
    }

    #[test]
    fn many_stars_do_not_take_exponential_time() {
        let pattern = NamePattern::new(&format!("{}b", "a*".repeat(50))).unwrap();
        assert!(!NamePattern::any(&[pattern], "a".repeat(5000).as_bytes()));
    }
}
