//! Common parts of the comparisons of a mode with classic mode: an order that can be repeated, answers as they are
//! compared, and the first place in which two differ.

use howdah_tests::{Response, Site, repetitions};
use std::fmt::Write as _;
use std::time::{SystemTime, UNIX_EPOCH};

/// A small generator of its own, so that an order can be repeated.
pub(crate) struct Order(u64);

impl Order {
    /// The order that `HOWDAH_DIFFERENCE_SEED` says: the one of a number, or with `any` another one each time, which the
    /// log then names. Without it always the same one: a run of all tests that fails can be repeated.
    pub(crate) fn new() -> Self {
        let seed = match std::env::var("HOWDAH_DIFFERENCE_SEED").as_deref() {
            Err(_) => 415_084_297,
            Ok("any") => {
                let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos();
                u64::try_from(now % 1_000_000_007).unwrap()
            }
            Ok(chosen) => chosen.parse().unwrap(),
        };
        eprintln!("HOWDAH_DIFFERENCE_SEED={seed}");
        Self(seed * 2 + 1)
    }

    /// An order that follows from another one's number.
    pub(crate) fn of(seed: u64) -> Self {
        Self(seed * 2 + 1)
    }

    pub(crate) fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).unwrap() % n
    }
}

/// Number of random requests of a comparison.
pub(crate) fn requests(otherwise: u64) -> usize {
    usize::try_from(repetitions("HOWDAH_DIFFERENCE_REQUESTS", otherwise, 10)).unwrap()
}

/// The keys of the array that a script returns, before and behind the one named `ENDS`.
pub(crate) fn names(script: &str) -> (Vec<String>, Vec<String>) {
    let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("www").join(script);
    let text = std::fs::read_to_string(file).unwrap();
    let found = regex_lite::Regex::new(r"(?m)^    '([A-Za-z ]+)' =>").unwrap();
    let mut all: Vec<String> = found.captures_iter(&text).map(|c| c[1].to_owned()).collect();
    let border = all.iter().position(|n| n == "ENDS").unwrap_or(all.len());
    let ends = all.split_off(border).into_iter().skip(1).collect();
    (all, ends)
}

/// Headers that are not compared: times, the request's id, the connection's end, and how the body is framed (short answers
/// have a length or not, depending on what has arrived when the head is sent).
const UNCOMPARED: [&str; 7] =
    ["date", "expires", "last-modified", "x-request-id", "connection", "content-length", "transfer-encoding"];

/// An answer as it is compared. A worker script's handler is called from elsewhere than a script is, so lines of stack
/// traces are left out.
pub(crate) fn comparable(site: &Site, response: &Response) -> String {
    let mut text = format!("{} {} {}\n", response.version, response.status, response.reason);
    for (name, value) in &response.headers {
        if !UNCOMPARED.contains(&name.to_ascii_lowercase().as_str()) {
            // A cookie's expiry is a time of day; its Max-Age is compared.
            let timeless = value.split("; ").filter(|part| !part.starts_with("expires="));
            writeln!(text, "{name}: {}", timeless.collect::<Vec<_>>().join("; ")).unwrap();
        }
    }
    for line in response.text().split_inclusive('\n').filter(|line| !is_trace(line)) {
        text.push_str(line);
    }
    text.replace(&site.place().top.display().to_string(), "TOP")
}

fn is_trace(line: &str) -> bool {
    line.strip_prefix('#').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
}

/// Shows where an answer begins to differ from what classic mode answers.
pub(crate) fn first_difference(target: &str, expected: &str, got: &str) -> String {
    let at = expected.bytes().zip(got.bytes()).position(|(a, b)| a != b).unwrap_or(expected.len().min(got.len()));
    let part = |text: &str| {
        String::from_utf8_lossy(&text.as_bytes()[at.saturating_sub(300)..text.len().min(at + 300)]).into_owned()
    };
    format!("{target}\nclassic: …{}…\ngot:     …{}…", part(expected), part(got))
}
