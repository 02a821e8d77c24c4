//! Compression of complete bodies in one call: libdeflate for gzip, zstd, and the `brotli` crate.
//!
//! Each I/O thread keeps an output buffer and the contexts of gzip and zstd, so that these allocate only the compressed
//! bytes themselves. Brotli allocates its state for each body. The memory per thread is bounded by [`ONE_GO`] and the
//! libraries' tables for the level.
//!
//! Why these libraries (50 KB JSON and 76 KB HTML, one core, µs and size): libdeflate 1 takes 129/344 µs for 10.1/21.6
//! KB where zlib-rs 1 takes 99/337 µs for 14.6/28.8 KB and zlib-rs 3 278/658 µs for 9.4/21.1 KB. zstd 3 takes 98/265 µs
//! for 9.1/21.4 KB. Brotli 2 takes 373/829 µs for 9.0/21.4 KB; the C library would need 219/572 µs for the same, but
//! its bindings are poorly maintained. (Qualities 0 and 1 of the Rust one save little time and are a third larger.)

use super::Coding;
use bytes::Bytes;
use howdah_config::Algorithm;
use std::cell::RefCell;

/// Maximum size in bytes of a body that is compressed in one call. A larger one is compressed by the stream encoder in
/// slices, and the thread's other connections are served in between.
///
/// This bounds how long other connections of an I/O thread wait: text of this size takes about 0.8 ms with zstd 3 or
/// gzip 1, 2.2 ms with gzip 5, 2.6 ms with brotli 2, 4 ms with brotli 4.
pub const ONE_GO: usize = 256 * 1024;

/// Compresses a body. Returns `None` if that saves less than a twentieth, or if the library fails.
pub fn whole(coding: Coding, body: &[u8]) -> Option<Bytes> {
    CONTEXTS.with_borrow_mut(|contexts| {
        let length = contexts.compress(coding, body)?;
        let useful = length + body.len() / 20 < body.len();
        useful.then(|| Bytes::copy_from_slice(&contexts.output[..length]))
    })
}

thread_local! {
    static CONTEXTS: RefCell<Contexts> = RefCell::default();
}

/// State that a thread keeps between two bodies.
#[derive(Default)]
struct Contexts {
    gzip: Option<(u8, libdeflater::Compressor)>,
    zstd: Option<(u8, zstd::bulk::Compressor<'static>)>,
    output: Vec<u8>,
}

impl Contexts {
    /// Compresses into `output` and returns the length.
    fn compress(&mut self, coding: Coding, body: &[u8]) -> Option<usize> {
        // The buffer is as long as the body: if the output does not fit, compression does not pay.
        if self.output.len() < body.len() {
            self.output.resize(body.len().next_power_of_two(), 0);
        }
        let output = &mut self.output[..body.len()];
        match coding.algorithm {
            Algorithm::Gzip => gzip(&mut self.gzip, coding.level, body, output),
            Algorithm::Zstd => zstandard(&mut self.zstd, coding.level, body, output),
            Algorithm::Brotli => brotli(coding.level, body, output),
        }
    }
}

fn gzip(
    context: &mut Option<(u8, libdeflater::Compressor)>,
    level: u8,
    body: &[u8],
    output: &mut [u8],
) -> Option<usize> {
    if context.as_ref().is_none_or(|(made_for, _)| *made_for != level) {
        let wanted = libdeflater::CompressionLvl::new(i32::from(level)).ok()?;
        *context = Some((level, libdeflater::Compressor::new(wanted)));
    }
    let (_, compressor) = context.as_mut()?;
    compressor.gzip_compress(body, output).ok()
}

fn zstandard(
    context: &mut Option<(u8, zstd::bulk::Compressor<'static>)>,
    level: u8,
    body: &[u8],
    output: &mut [u8],
) -> Option<usize> {
    match context {
        Some((made_for, _)) if *made_for == level => {}
        Some((made_for, compressor)) => {
            compressor.set_compression_level(i32::from(level)).ok()?;
            *made_for = level;
        }
        None => *context = Some((level, zstd::bulk::Compressor::new(i32::from(level)).ok()?)),
    }
    let (_, compressor) = context.as_mut()?;
    compressor.compress_to_buffer(body, output).ok()
}

fn brotli(quality: u8, mut body: &[u8], output: &mut [u8]) -> Option<usize> {
    let params = brotli_params(quality, Some(body.len() as u64));
    let mut bounded = Bounded { output, length: 0 };
    brotli::BrotliCompress(&mut body, &mut bounded, &params).ok()?;
    Some(bounded.length)
}

/// A writer that fails when its buffer is full. (`&mut [u8]` returns 0 then, and the encoder would retry forever.)
struct Bounded<'a> {
    output: &'a mut [u8],
    length: usize,
}

impl std::io::Write for Bounded<'_> {
    fn write(&mut self, data: &[u8]) -> std::io::Result<usize> {
        let room = self.output.get_mut(self.length..self.length + data.len());
        room.ok_or(std::io::ErrorKind::WriteZero)?.copy_from_slice(data);
        self.length += data.len();
        Ok(data.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Brotli's parameters, with a window no larger than a body of known length needs.
pub(super) fn brotli_params(quality: u8, length: Option<u64>) -> brotli::enc::BrotliEncoderParams {
    let window = length.map_or(STREAM_WINDOW, |length| length.max(1).ilog2() + 1).clamp(10, MAX_WINDOW);
    brotli::enc::BrotliEncoderParams {
        quality: i32::from(quality),
        lgwin: window as i32,
        size_hint: length.map_or(0, |length| length.try_into().unwrap_or(usize::MAX)),
        ..Default::default()
    }
}

/// The window of streams of unknown length, as a power of two: 128 KB, so that 1000 idle event streams fit in memory.
pub(super) const STREAM_WINDOW: u32 = 17;
/// The largest window, as a power of two: 4 MB (clients must take zstd's up to 8 MB, RFC 9659).
pub(super) const MAX_WINDOW: u32 = 22;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compress::decode::{bodies, decode};

    #[test]
    fn round_trips_at_every_level() {
        for (name, body, worth) in bodies::all() {
            for coding in bodies::codings() {
                match whole(coding, &body) {
                    Some(encoded) => {
                        assert!(encoded.len() < body.len());
                        assert_eq!(decode(coding.algorithm, &encoded), body, "{name} {coding:?}");
                    }
                    None => assert!(!worth, "{name} {coding:?} was not compressed"),
                }
            }
        }
    }

    #[test]
    fn sizes_that_do_not_shrink_are_refused() {
        for coding in bodies::codings() {
            for length in [0, 1, 100, 60_000, 1_200_000] {
                assert_eq!(whole(coding, &bodies::random(length)), None, "{coding:?} {length}");
            }
        }
    }

    #[test]
    fn a_large_body_after_a_small_one() {
        for coding in bodies::codings() {
            for length in [3000, 300_000, 2000] {
                let body = bodies::text(length);
                assert_eq!(decode(coding.algorithm, &whole(coding, &body).unwrap()), body);
            }
        }
    }
}
