//! Hides secret settings, and secrets within other values: the output of `howdah check` is often sent to other people.

use std::borrow::Cow;
use std::fmt;

/// Shown instead of a secret.
pub(crate) const HIDDEN: &str = "(hidden)";

/// Parts of names that mark a variable or PHP setting as secret.
const NAMES: &[&str] =
    &["PASSWORD", "PASSWD", "PASSPHRASE", "PASS", "PWD", "SECRET", "TOKEN", "KEY", "CREDENTIAL", "CREDENTIALS", "DSN"];

/// The value of a secret setting. Code that needs it must ask for it explicitly, so it does not leak into messages.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    pub fn expose(&self) -> &str {
        &self.0
    }

    pub(crate) fn is_none(&self) -> bool {
        self.0.is_empty()
    }
}

impl From<&str> for Secret {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(HIDDEN)
    }
}

/// The value of a variable for output.
pub(crate) fn of_variable<'a>(name: &str, value: &'a str) -> Cow<'a, str> {
    let is_secret =
        || name.split(|c: char| !c.is_ascii_alphanumeric()).any(|word| NAMES.contains(&&*word.to_ascii_uppercase()));
    if !value.is_empty() && is_secret() { Cow::Borrowed(HIDDEN) } else { without_password(value) }
}

/// Removes passwords from the addresses in a text (`scheme://user:password@host`), including Redis' `?auth=`.
pub(crate) fn without_password(text: &str) -> Cow<'_, str> {
    let (mut shown, mut from) = (String::new(), 0);
    let mut hide = |secret: std::ops::Range<usize>| {
        if secret.start >= from && !secret.is_empty() {
            shown.push_str(&text[from..secret.start]);
            shown.push_str(HIDDEN);
            from = secret.end;
        }
    };
    let ends =
        |rest: &str, marks: &[char]| rest.find(|c: char| marks.contains(&c) || c.is_whitespace()).unwrap_or(rest.len());
    for (at, mark) in text.match_indices("://") {
        let start = at + mark.len();
        let authority = &text[start..start + ends(&text[start..], &['/', '?', '#', '"', ','])];
        if let Some((user, _)) = authority.rsplit_once('@')
            && let Some((name, password)) = user.split_once(':')
        {
            let at = start + name.len() + 1;
            hide(at..at + password.len());
        }
        let rest = start + authority.len();
        let query = &text[rest..rest + ends(&text[rest..], &['"', ','])];
        for (at, mark) in query.match_indices("auth=") {
            let at = rest + at + mark.len();
            hide(at..at + ends(&text[at..], &['&', '#', '"', ',']));
        }
    }
    if from == 0 { Cow::Borrowed(text) } else { Cow::Owned(shown + &text[from..]) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_in_nothing_that_is_printed() {
        let secret = Secret::from("abc");
        assert_eq!(secret.expose(), "abc");
        assert!(!format!("{:?}", Some(&secret)).contains("abc"));
    }

    #[test]
    fn variables_are_secret_by_their_names() {
        for name in ["DB_PASSWORD", "APP_KEY", "aws_secret_access_key", "TOKEN", "mysqli.default_pw_pass", "SENTRY_DSN"]
        {
            assert_eq!(of_variable(name, "x"), HIDDEN, "{name}");
        }
        for name in ["APP_ENV", "memory_limit", "KEYBOARD", "opcache.file_cache", "HTTP_HOST"] {
            assert_eq!(of_variable(name, "x"), "x", "{name}");
        }
        assert_eq!(of_variable("APP_KEY", ""), "");
    }

    #[test]
    fn passwords_in_addresses_are_not_shown() {
        for (text, shown) in [
            ("mysql://app:s3:c@db/app?x=1", "mysql://app:(hidden)@db/app?x=1"),
            (
                "tcp://a:6379?auth=s3c&db=1, tcp://b:6379?auth=x",
                "tcp://a:6379?auth=(hidden)&db=1, tcp://b:6379?auth=(hidden)",
            ),
            ("http://127.0.0.1:9000/may?to=a@b", "http://127.0.0.1:9000/may?to=a@b"),
            ("http://user@host/", "http://user@host/"),
            ("a b://:p@h c", "a b://:(hidden)@h c"),
            ("plain", "plain"),
        ] {
            assert_eq!(without_password(text), shown);
        }
    }
}
