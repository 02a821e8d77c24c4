//! What of a response changes by itself. Classic mode is asked twice for the same thing: what differs between these two
//! (times, nonces, tokens, numbers that count) says nothing about a mode, and what is the same must be the same in every mode.

use crate::client::Response;

/// Fields that are the server's or follow from the body.
const NOT_COMPARED: &[&str] = &[
    "date",
    "content-length",
    "connection",
    "keep-alive",
    "transfer-encoding",
    "etag",
    "last-modified",
    "server",
    "age",
];

/// The shortest text that is taken for drawn by lot: a token, a session's identity.
const TOKEN: usize = 12;

/// How far a difference is shown.
const SHOWN: usize = 60;

/// A difference to classic mode.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Difference {
    /// `status`, `header`, `body` or `token`.
    pub(crate) what: String,
    pub(crate) classic: String,
    pub(crate) here: String,
}

/// A response in words, such that two can be compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Words {
    status: u16,
    headers: Vec<String>,
    body: Vec<String>,
}

impl Words {
    /// `port` is that of the server: addresses in pages may have it.
    pub(crate) fn of(response: &Response, port: u16) -> Self {
        let mut headers: Vec<String> = response
            .headers
            .iter()
            .filter(|(name, _)| !NOT_COMPARED.contains(&name.as_str()))
            .map(|(name, value)| format!("{name}: {value}"))
            .collect();
        headers.sort();
        let body = match std::str::from_utf8(&response.body) {
            Ok(text) => words(text, port),
            Err(_) => vec![format!("{} bytes that are no text", response.body.len())],
        };
        let headers = headers.iter().flat_map(|line| words(line, port).into_iter().chain(["\n".to_owned()])).collect();
        Self { status: response.status, headers, body }
    }
}

/// Letters and digits that stand together are a word, everything else stands for itself.
fn words(text: &str, port: u16) -> Vec<String> {
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
    let port = port.to_string();
    words.iter_mut().filter(|word| **word == port).for_each(|word| "PORT".clone_into(word));
    words
}

/// What several responses of classic mode to the same request have in common.
#[derive(Debug, Clone)]
pub(crate) struct Expected {
    samples: Vec<Words>,
}

impl Expected {
    pub(crate) fn of(samples: Vec<Words>) -> Self {
        Self { samples }
    }

    /// How this response differs from what classic mode says, if it does.
    pub(crate) fn difference(&self, other: &Words) -> Option<Difference> {
        let first = self.samples.first()?;
        if self.samples.iter().all(|sample| sample.status != other.status) {
            return Some(Difference {
                what: "status".to_owned(),
                classic: first.status.to_string(),
                here: format!("{}{}", other.status, beginning(&other.body)),
            });
        }
        let part = |what: &str, of: fn(&Words) -> &Vec<String>| {
            let samples: Vec<&[String]> = self.samples.iter().map(|sample| of(sample).as_slice()).collect();
            difference(&samples, of(other)).map(|(classic, here)| Difference { what: what.to_owned(), classic, here })
        };
        part("header", |words| &words.headers).or_else(|| part("body", |words| &words.body))
    }

    /// A token that two visitors share here although classic mode gives each their own.
    pub(crate) fn shared(&self, mine: &Words, others: &Self, other: &Words) -> Option<Difference> {
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
                *word == of(other)[at] && looks_drawn(word) && is_new_each_time
            })
        };
        let found = part(|words| &words.headers).map(|at| (&mine.headers, at));
        let (list, at) = found.or_else(|| part(|words| &words.body).map(|at| (&mine.body, at)))?;
        Some(Difference {
            what: "token".to_owned(),
            classic: "another one for each visitor".to_owned(),
            here: format!("{}[a token of {} characters] for two visitors", before(list, at), list[at].chars().count()),
        })
    }
}

fn looks_drawn(word: &str) -> bool {
    word.len() >= TOKEN
        && word.bytes().any(|byte| byte.is_ascii_digit())
        && word.bytes().any(|byte| byte.is_ascii_alphabetic())
}

/// The first place at which a list of words is not what all samples agree on.
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

/// Where not even the number of words is the same: each line that all samples have must be there, and nothing may be there
/// whose like no sample has.
fn difference_of_lines(samples: &[&[String]], other: &[String]) -> Option<(String, String)> {
    let lines = |list: &[String]| list.concat().lines().map(without_digits).collect::<Vec<_>>();
    let samples: Vec<Vec<String>> = samples.iter().map(|sample| lines(sample)).collect();
    let other = lines(other);
    let missing =
        samples.first()?.iter().find(|line| samples.iter().all(|s| s.contains(line)) && !other.contains(line));
    if let Some(line) = missing {
        return Some((cut(line), "(missing)".to_owned()));
    }
    // A line that differs from one sample to the next may differ here too.
    let varied = samples.iter().any(|sample| sample.iter().any(|line| !samples.iter().all(|s| s.contains(line))));
    let added = other.iter().find(|line| !samples.iter().any(|sample| sample.contains(line)));
    added.filter(|_| !varied).map(|line| ("(nothing)".to_owned(), cut(line)))
}

fn without_digits(line: &str) -> String {
    line.chars().map(|letter| if letter.is_ascii_digit() { '0' } else { letter }).collect()
}

fn cut(text: &str) -> String {
    let text = text.trim();
    match text.char_indices().nth(SHOWN * 2) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

/// What stands before a word on its line.
fn before(list: &[String], at: usize) -> String {
    let text = list[at.saturating_sub(24)..at].concat();
    let text = text.rsplit('\n').next().unwrap_or_default();
    let skipped = text.chars().count().saturating_sub(SHOWN);
    text.chars().skip(skipped).collect()
}

fn around(list: &[String], at: usize) -> String {
    let rest = list.get(at..list.len().min(at + 24)).map(<[String]>::concat).unwrap_or_default();
    let rest = rest.strip_prefix('\n').unwrap_or(&rest).split('\n').next().unwrap_or_default();
    let rest: String = rest.chars().take(SHOWN).collect();
    let before = before(list, at.min(list.len()));
    format!("{}{rest}", before.chars().rev().take(SHOWN / 2).collect::<String>().chars().rev().collect::<String>())
}

fn beginning(words: &[String]) -> String {
    let text = words.iter().take(60).map(String::as_str).collect::<String>().replace('\n', " ");
    if text.trim().is_empty() { String::new() } else { format!(": {}", cut(&text)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(body: &str) -> Words {
        Words::of(&Response { status: 200, body: body.into(), ..Response::default() }, 8080)
    }

    #[test]
    fn what_changes_by_itself_is_no_difference() {
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
    fn lists_that_change_their_length_are_compared_by_lines() {
        let expected = Expected::of(vec![page("top\nnews 1\nend"), page("top\nnews 1\nnews 2, by x\nend")]);
        assert_eq!(expected.difference(&page("top\nend\nnews 7\n")), None);
        assert!(expected.difference(&page("news 7\nend")).is_some());
    }

    #[test]
    fn a_token_of_two_visitors_is_seen() {
        let mine = Expected::of(vec![page("t=aaaa1111bbbb2222"), page("t=aaaa1111bbbb3333")]);
        let others = Expected::of(vec![page("t=aaaa1111bbbb4444"), page("t=aaaa1111bbbb5555")]);
        let same = page("t=cccc1111bbbb6666");
        let found = mine.shared(&same, &others, &same).unwrap();
        assert_eq!(found.what, "token");
        assert!(!found.here.contains("cccc"), "tokens are not shown: {found:?}");
        assert_eq!(mine.shared(&same, &others, &page("t=dddd1111bbbb6666")), None);
    }
}
