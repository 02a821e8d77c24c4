//! Connection ids that identify the process that issued them. Two processes can thus share a UDP socket while one takes
//! over from the other: each datagram goes to the process that issued its id.
//!
//! An id consists of four unpredictable bytes and four bytes computed from these and the process's mark. The mark is
//! not secret: a forged id reaches a connection, but without its keys. Both processes must compute the same function
//! although they may be different builds, so it is implemented here.

use quinn::{ConnectionId, ConnectionIdGenerator};
use std::hash::{BuildHasher, Hasher, RandomState};

/// The length of an id.
pub(super) const LENGTH: usize = 8;
const HALF: usize = LENGTH / 2;

/// Distinguishes the ids of one process from those of another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark(pub u64);

impl Mark {
    /// A random mark, which no other process has.
    pub fn new() -> Self {
        Self(RandomState::new().build_hasher().finish())
    }

    /// `true` if a process with this mark issued the id. False positives: one in 2^32 ids of other processes.
    pub(super) fn made(self, id: &[u8]) -> bool {
        match (id.len(), id.first_chunk::<HALF>()) {
            (LENGTH, Some(nonce)) => id[HALF..] == self.seal(*nonce),
            _ => false,
        }
    }

    /// The second half of an id: SplitMix64's function of the first half and the mark.
    fn seal(self, nonce: [u8; HALF]) -> [u8; HALF] {
        let mut mixed = self.0 ^ u64::from(u32::from_le_bytes(nonce)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        let [a, b, c, d, ..] = mixed.to_le_bytes();
        [a, b, c, d]
    }

    /// The generator of this process's ids.
    pub(super) fn generator(self) -> Box<dyn ConnectionIdGenerator> {
        Box::new(Generator { mark: self, secret: RandomState::new(), made: 0 })
    }
}

impl Default for Mark {
    fn default() -> Self {
        Self::new()
    }
}

struct Generator {
    mark: Mark,
    /// Secret that makes the first halves, derived from a counter, unpredictable.
    secret: RandomState,
    made: u64,
}

impl ConnectionIdGenerator for Generator {
    fn generate_cid(&mut self) -> ConnectionId {
        self.made += 1;
        let [a, b, c, d, ..] = self.secret.hash_one(self.made).to_le_bytes();
        let nonce = [a, b, c, d];
        let mut id = [0; LENGTH];
        id[..HALF].copy_from_slice(&nonce);
        id[HALF..].copy_from_slice(&self.mark.seal(nonce));
        ConnectionId::new(&id)
    }

    fn validate(&self, id: &ConnectionId) -> Result<(), quinn_proto::InvalidCid> {
        if self.mark.made(id) { Ok(()) } else { Err(quinn_proto::InvalidCid) }
    }

    fn cid_len(&self) -> usize {
        LENGTH
    }

    fn cid_lifetime(&self) -> Option<std::time::Duration> {
        None
    }
}

/// The destination connection id of a datagram (RFC 9000 17.2, 17.3). Short headers are assumed to have ids of `LENGTH`
/// bytes.
pub(super) fn destination(datagram: &[u8]) -> Option<&[u8]> {
    let (first, rest) = datagram.split_first()?;
    if first & 0x80 == 0 {
        return rest.get(..LENGTH);
    }
    let (length, rest) = rest.get(4..)?.split_first()?;
    rest.get(..usize::from(*length))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_knows_its_own_ids_and_no_others() {
        let (one, other) = (Mark::new(), Mark::new());
        let mut generator = one.generator();
        for _ in 0..1000 {
            let id = generator.generate_cid();
            assert!(one.made(&id) && generator.validate(&id).is_ok());
            assert!(!other.made(&id));
        }
        assert!(!one.made(b"") && !one.made(b"1234567") && !one.made(b"123456789"));
    }

    #[test]
    fn the_function_is_the_same_in_all_releases() {
        assert_eq!(Mark(0x0123_4567_89ab_cdef).seal([1, 2, 3, 4]), [235, 17, 169, 82]);
    }

    #[test]
    fn the_id_is_found_in_both_forms_of_header() {
        let short = [0x40, 1, 2, 3, 4, 5, 6, 7, 8, 9];
        assert_eq!(destination(&short), Some(&[1, 2, 3, 4, 5, 6, 7, 8][..]));
        let long = [0xc0, 0, 0, 0, 1, 3, 7, 8, 9, 0];
        assert_eq!(destination(&long), Some(&[7, 8, 9][..]));
        for cut in 0..8 {
            assert_eq!(destination(&long[..cut]), None, "{cut}");
            assert_eq!(destination(&short[..cut]), None, "{cut}");
        }
        assert_eq!(destination(&[0xc0, 0, 0, 0, 1, 255, 1]), None);
    }
}
