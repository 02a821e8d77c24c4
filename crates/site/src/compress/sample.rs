//! Decides from a sample, in a few microseconds, whether a body is worth compressing.
//!
//! Four pieces, 4 KB in total, go through a cheap approximation of a compressor. It finds repeats of at least four
//! bytes with a small hash table and counts the bytes between them. The estimated size is the entropy of those bytes
//! plus a fixed cost per repeat. On data without repeats, the search takes increasingly larger steps.
//!
//! The threshold: **a body is compressed if that would save at least 30 %.** Bodies that save less are also the most
//! expensive ones to compress. Measured on 50 KB each, one core:
//!
//! | body | gzip (level 1) | saved | per µs of CPU |
//! |---|---|---|---|
//! | page of words and markup | 159 µs | 75 % | 235 bytes |
//! | JSON | 142 µs | 77 % | 257 bytes |
//! | random hexadecimal digits | 463 µs | 45 % | 49 bytes |
//! | random base64 | 400 µs | 25 % | 32 bytes |
//!
//! 32 bytes per µs is 256 Mbit/s: compressing base64 would slow a server down on any faster link, and PHP makes such a
//! page in a tenth of that time. (zstd needs 50 µs for it, which is still more than the page itself.)

/// The largest estimated size of a body worth compressing, in thousandths of its size.
pub const THRESHOLD: u32 = 700;

/// Bytes of a sample.
const SAMPLE: usize = 4096;
/// Number of pieces of a sample.
const PIECES: usize = 4;
const TABLE_BITS: u32 = 10;
/// Cost of one repeat (literal count, length, distance) in bits.
const REPEAT_BITS: f32 = 20.0;

/// `true` if it pays to compress this body, or a body that begins with it.
pub fn pays(body: &[u8]) -> bool {
    estimate(body) <= THRESHOLD
}

/// The estimated size after compression, in thousandths of the size before.
pub fn estimate(body: &[u8]) -> u32 {
    if body.is_empty() {
        return 1000;
    }
    if body.len() <= SAMPLE {
        return estimate_sample(body);
    }
    let mut sample = [0_u8; SAMPLE];
    let piece = SAMPLE / PIECES;
    // The middle of each quarter: the header and footer of a page are not representative.
    let quarter = body.len() / PIECES;
    for (index, part) in sample.chunks_exact_mut(piece).enumerate() {
        part.copy_from_slice(&body[index * quarter + (quarter - piece) / 2..][..piece]);
    }
    estimate_sample(&sample)
}

fn estimate_sample(data: &[u8]) -> u32 {
    let mut counts = [0_u16; 256];
    let mut table = [0_u16; 1 << TABLE_BITS];
    let (mut literals, mut repeats) = (0_usize, 0_usize);
    let (mut at, mut literal_start, mut misses) = (0, 0, 0_usize);
    while let Some(four) = data.get(at..).and_then(<[u8]>::first_chunk::<4>) {
        let hash = u32::from_le_bytes(*four).wrapping_mul(0x9e37_79b1) >> (32 - TABLE_BITS);
        // Positions are stored plus one, so that an empty slot differs from position 0; both fit, a sample is 4 KB.
        let candidate = usize::from(std::mem::replace(&mut table[hash as usize], (at + 1) as u16));
        if candidate == 0 || data[candidate - 1..].first_chunk::<4>() != Some(four) {
            misses += 1;
            at += 1 + (misses >> 5);
            continue;
        }
        let length = 4 + data[at + 4..].iter().zip(&data[candidate + 3..]).take_while(|(one, two)| one == two).count();
        literals += count(&data[literal_start..at], &mut counts);
        repeats += 1;
        at += length;
        literal_start = at;
        misses = 0;
    }
    literals += count(&data[literal_start..], &mut counts);
    let bits = entropy(&counts, literals) + repeats as f32 * REPEAT_BITS;
    ((bits / 8.0) / data.len() as f32 * 1000.0) as u32
}

fn count(literals: &[u8], counts: &mut [u16; 256]) -> usize {
    for &byte in literals {
        counts[usize::from(byte)] += 1;
    }
    literals.len()
}

/// Returns the entropy of the counted bytes in bits. `total` is the sum of `counts`.
fn entropy(counts: &[u16; 256], total: usize) -> f32 {
    let total = total as f32;
    let used = counts.iter().filter(|count| **count > 0).map(|count| f32::from(*count));
    used.map(|count| count * (total / count).log2()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compress::decode::bodies;

    #[test]
    fn declined_and_accepted_values() {
        for (name, body, expected) in bodies::all() {
            let estimate = estimate(&body);
            assert_eq!(pays(&body), expected, "{name}: estimated {estimate}");
        }
    }

    #[test]
    fn any_length() {
        for length in (0..40).chain([255, 1023, 1024, 4095, 4096, 4097, 4099, 5000, 9000]) {
            // Smaller bodies are never sampled (`MIN_SIZE`); `estimate` must only not panic on them.
            let judged = length >= 255;
            assert!(!judged || !pays(&bodies::random(length)), "{length} random bytes");
            assert!(!judged || pays(&vec![b'x'; length]), "{length} equal bytes");
        }
    }
}
