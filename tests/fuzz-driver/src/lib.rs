//! Runs fuzz targets on stable Rust: on the inputs of their corpus in `fuzz/corpus`, and on mutations of these. `fuzz/`
//! is for libFuzzer; `make fuzz` runs the targets driven here for longer.
#![forbid(unsafe_code)]

use std::path::Path;
use std::time::{Duration, Instant};

/// Maximum length of an input.
const MAX_INPUT: usize = 20_000;

/// A fuzz target.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    /// Its name in messages.
    pub name: &'static str,
    /// The directory below `fuzz/corpus` with the initial inputs.
    pub corpus: &'static str,
    /// Parts of its inputs, which mutations insert in addition to single bytes.
    pub words: &'static [&'static [u8]],
    /// Panics on an input that violates an invariant.
    pub run: fn(&[u8]),
}

/// Runs a target on its corpus and on `rounds` mutations of it with a fixed seed, so that a failure is repeatable. With
/// `HOWDAH_FUZZ_SECONDS`, runs for that time instead, with different mutations each time.
///
/// # Panics
/// The target panics (a mutated input is then in the message), or there is no corpus.
pub fn drive(target: &Target, rounds: u64) {
    let corpus = corpus(target);
    corpus.iter().for_each(|input| (target.run)(input));
    let seconds = std::env::var("HOWDAH_FUZZ_SECONDS").ok().and_then(|text| text.parse().ok());
    let limit = seconds.map(Duration::from_secs);
    let mut random = Random(limit.map_or(1, |_| std::process::id().into()));
    let (began, mut done) = (Instant::now(), 0_u64);
    while limit.map_or(done < rounds, |limit| began.elapsed() < limit) {
        let input = mutated(&corpus, target.words, &mut random);
        let outcome = std::panic::catch_unwind(|| (target.run)(&input));
        assert!(outcome.is_ok(), "{} panicked on {}", target.name, input.escape_ascii());
        done += 1;
    }
    println!("{}: {done} inputs", target.name);
}

/// The inputs of the corpus, sorted by file name.
fn corpus(target: &Target) -> Vec<Vec<u8>> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target.corpus);
    let entries = std::fs::read_dir(&directory).into_iter().flatten().flatten();
    let mut files: Vec<_> = entries.map(|entry| entry.path()).collect();
    files.sort();
    let corpus: Vec<Vec<u8>> = files.iter().flat_map(std::fs::read).collect();
    assert!(!corpus.is_empty(), "no corpus in {}", directory.display());
    corpus
}

struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % n.max(1)
    }
}

/// Returns a mutation of one of the inputs.
fn mutated(corpus: &[Vec<u8>], words: &[&[u8]], random: &mut Random) -> Vec<u8> {
    let mut input = corpus[random.below(corpus.len())].clone();
    for _ in 0..=random.below(6) {
        let at = random.below(input.len() + 1);
        // Start of the next line.
        let line = at + input[at..].iter().position(|&b| b == b'\n').map_or(input.len() - at, |end| end + 1);
        let end = if random.below(2) == 0 { line } else { (at + random.below(20)).min(input.len()) };
        match random.below(9) {
            0 => input.insert(at, random.below(256) as u8),
            1 if at < input.len() => input[at] ^= 1 << random.below(8),
            2 => input.truncate(at),
            3 => {
                let other = &corpus[random.below(corpus.len())];
                let from = random.below(other.len() + 1);
                input.splice(end..end, other[from..].iter().copied());
            }
            4 => drop(input.splice(at..at, words.get(random.below(words.len())).copied().unwrap_or_default().to_vec())),
            5 => input.insert(at, b"\n\r:;,\"\\=-*%/. \0\xff"[random.below(16)]),
            // Digits are lengths, kinds and numbers.
            6 if at < input.len() => input[at] = b'0' + random.below(10) as u8,
            7 => drop(input.drain(at..end)),
            _ => {
                let part = input[at..end].to_vec();
                input.splice(end..end, part.repeat(1 + random.below(19)));
            }
        }
        input.truncate(MAX_INPUT);
    }
    input
}

#[cfg(test)]
mod tests {
    use super::*;

    const TARGET: Target = Target { name: "none", corpus: "request_path", words: &[b"word"], run: |_| {} };

    #[test]
    fn mutations_are_repeatable_and_bounded() {
        let corpus = corpus(&TARGET);
        let mutations = |seed| {
            let mut random = Random(seed);
            (0..500).map(|_| mutated(&corpus, TARGET.words, &mut random)).collect::<Vec<_>>()
        };
        assert_eq!(mutations(1), mutations(1));
        assert_ne!(mutations(1), mutations(2));
        assert!(mutations(1).iter().all(|input| input.len() <= MAX_INPUT));
        assert!(mutations(1).iter().any(|input| input.windows(4).any(|part| part == b"word")));
    }

    #[test]
    #[should_panic(expected = "no corpus")]
    fn a_fuzz_target_needs_a_corpus() {
        drive(&Target { corpus: "there-is-none", ..TARGET }, 1);
    }
}
