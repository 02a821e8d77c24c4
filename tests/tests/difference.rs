//! Shared parts of the comparisons of a mode with classic mode: a reproducible order, normalized responses, and the
//! first position in which two differ.

use howdah_tests::{Response, Site, repetitions};
use std::fmt::Write as _;
use std::time::{SystemTime, UNIX_EPOCH};

/// A small random number generator, so that an order is reproducible.
pub(crate) struct Order(u64);

impl Order {
    /// The order of the seed in `HOWDAH_DIFFERENCE_SEED`: a number, or with `any` a new one each time, which is logged.
    /// Without it the seed is fixed, so that a failure of the whole test suite is reproducible.
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

    /// An order derived from a number of another one.
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

/// The keys of the array that a script returns, before and after the key `ENDS`.
pub(crate) fn names(script: &str) -> (Vec<String>, Vec<String>) {
    let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("www").join(script);
    let text = std::fs::read_to_string(file).unwrap();
    let found = regex_lite::Regex::new(r"(?m)^    '([A-Za-z ]+)' =>").unwrap();
    let mut all: Vec<String> = found.captures_iter(&text).map(|c| c[1].to_owned()).collect();
    let border = all.iter().position(|n| n == "ENDS").unwrap_or(all.len());
    let ends = all.split_off(border).into_iter().skip(1).collect();
    (all, ends)
}

/// Headers that are not compared: times, the request's id, the connection's end, and the body's framing (short
/// responses have a length or not, depending on the data available when the head is sent).
const UNCOMPARED: [&str; 7] =
    ["date", "expires", "last-modified", "x-request-id", "connection", "content-length", "transfer-encoding"];

/// A normalized response. A worker script's handler has another caller than a script, so lines of stack traces are
/// removed.
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

/// Shows where a response begins to differ from classic mode's.
pub(crate) fn first_difference(target: &str, expected: &str, got: &str) -> String {
    let at = expected.bytes().zip(got.bytes()).position(|(a, b)| a != b).unwrap_or(expected.len().min(got.len()));
    let part = |text: &str| {
        String::from_utf8_lossy(&text.as_bytes()[at.saturating_sub(300)..text.len().min(at + 300)]).into_owned()
    };
    format!("{target}\nclassic: …{}…\ngot:     …{}…", part(expected), part(got))
}
