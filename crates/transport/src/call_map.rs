//! A map from numbers of calls: looked into at each change from one open call to another.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// What is kept of open calls, by their number on the lane.
pub type CallMap<T> = HashMap<u64, T, BuildHasherDefault<NumberHasher>>;

/// Spreads numbers that count up. The server gives them out, so nobody can choose ones that collide.
#[derive(Debug, Default, Clone, Copy)]
pub struct NumberHasher(u64);

impl Hasher for NumberHasher {
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(u64::from(byte));
        }
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = (self.0 ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
