//! Patterns of request paths, as routes name them.

/// A pattern of request paths: `*` stands for any text, slashes included; everything else for itself.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct PathPattern(String);

impl PathPattern {
    /// A pattern; `None` if it does not start with a slash.
    #[must_use]
    pub fn new(pattern: &str) -> Option<Self> {
        pattern.starts_with('/').then(|| Self(pattern.to_owned()))
    }

    /// The pattern's text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether a request path fits.
    #[must_use]
    pub fn matches(&self, path: &[u8]) -> bool {
        let pattern = self.0.as_bytes();
        let (mut at, mut from) = (0, 0);
        let mut star: Option<(usize, usize)> = None;
        while from < path.len() {
            if pattern.get(at) == Some(&b'*') {
                star = Some((at + 1, from));
                at += 1;
            } else if pattern.get(at) == path.get(from) {
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_stand_for_any_text() {
        for (pattern, path, fits) in [
            ("/", "/", true),
            ("/", "/a", false),
            ("/*", "/", true),
            ("/api/*", "/api/", true),
            ("/api/*", "/api/a/b.php", true),
            ("/api/*", "/api", false),
            ("/*.php", "/a/b.php", true),
            ("/*.php", "/a.php/b", false),
            ("/a*b*c", "/axxbxbyc", true),
            ("/a*b*c", "/axxbxby", false),
            ("/a**", "/a", true),
            ("/a?", "/ab", false),
        ] {
            let pattern = PathPattern::new(pattern).unwrap();
            assert_eq!(pattern.matches(path.as_bytes()), fits, "{pattern:?} {path}");
        }
        assert_eq!(PathPattern::new("api/*"), None);
    }

    #[test]
    fn many_stars_do_not_take_exponential_time() {
        let pattern = PathPattern::new(&format!("/{}b", "a*".repeat(50))).unwrap();
        assert!(!pattern.matches(format!("/{}", "a".repeat(5000)).as_bytes()));
    }
}
