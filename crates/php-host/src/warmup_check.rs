//! Checks whether a warm-up has left something in the snapshot that all visitors would get: a session, a cookie, a
//! token.
//!
//! Four visitors without cookies requested each path: two where no warm-up request had run, two on the snapshot. A
//! value is suspicious if it looks random, is the same for the two on the snapshot, and does not occur for the other
//! two. It is harmless if the other two also have equal values in its place, as with a hash that changes over time. If
//! the first two could not be requested, or got another status, only cookies and values named like tokens are checked:
//! an error page for a limit that the warm-up itself has reached has little in common with the page that it replaces.

use std::collections::HashSet;

/// Minimum length of text; shorter text is too easily equal by chance.
const MIN_TEXT_LEN: usize = 16;
/// Minimum number of different characters in text that looks random.
const VARIETY: usize = 8;
/// Number of bytes before a value that locate it in another response.
const CONTEXT: usize = 24;
/// Without a response to compare with, a token's name must be at most this many bytes away.
const NAME_WITHIN: usize = 80;
/// Names of anti-forgery tokens.
const TOKEN_NAMES: [&str; 5] = ["csrf", "_token", "xsrf", "authenticity", "verificationtoken"];
/// Maximum number of findings for a path.
const MAX_FINDINGS: usize = 3;

/// One visitor's response.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Response<'a> {
    /// 0: there was no response.
    pub(crate) status: u32,
    /// Lines `Name: value`.
    pub(crate) head: &'a [u8],
    /// Lines `name=value`: strings in the session.
    pub(crate) session: &'a [u8],
    pub(crate) body: &'a [u8],
}

impl<'a> Response<'a> {
    fn parts(&self) -> [(&'static str, &'a [u8]); 3] {
        [("the head", self.head), ("the session", self.session), ("the page", self.body)]
    }

    fn cookies(&self) -> Vec<(&'a [u8], &'a [u8])> {
        let lines = self.head.split(|b| *b == b'\n');
        lines
            .filter(|line| line.len() > 11 && line[..11].eq_ignore_ascii_case(b"set-cookie:"))
            .filter_map(|line| {
                let pair = line[11..].split(|b| *b == b';').next()?.trim_ascii();
                let middle = pair.iter().position(|b| *b == b'=')?;
                Some((&pair[..middle], &pair[middle + 1..]))
            })
            .collect()
    }

    fn cookie(&self, name: &[u8]) -> Option<&'a [u8]> {
        // For a browser the last one counts.
        self.cookies().into_iter().rev().find(|(own, _)| *own == name).map(|(_, value)| value)
    }
}

/// The four responses of one path.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Responses<'a> {
    /// Where no warm-up request had run.
    pub(crate) alone: [Response<'a>; 2],
    /// On the snapshot.
    pub(crate) restored: [Response<'a>; 2],
}

/// Values that two visitors on the snapshot wrongly share, masked, for the operator.
pub(crate) fn shared(responses: &Responses<'_>) -> Vec<String> {
    let [first, second] = &responses.restored;
    if first.status == 0 || second.status == 0 {
        return Vec::new();
    }
    // Both or neither: a single one does not show which values are a visitor's own.
    let comparable = responses.alone.iter().all(|response| response.status == first.status);
    let alone = comparable.then_some(&responses.alone);
    let mut found = Vec::new();
    let mut values = HashSet::new();
    for (name, value) in first.cookies() {
        if second.cookie(name) == Some(value) && is_own_cookie(name, value, alone) && values.insert(value) {
            found.push(format!("the cookie {} is {}", shown(name), masked(value)));
        }
    }
    for (index, (part, text)) in first.parts().into_iter().enumerate() {
        let others = all_words(second.parts()[index].1);
        let alone = alone.map(|alone| alone.map(|response| response.parts()[index].1));
        let known: HashSet<&[u8]> = alone.iter().flatten().flat_map(|text| all_words(text)).collect();
        for word in words(text) {
            let same = looks_random(word.text) && others.contains(word.text) && !known.contains(word.text);
            // A cookie's value may contain the word.
            if same && is_own_word(&word, text, alone) && !values.iter().any(|value| find(value, word.text).is_some()) {
                values.insert(word.text);
                found.push(format!("{part} has {} after `{}`", masked(word.text), shown(context(text, word.start))));
            }
        }
    }
    found.truncate(MAX_FINDINGS);
    found
}

/// `true` if a cookie that two visitors share should be different for each.
fn is_own_cookie(name: &[u8], value: &[u8], alone: Option<&[Response<'_>; 2]>) -> bool {
    let Some([a, b]) = alone else { return looks_random(value) };
    match (a.cookie(name), b.cookie(name)) {
        (Some(a), Some(b)) => a != b,
        (None, None) => looks_random(value),
        (Some(other), None) | (None, Some(other)) => other != value && looks_random(value),
    }
}

/// `true` if a word that two visitors share, and the other two lack, should be different for each.
fn is_own_word(word: &Word<'_>, text: &[u8], alone: Option<[&[u8]; 2]>) -> bool {
    let Some(alone) = alone else {
        let near = &text[word.start.saturating_sub(NAME_WITHIN)..word.start];
        let near = String::from_utf8_lossy(near).to_ascii_lowercase();
        return TOKEN_NAMES.iter().any(|name| near.contains(name));
    };
    let before = context(text, word.start);
    let in_place = alone.map(|text| {
        let at = find(text, before)? + before.len();
        words(&text[at..]).next().filter(|word| word.start == 0).map(|word| word.text)
    });
    !matches!(in_place, [Some(a), Some(b)] if a == b)
}

/// A run of characters that occur in tokens and ids.
struct Word<'a> {
    text: &'a [u8],
    start: usize,
}

fn words(text: &[u8]) -> impl Iterator<Item = Word<'_>> {
    let mut start = 0;
    text.split(|b| !(b.is_ascii_alphanumeric() || b"_-+".contains(b))).filter_map(move |word| {
        let own = start;
        start += word.len() + 1;
        (!word.is_empty()).then_some(Word { text: word, start: own })
    })
}

fn all_words(text: &[u8]) -> HashSet<&[u8]> {
    words(text).map(|word| word.text).collect()
}

fn looks_random(text: &[u8]) -> bool {
    let distinct: HashSet<u8> = text.iter().copied().collect();
    text.len() >= MIN_TEXT_LEN
        && distinct.len() >= VARIETY
        && (text.iter().any(u8::is_ascii_digit) || changes_case(text))
}

/// `true` if letters change case as often as random ones do, which no name's do: one Base64 token in two hundred has no
/// digit.
fn changes_case(text: &[u8]) -> bool {
    let changes = text.windows(2).filter(|pair| {
        pair.iter().all(u8::is_ascii_alphabetic) && pair[0].is_ascii_uppercase() != pair[1].is_ascii_uppercase()
    });
    changes.count() * 3 >= text.len()
}

fn context(text: &[u8], end: usize) -> &[u8] {
    &text[end.saturating_sub(CONTEXT)..end]
}

fn find(text: &[u8], what: &[u8]) -> Option<usize> {
    if what.is_empty() {
        return Some(0);
    }
    text.windows(what.len()).position(|window| window == what)
}

fn shown(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    text.chars().map(|c| if c.is_control() || c == '`' { ' ' } else { c }).collect::<String>().trim().to_owned()
}

/// Masks a value: secrets must not appear in the log.
fn masked(value: &[u8]) -> String {
    let start: String = shown(value).chars().take(4).collect();
    format!("\"{start}…\" ({} characters) for both of two visitors", value.len())
}

#[cfg(test)]
#[path = "warmup_check_tests.rs"]
mod tests;
