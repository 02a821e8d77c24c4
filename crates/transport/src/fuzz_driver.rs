//! Runs a fuzz target on stable Rust: on the inputs of its corpus, and on mutations of these, seeded, so that a failure comes
//! again.

use std::path::PathBuf;
use std::time::{Duration, Instant};

/// The longest input that is tried.
const MOST_BYTES: usize = 20_000;

/// What a mutation puts in: what scripts are made of.
const WORDS: [&[u8]; 16] = [
    b"\nshow\n",
    b"\nclaim ",
    b"\ncursor ",
    b"\nskip 8\n",
    b"\nword ",
    b"\nhead 1 0 200 A: b\n",
    b"\nbody 1 0 ",
    b"\nend 1\n",
    b"\ndone 1\n",
    b"\ninterim 1 0 103 A: b\n",
    b"\nlog 0 0 1 x\n",
    b"\nback 1\n",
    b"\nready\n",
    b" 4294967295 ",
    b" 2 ",
    b"|",
];

struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % n.max(1)
    }
}

/// Runs a target on `fuzz/corpus/worker_frames` and on so many mutations; with `HOWDAH_FUZZ_SECONDS` for so long, in an order
/// that is another one each time.
///
/// # Panics
/// When the target does, with the input.
pub fn drive(name: &str, rounds: u64, target: fn(&[u8])) {
    let directory = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/worker_frames");
    let Ok(entries) = std::fs::read_dir(&directory) else { panic!("no corpus in {}", directory.display()) };
    let mut files: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    files.sort();
    let corpus: Vec<Vec<u8>> = files.iter().flat_map(std::fs::read).collect();
    assert!(!corpus.is_empty(), "no corpus in {}", directory.display());
    corpus.iter().for_each(|input| target(input));
    let seconds = std::env::var("HOWDAH_FUZZ_SECONDS").ok().and_then(|text| text.parse().ok());
    let limit = seconds.map(Duration::from_secs);
    let mut random = Random(limit.map_or(1, |_| std::process::id().into()));
    let (began, mut done) = (Instant::now(), 0_u64);
    while limit.map_or(done < rounds, |limit| began.elapsed() < limit) {
        let input = mutated(&corpus, &mut random);
        let outcome = std::panic::catch_unwind(|| target(&input));
        assert!(outcome.is_ok(), "{name} breaks on {}", input.escape_ascii());
        done += 1;
    }
    println!("{name}: {done} inputs");
}

/// Another input, made of these.
fn mutated(corpus: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
    let mut input = corpus[random.below(corpus.len())].clone();
    for _ in 0..=random.below(6) {
        let at = random.below(input.len() + 1);
        // Where the next line begins.
        let line = at + input[at..].iter().position(|&b| b == b'\n').map_or(input.len() - at, |end| end + 1);
        match random.below(8) {
            0 => input.insert(at, random.below(256) as u8),
            1 if at < input.len() => input[at] ^= 1 << random.below(8),
            2 => input.truncate(at),
            3 => {
                let other = &corpus[random.below(corpus.len())];
                let from = random.below(other.len() + 1);
                input.splice(line..line, other[from..].iter().copied());
            }
            4 => drop(input.splice(at..at, WORDS[random.below(WORDS.len())].iter().copied())),
            // Digits above all: they are lengths, kinds and cursors.
            5 if at < input.len() => input[at] = b'0' + random.below(10) as u8,
            6 => drop(input.drain(at..line)),
            _ => {
                let part = input[at..line].to_vec();
                input.splice(line..line, part.repeat(1 + random.below(8)));
            }
        }
        input.truncate(MOST_BYTES);
    }
    input
}
