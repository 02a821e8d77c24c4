//! Compression of responses: content negotiation (`negotiate`), the choice of responses (`policy`), an estimate of the
//! gain (`sample`), complete bodies (`encode`), streams (`stream`), and the cache of compressed bodies (`cache`).
//! `compressor` combines them for the phase "compress".
//!
//! Costs, measured on a 2-core virtual machine with a release build (`cargo test --release -p howdah-site
//! compress::bench -- --ignored --nocapture` prints the figures for yours):
//!
//! | step | 50 KB of HTML-like text |
//! |---|---|
//! | choose a coding from `Accept-Encoding` | 0.06 µs |
//! | judge the headers | 0.06 µs |
//! | sample | 2 to 6 µs |
//! | response from the cache | 3.6 µs (hash 2.4, compare 1.1) |
//! | all of it, from the cache | 3.8 µs |
//! | all of it, random base64, declined | 6.5 µs |
//! | compress, first time | zstd 3: 154 µs, gzip 1: 159 µs, gzip 5: 425 µs, brotli 2: 498 µs, brotli 4: 784 µs |

pub mod cache;
pub mod compressor;
pub mod encode;
pub mod negotiate;
pub mod policy;
pub mod sample;
pub mod stream;

#[cfg(test)]
mod bench;
#[cfg(test)]
mod decode;

pub use cache::{Admission, Cache};
pub use compressor::{CompressionRequest, Compressor, EncodeResult, Encoding, EncodingSource, FileLookup, Whole};
pub use encode::ONE_GO;
pub use stream::{Encoded, StreamEncoder};

use howdah_config::Algorithm;

/// An algorithm and its level. Together with the input, they determine the compressed body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Coding {
    pub algorithm: Algorithm,
    /// The algorithm's level: gzip 1 to 9 (libdeflate's up to 12), brotli 0 to 11, zstd 1 to 22.
    pub level: u8,
}
