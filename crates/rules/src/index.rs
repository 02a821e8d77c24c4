//! Index of the rules that can match a path. Exact paths are found by hash; prefixes by the hash of each part of the
//! path that ends at a slash; plain hosts of rules without a path by hash; stars and linear regular expressions by one
//! automaton. All other rules are candidates for every path.
//!
//! The result is a bit set in the order of the rules, on the stack. A lookup that finds nothing in the automaton
//! allocates nothing.

use crate::pattern::{PathPattern, TextPattern};
use crate::rule::Rule;
use regex::bytes::{RegexSet, RegexSetBuilder};
use rustc_hash::FxHashMap;

/// Maximum number of rules of one site.
pub(crate) const MAX_RULES: usize = 4096;
const WORDS: usize = MAX_RULES / 64;
/// Maximum memory of the automaton in bytes.
const MAX_MEMORY: usize = 32 << 20;

/// The rules of a site, indexed by path.
#[derive(Debug, Default)]
pub(crate) struct Index {
    /// Number of used words in each bit set.
    words: usize,
    /// Rules that are candidates for every path.
    always: Box<[u64]>,
    /// Rules whose path is known to match if they are candidates.
    settled: Box<[u64]>,
    exact: FxHashMap<Box<[u8]>, Vec<u16>>,
    prefixes: FxHashMap<Box<[u8]>, Vec<u16>>,
    longest_prefix: usize,
    /// Rules without a path, by host in lower case.
    hosts: FxHashMap<Box<[u8]>, Vec<u16>>,
    automaton: Option<Automaton>,
}

#[derive(Debug)]
struct Automaton {
    set: RegexSet,
    /// The rule of each pattern.
    rules: Vec<u16>,
}

/// The rules that may match a request.
pub(crate) struct Candidates {
    bits: [u64; WORDS],
    words: usize,
}

impl Index {
    /// Indexes rules, of which there are at most `MAX_RULES`.
    pub(crate) fn new(rules: &[Rule]) -> Self {
        let words = rules.len().div_ceil(64).min(WORDS);
        let mut index =
            Self { words, always: vec![0; words].into(), settled: vec![0; words].into(), ..Self::default() };
        let (mut patterns, mut of) = (Vec::new(), Vec::new());
        for (at, rule) in rules.iter().enumerate().take(MAX_RULES) {
            let number = u16::try_from(at).unwrap_or(u16::MAX);
            let paths = &rule.conditions.path;
            if paths.is_empty()
                && let Some(hosts) = plain_hosts(rule)
            {
                for host in hosts {
                    index.hosts.entry(host).or_default().push(number);
                }
                continue;
            }
            if paths.is_empty() || paths.iter().any(|path| automaton_text(path).is_none() && !is_plain(path)) {
                index.always[at / 64] |= 1 << (at % 64);
                continue;
            }
            index.settled[at / 64] |= 1 << (at % 64);
            for path in paths {
                match path {
                    PathPattern::Exact(text) => index.exact.entry(text.as_bytes().into()).or_default().push(number),
                    PathPattern::Prefix(text) => {
                        index.longest_prefix = index.longest_prefix.max(text.len());
                        index.prefixes.entry(text.as_bytes().into()).or_default().push(number);
                    }
                    other => {
                        patterns.extend(automaton_text(other));
                        of.push(number);
                    }
                }
            }
        }
        index.add_automaton(&patterns, of);
        index
    }

    fn add_automaton(&mut self, patterns: &[String], rules: Vec<u16>) {
        if patterns.is_empty() {
            return;
        }
        let set = RegexSetBuilder::new(patterns)
            .unicode(false)
            .dot_matches_new_line(true)
            .size_limit(MAX_MEMORY)
            .dfa_size_limit(MAX_MEMORY)
            .build();
        if let Ok(set) = set {
            self.automaton = Some(Automaton { set, rules });
            return;
        }
        // The automaton would be too large: each pattern is tried separately.
        for at in rules.into_iter().map(usize::from) {
            self.always[at / 64] |= 1 << (at % 64);
            self.settled[at / 64] &= !(1 << (at % 64));
        }
    }

    /// `true` if a candidate's path is known to match.
    pub(crate) fn is_settled(&self, at: usize) -> bool {
        self.settled.get(at / 64).is_some_and(|word| word & 1 << (at % 64) != 0)
    }

    /// The rules that may match a path and host.
    pub(crate) fn candidates(&self, path: &[u8], host: &[u8]) -> Candidates {
        let mut found = Candidates { bits: [0; WORDS], words: self.words };
        found.bits[..self.words].copy_from_slice(&self.always);
        if !self.exact.is_empty() {
            found.add(self.exact.get(path));
        }
        if !self.hosts.is_empty() {
            // No host name is longer (RFC 1035).
            let mut small = [0; 255];
            if let Some(small) = small.get_mut(..host.len()) {
                small.copy_from_slice(host);
                small.make_ascii_lowercase();
                found.add(self.hosts.get(&*small));
            }
        }
        if self.longest_prefix > 0 {
            for (at, _) in path.iter().enumerate().take(self.longest_prefix).filter(|&(_, &b)| b == b'/') {
                found.add(self.prefixes.get(&path[..=at]));
            }
        }
        if let Some(Automaton { set, rules }) = &self.automaton
            && set.is_match(path)
        {
            for at in set.matches(path) {
                found.add_one(rules[at]);
            }
        }
        found
    }
}

impl Candidates {
    fn add(&mut self, rules: Option<&Vec<u16>>) {
        for &at in rules.into_iter().flatten() {
            self.add_one(at);
        }
    }

    fn add_one(&mut self, at: u16) {
        self.bits[usize::from(at) / 64] |= 1 << (at % 64);
    }

    /// The first candidate at or after this number.
    pub(crate) fn next(&self, from: usize) -> Option<usize> {
        let mut word = from / 64;
        let mut mask = u64::MAX << (from % 64);
        while word < self.words {
            let bits = self.bits[word] & mask;
            if bits != 0 {
                return Some(word * 64 + bits.trailing_zeros() as usize);
            }
            (word, mask) = (word + 1, u64::MAX);
        }
        None
    }
}

/// The hosts of a rule in lower case, if it has hosts and all are plain names.
fn plain_hosts(rule: &Rule) -> Option<Vec<Box<[u8]>>> {
    let hosts = rule.conditions.host.iter().map(|host| match host {
        TextPattern::Glob(glob) => {
            let text = glob.text();
            (!text.contains('*') && text.len() <= 255).then(|| text.to_ascii_lowercase().into_bytes().into())
        }
        _ => None,
    });
    hosts.collect::<Option<Vec<_>>>().filter(|hosts| !hosts.is_empty())
}

fn is_plain(path: &PathPattern) -> bool {
    matches!(path, PathPattern::Exact(_) | PathPattern::Prefix(_))
}

/// The automaton's source for a pattern: a linear regular expression on bytes.
fn automaton_text(path: &PathPattern) -> Option<String> {
    match path {
        PathPattern::Glob(glob) => {
            let parts: Vec<String> = glob.text().split('*').map(regex::escape).collect();
            Some(format!("^{}$", parts.join(".*")))
        }
        PathPattern::Regex(regex) => regex.linear_text(),
        PathPattern::Exact(_) | PathPattern::Prefix(_) => None,
    }
}
