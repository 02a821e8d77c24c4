//! Request ids: 64 random-looking bits, unique enough to find a request in logs, cheap enough for every request.

use howdah_pool::RequestId;
use std::cell::Cell;
use std::hash::{BuildHasher, Hasher};

thread_local! {
    static STATE: Cell<u64> = Cell::new(seed());
}

/// Returns a seed that differs between threads and processes: the standard library seeds its hash keys from the system.
fn seed() -> u64 {
    let mut hasher = std::collections::hash_map::RandomState::new().build_hasher();
    hasher.write_u64(u64::from(std::process::id()));
    hasher.finish()
}

/// Returns the next id of this thread. It is not secret: an id can be predicted from earlier ones.
#[must_use]
pub fn next() -> RequestId {
    STATE.with(|state| {
        // A Weyl sequence through a finaliser that mixes every input bit into every output bit.
        let counter = state.get().wrapping_add(0x9e37_79b9_7f4a_7c15);
        state.set(counter);
        let mut x = counter;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        RequestId(x ^ (x >> 31))
    })
}

/// Returns the id's sixteen hexadecimal digits like `Display`, but faster.
pub fn digits(id: RequestId) -> [u8; 16] {
    let nibble = |i: usize| b"0123456789abcdef"[(id.0 >> (60 - 4 * i) & 15) as usize];
    std::array::from_fn(nibble)
}

/// Parses the id in a header of a trusted proxy: 1 to 16 hexadecimal digits. Anything else is ignored.
pub fn parse(text: &[u8]) -> Option<RequestId> {
    if text.is_empty() || text.len() > 16 || !text.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    let text = std::str::from_utf8(text).ok()?;
    u64::from_str_radix(text, 16).ok().map(RequestId)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn ids_do_not_repeat_within_and_across_threads() {
        let draw = || (0..10_000).map(|_| next().0).collect::<Vec<_>>();
        let other = std::thread::spawn(draw).join().unwrap();
        let all: HashSet<u64> = draw().into_iter().chain(other).collect();
        assert_eq!(all.len(), 20_000);
    }

    #[test]
    fn digits_are_those_of_display() {
        for id in [RequestId(0), RequestId(0x0123_4567_89ab_cdef), next()] {
            assert_eq!(digits(id), *id.to_string().as_bytes());
        }
    }

    #[test]
    fn only_short_hexadecimal_ids_are_taken() {
        assert_eq!(parse(b"00ff"), Some(RequestId(255)));
        assert_eq!(parse(b""), None);
        assert_eq!(parse(b"0123456789abcdef0"), None);
        assert_eq!(parse(b"+1"), None);
    }
}
