//! Regular expressions of rules that importers write.

/// Escapes a path for a regular expression.
pub(super) fn escaped(path: &str) -> String {
    path.chars().fold(String::new(), |mut all, c| {
        if !c.is_alphanumeric() && !matches!(c, '/' | '-' | '_' | '~') {
            all.push('\\');
        }
        all.push(c);
        all
    })
}
