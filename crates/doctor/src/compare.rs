//! Compares responses, ignoring parts that vary anyway. Classic mode is requested twice: parts that differ between the
//! two responses (times, nonces, tokens, counters) are not compared, and all other parts must be the same in every
//! mode.

use std::fmt;

/// Header fields that the server sets or that depend on the body.
pub(crate) const NOT_COMPARED: &[&str] = &[
    "date",
    "content-length",
    "connection",
    "keep-alive",
    "transfer-encoding",
    "etag",
    "last-modified",
    "server",
    "age",
    // Drupal: hit or miss of its caches.
    "x-drupal-cache",
    "x-drupal-dynamic-cache",
];

/// Tolerance for lifetimes of cookies, in seconds: code that sets a cookie reads the clock twice, and a second may pass
/// in between.
const LIFETIME: u64 = 60;

/// Minimum length of a text that counts as random, such as a token or a session ID.
const TOKEN: usize = 12;

/// Maximum length of a displayed difference.
const MAX_SHOWN_LEN: usize = 60;

/// A difference from classic mode.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// `status`, `header`, `body` or `token`.
    pub what: String,
    pub classic: String,
    pub here: String,
}

impl fmt::Display for Difference {
    /// Text for logs. Tokens are hidden, because they may be a session's.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (here, classic) = (without_tokens(&self.here), without_tokens(&self.classic));
        write!(f, "{}: \"{here}\", in classic mode \"{classic}\"", self.what)
    }
}

/// Hides tokens in a text.
pub(crate) fn without_tokens(text: &str) -> String {
    let hide = |word: String| if looks_random(&word) { "[a token]".to_owned() } else { word };
    words(text, None).into_iter().map(hide).collect()
}

/// A response split into words for comparison.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Words {
    status: u16,
    headers: Vec<String>,
    body: Vec<String>,
}

impl Words {
    /// Splits a response. Names in `fields` are lower case. `port` is the server's, if the compared servers have
    /// different ports: pages may contain addresses with it.
    pub fn of(status: u16, fields: &[(String, String)], body: &[u8], port: Option<u16>) -> Self {
        let mut headers: Vec<String> = fields
            .iter()
            .filter(|(name, _)| !NOT_COMPARED.contains(&name.as_str()))
            .map(|(name, value)| match name.as_str() {
                "set-cookie" => format!("{name}: {}", cookie(value)),
                _ => format!("{name}: {value}"),
            })
            .collect();
        headers.sort();
        let body = match std::str::from_utf8(body) {
            Ok(text) => words(text, port),
            Err(_) => vec![format!("{} bytes that are not text", body.len())],
        };
        let headers = headers.iter().flat_map(|line| words(line, port).into_iter().chain(["\n".to_owned()])).collect();
        Self { status, headers, body }
    }
}

/// A cookie with its lifetime rounded, so that small differences in time do not count.
fn cookie(value: &str) -> String {
    let name = |attribute: &str| attribute.split('=').next().unwrap_or_default().trim().to_ascii_lowercase();
    let lifetime = |attribute: &str| match attribute.split_once('=') {
        Some((_, seconds)) if name(attribute) == "max-age" => seconds.trim().parse::<u64>().ok(),
        _ => None,
    };
    let lasts = value.split(';').skip(1).any(|attribute| lifetime(attribute).is_some());
    let told = value.split(';').enumerate().filter_map(|(at, attribute)| match lifetime(attribute) {
        _ if at == 0 => Some(attribute.to_owned()),
        Some(seconds) => Some(format!(" Max-Age={}", seconds.saturating_add(LIFETIME / 2) / LIFETIME * LIFETIME)),
        None if lasts && name(attribute) == "expires" => None,
        None => Some(attribute.to_owned()),
    });
    told.collect::<Vec<_>>().join(";")
}

/// Splits a text: adjacent letters and digits form a word, every other character is its own word.
fn words(text: &str, port: Option<u16>) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut in_word = false;
    for letter in text.chars() {
        let belongs = letter.is_alphanumeric() || letter == '_';
        match words.last_mut() {
            Some(last) if belongs && in_word => last.push(letter),
            _ => words.push(letter.to_string()),
        }
        in_word = belongs;
    }
    if let Some(port) = port.map(|port| port.to_string()) {
        words.iter_mut().filter(|word| **word == port).for_each(|word| "PORT".clone_into(word));
    }
    joined(words)
}

/// Characters of base64 besides letters and digits, and the backslash that JSON puts before a slash. A token with these
/// characters counts as one word; otherwise the number of words would change with the token.
const OF_BASE64: &[&str] = &["+", "/", "=", "-", "\\"];

fn joined(words: Vec<String>) -> Vec<String> {
    let is_part = |word: &&String| {
        OF_BASE64.contains(&word.as_str()) || word.starts_with(|first: char| first.is_alphanumeric() || first == '_')
    };
    let mut all = Vec::with_capacity(words.len());
    let mut rest = words.as_slice();
    while let Some(first) = rest.first() {
        let length = rest.iter().take_while(is_part).count();
        let (run, after) = rest.split_at(length.max(1));
        match run.concat() {
            text if length > 1 && is_mixed(&text) => all.push(text),
            _ if length > 1 => all.extend_from_slice(run),
            _ => all.push(first.clone()),
        }
        rest = after;
    }
    all
}

/// Common parts of several responses of classic mode to the same request.
#[derive(Debug, Clone)]
pub struct Expected {
    samples: Vec<Words>,
}

impl Expected {
    pub fn of(samples: Vec<Words>) -> Self {
        Self { samples }
    }

    /// Returns the first difference of this response from classic mode's, if any.
    pub fn difference(&self, other: &Words) -> Option<Difference> {
        let first = self.samples.first()?;
        if self.samples.iter().all(|sample| sample.status != other.status) {
            return Some(Difference {
                what: "status".to_owned(),
                classic: first.status.to_string(),
                here: format!("{}{}", other.status, beginning(&other.body)),
            });
        }
        // Before fields, because they follow from the body: an empty response is the more useful finding.
        if other.body.is_empty() && self.samples.iter().all(|sample| !sample.body.is_empty()) {
            let (classic, here) = ("a page".to_owned(), "nothing at all".to_owned());
            return Some(Difference { what: "body".to_owned(), classic, here });
        }
        let part = |what: &str, of: fn(&Words) -> &Vec<String>| {
            let samples: Vec<&[String]> = self.samples.iter().map(|sample| of(sample).as_slice()).collect();
            difference(&samples, of(other)).map(|(classic, here)| Difference { what: what.to_owned(), classic, here })
        };
        part("header", |words| &words.headers).or_else(|| part("body", |words| &words.body))
    }

    /// Returns a token that two visitors share although classic mode gives each their own.
    pub fn shared(&self, mine: &Words, others: &Self, other: &Words) -> Option<Difference> {
        let part = |of: fn(&Words) -> &Vec<String>| {
            let lists: Vec<&Vec<String>> =
                self.samples.iter().chain(&others.samples).chain([mine, other]).map(of).collect();
            let length = lists.first()?.len();
            if lists.iter().any(|list| list.len() != length) {
                return None;
            }
            let classic = &lists[..lists.len() - 2];
            (0..length).find(|&at| {
                let word = &of(mine)[at];
                let is_new_each_time =
                    (1..classic.len()).all(|n| !classic[..n].iter().any(|list| list[at] == classic[n][at]));
                *word == of(other)[at] && looks_random(word) && is_new_each_time
            })
        };
        let found = part(|words| &words.headers).map(|at| (&mine.headers, at));
        let (list, at) = found.or_else(|| part(|words| &words.body).map(|at| (&mine.body, at)))?;
        Some(Difference {
            what: "token".to_owned(),
            classic: "different for each visitor".to_owned(),
            here: format!("{}[a token of {} characters] for two visitors", before(list, at), list[at].chars().count()),
        })
    }
}

/// `true` for long texts that mix cases, or letters and digits, unlike words in human text.
fn is_mixed(text: &str) -> bool {
    let has = |kind: fn(&u8) -> bool| text.bytes().any(|byte| kind(&byte));
    let cases = has(u8::is_ascii_uppercase) && has(u8::is_ascii_lowercase);
    text.len() >= TOKEN && (cases || (has(u8::is_ascii_digit) && has(u8::is_ascii_alphabetic)))
}

fn looks_random(word: &str) -> bool {
    word.len() >= TOKEN
        && word.bytes().any(|byte| byte.is_ascii_digit())
        && word.bytes().any(|byte| byte.is_ascii_alphabetic())
}

/// Returns the first position where `other` differs from all samples, although these agree.
fn difference(samples: &[&[String]], other: &[String]) -> Option<(String, String)> {
    let first = *samples.first()?;
    if samples.contains(&other) {
        return None;
    }
    if samples.iter().all(|sample| sample.len() == first.len()) {
        if other.len() == first.len() {
            let differs =
                |at: &usize| other[*at] != first[*at] && samples.iter().all(|sample| sample[*at] == first[*at]);
            return (0..first.len()).find(differs).map(|at| (around(first, at), around(other, at)));
        }
        let at = first.iter().zip(other).position(|(one, two)| one != two && samples.iter().all(|s| s.contains(one)));
        let at = at.unwrap_or(first.len().min(other.len()));
        return Some((around(first, at), around(other, at)));
    }
    difference_of_lines(samples, other)
}

/// Compares line by line, for samples with different numbers of words. Each line that all samples have must be there. A
/// line without a match in any sample is a difference.
fn difference_of_lines(samples: &[&[String]], other: &[String]) -> Option<(String, String)> {
    let lines = |list: &[String]| list.concat().lines().map(without_digits).collect::<Vec<_>>();
    let samples: Vec<Vec<String>> = samples.iter().map(|sample| lines(sample)).collect();
    let other = lines(other);
    let missing =
        samples.first()?.iter().find(|line| samples.iter().all(|s| s.contains(line)) && !other.contains(line));
    if let Some(line) = missing {
        return Some((cut(line), "(missing)".to_owned()));
    }
    // If lines vary between samples, additional lines may too.
    let varied = samples.iter().any(|sample| sample.iter().any(|line| !samples.iter().all(|s| s.contains(line))));
    let added = other.iter().find(|line| !samples.iter().any(|sample| sample.contains(line)));
    added.filter(|_| !varied).map(|line| ("(nothing)".to_owned(), cut(line)))
}

fn without_digits(line: &str) -> String {
    line.chars().map(|letter| if letter.is_ascii_digit() { '0' } else { letter }).collect()
}

fn cut(text: &str) -> String {
    let text = text.trim();
    match text.char_indices().nth(MAX_SHOWN_LEN * 2) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

/// Text before a word, on the same line.
fn before(list: &[String], at: usize) -> String {
    let text = list[at.saturating_sub(24)..at].concat();
    let text = text.rsplit('\n').next().unwrap_or_default();
    let skipped = text.chars().count().saturating_sub(MAX_SHOWN_LEN);
    text.chars().skip(skipped).collect()
}

fn around(list: &[String], at: usize) -> String {
    let rest = list.get(at..list.len().min(at + 24)).map(<[String]>::concat).unwrap_or_default();
    let rest = rest.strip_prefix('\n').unwrap_or(&rest).split('\n').next().unwrap_or_default();
    let rest: String = rest.chars().take(MAX_SHOWN_LEN).collect();
    let before = before(list, at.min(list.len()));
    format!(
        "{}{rest}",
        before.chars().rev().take(MAX_SHOWN_LEN / 2).collect::<String>().chars().rev().collect::<String>()
    )
}

fn beginning(words: &[String]) -> String {
    let text = words.iter().take(60).map(String::as_str).collect::<String>().replace('\n', " ");
    if text.trim().is_empty() { String::new() } else { format!(": {}", cut(&text)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(body: &str) -> Words {
        Words::of(200, &[], body.as_bytes(), Some(8080))
    }

    #[test]
    fn values_that_always_change_are_no_difference() {
        let expected = Expected::of(vec![
            page("at 12:00:01 by port 8080, token a1b2"),
            page("at 12:00:02 by port 8080, token c3d4"),
        ]);
        assert_eq!(expected.difference(&page("at 12:00:59 by port 8080, token zzzz")), None);
        let found = expected.difference(&page("at 12:30:01 by port 8080, token a1b2")).unwrap();
        assert_eq!(found.what, "body");
    }

    #[test]
    fn a_word_more_is_a_difference() {
        let expected = Expected::of(vec![page("your cart: 1"), page("your cart: 1")]);
        let found = expected.difference(&page("your cart: 1, 2")).unwrap();
        assert_eq!((found.classic.as_str(), found.here.as_str()), ("your cart: 1", "your cart: 1, 2"));
    }

    #[test]
    fn cookie_times_that_differ_by_a_second_are_no_difference() {
        let with = |cookie: &str| Words::of(200, &[("set-cookie".to_owned(), cookie.to_owned())], b"", None);
        let expected = Expected::of(vec![with("a=b; expires=Thu, 26 Nov 2026 21:54:47 GMT; Max-Age=7200; path=/"); 2]);
        let late = with("a=b; expires=Thu, 26 Nov 2026 21:54:48 GMT; Max-Age=7199; path=/");
        assert_eq!(expected.difference(&late), None);
        for other in ["a=b; Max-Age=3600; path=/", "a=b; path=/", "a=b; Max-Age=7200; path=/x", "max-age=1; path=/"] {
            assert!(expected.difference(&with(other)).is_some(), "{other}");
        }
        let gone = Expected::of(vec![with("a=deleted; expires=Thu, 01-Jan-1970 00:00:01 GMT; Max-Age=0")]);
        assert!(gone.difference(&with("a=deleted; expires=Thu, 01-Jan-1970 00:00:01 GMT; Max-Age=7200")).is_some());
        assert_eq!(with("a=b; Max-Age=18446744073709551615"), with("a=b; Max-Age=18446744073709551614"));
    }

    #[test]
    fn an_empty_page_is_reported_as_such() {
        let html = [("content-type".to_owned(), "text/html".to_owned())];
        let expected = Expected::of(vec![page("hello")]);
        let found = expected.difference(&Words::of(200, &html, b"", None)).unwrap();
        assert_eq!((found.what.as_str(), found.here.as_str()), ("body", "nothing at all"));
        assert_eq!(Expected::of(vec![page("")]).difference(&page("")), None);
    }

    #[test]
    fn logs_get_no_tokens() {
        let expected = Expected::of(vec![page("hello"), page("hello")]);
        let found = expected.difference(&page("hello session a1b2c3d4e5f6a7b8")).unwrap();
        assert_eq!(found.to_string(), "body: \"hello session [a token]\", in classic mode \"hello\"");
    }

    #[test]
    fn a_base64_token_is_one_word() {
        let expected =
            Expected::of(vec![page("<p nonce=\"aB3dE5fG7hI9+/==\">"), page("<p nonce=\"aB3d+5fG7hI9k/==\">")]);
        assert_eq!(expected.difference(&page("<p nonce=\"aB3dE5fG7hI9abc=\">")), None);
        assert_eq!(expected.difference(&page("<p nonce=\"aBcdEffG+h+Iabc=\">")), None, "without a digit");
        assert!(expected.difference(&page("<p nonce=\"aB3dE5fG7hI9abc=\"> more")).is_some());
        assert_eq!(page("http://a:8080/b1/c/d/e"), Words::of(200, &[], b"http://a:81/b1/c/d/e", Some(81)));
    }

    #[test]
    fn lists_that_change_their_length_are_compared_by_lines() {
        let expected = Expected::of(vec![page("top\nnews 1\nend"), page("top\nnews 1\nnews 2, by x\nend")]);
        assert_eq!(expected.difference(&page("top\nend\nnews 7\n")), None);
        assert!(expected.difference(&page("news 7\nend")).is_some());
    }

    #[test]
    fn a_token_shared_by_two_visitors_is_found() {
        let mine = Expected::of(vec![page("t=aaaa1111bbbb2222"), page("t=aaaa1111bbbb3333")]);
        let others = Expected::of(vec![page("t=aaaa1111bbbb4444"), page("t=aaaa1111bbbb5555")]);
        let same = page("t=cccc1111bbbb6666");
        let found = mine.shared(&same, &others, &same).unwrap();
        assert_eq!(found.what, "token");
        assert!(!found.here.contains("cccc"), "tokens are not shown: {found:?}");
        assert_eq!(mine.shared(&same, &others, &page("t=dddd1111bbbb6666")), None);
    }
}
