//! Secrets that a page must not show: pages are copied into bug reports, and cookies grant access.

/// Parts of names whose values are secret.
const SECRET: &[&str] = &[
    "auth",
    "cookie",
    "token",
    "secret",
    "passw",
    "passwd",
    "pwd",
    "key",
    "session",
    "signature",
    "credential",
    "csrf",
    "xsrf",
];

/// Replaces a value.
pub(crate) const MASK: &str = "(hidden)";

/// `true` if a value with this name is secret.
pub(crate) fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    SECRET.iter().any(|part| name.contains(part)) || matches!(name.as_str(), "code" | "sid" | "phpsessid")
}

/// The value of a header without its secrets. For cookies, only the names are shown.
pub(crate) fn header(name: &str, value: &str) -> String {
    if name.eq_ignore_ascii_case("cookie") {
        let names = value.split(';').map(|cookie| cookie.split('=').next().unwrap_or_default().trim());
        return names.map(|name| format!("{name}={MASK}")).collect::<Vec<_>>().join("; ");
    }
    if is_secret(name) {
        return MASK.to_owned();
    }
    if name.eq_ignore_ascii_case("referer") { target(value) } else { value.to_owned() }
}

/// A request target without the values of secret query parameters.
pub(crate) fn target(target: &str) -> String {
    let Some((path, query)) = target.split_once('?') else { return target.to_owned() };
    let part = |part: &str| match part.split_once('=') {
        Some((name, _)) if is_secret(name) => format!("{name}={MASK}"),
        _ => part.to_owned(),
    };
    format!("{path}?{}", query.split('&').map(part).collect::<Vec<_>>().join("&"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_hidden() {
        assert_eq!(header("Authorization", "Bearer abc"), MASK);
        assert_eq!(header("X-Api-Key", "abc"), MASK);
        assert_eq!(header("Cookie", "a=1; PHPSESSID=2"), format!("a={MASK}; PHPSESSID={MASK}"));
        assert_eq!(header("Accept", "text/html"), "text/html");
        assert_eq!(target("/a?b=1&password=2&access_token=3"), format!("/a?b=1&password={MASK}&access_token={MASK}"));
        assert_eq!(header("Referer", "http://x/?token=1"), format!("http://x/?token={MASK}"));
    }
}
