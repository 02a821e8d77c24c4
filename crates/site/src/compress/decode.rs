//! Test support: decoders that return what can be decoded so far, and bodies of several kinds.

use howdah_config::Algorithm;
use std::io::Write;

/// A decoder that is fed piece by piece.
pub(super) enum Decoder {
    Gzip(flate2::Decompress, Vec<u8>),
    Zstd(zstd::stream::write::Decoder<'static, Vec<u8>>),
    /// The input so far, which is decoded anew each time, and what it decodes to.
    Brotli(Vec<u8>, Vec<u8>),
}

impl Decoder {
    pub(super) fn new(algorithm: Algorithm) -> Self {
        match algorithm {
            Algorithm::Gzip => Self::Gzip(flate2::Decompress::new_gzip(15), Vec::new()),
            Algorithm::Zstd => Self::Zstd(zstd::stream::write::Decoder::new(Vec::new()).unwrap()),
            Algorithm::Brotli => Self::Brotli(Vec::new(), Vec::new()),
        }
    }

    /// Feeds bytes and returns everything that they decode to, together with those before.
    pub(super) fn feed(&mut self, data: &[u8]) -> &[u8] {
        match self {
            Self::Gzip(decoder, out) => {
                let mut rest = data;
                loop {
                    out.reserve(4096);
                    let (taken, given) = (decoder.total_in(), decoder.total_out());
                    decoder.decompress_vec(rest, out, flate2::FlushDecompress::Sync).unwrap();
                    rest = &rest[(decoder.total_in() - taken) as usize..];
                    if decoder.total_in() == taken && decoder.total_out() == given {
                        assert!(rest.is_empty(), "bytes after the end");
                        return out;
                    }
                }
            }
            Self::Zstd(decoder) => {
                decoder.write_all(data).unwrap();
                decoder.flush().unwrap();
                decoder.get_ref()
            }
            Self::Brotli(input, output) => {
                input.extend_from_slice(data);
                output.clear();
                let mut decoder = brotli::Decompressor::new(&input[..], 4096);
                let mut part = [0; 4096];
                // Ends with an error where the input does.
                while let Ok(length @ 1..) = std::io::Read::read(&mut decoder, &mut part) {
                    output.extend_from_slice(&part[..length]);
                }
                output
            }
        }
    }
}

/// Decodes a complete body and insists on its end.
pub(super) fn decode(algorithm: Algorithm, data: &[u8]) -> Vec<u8> {
    use std::io::Read;
    let mut out = Vec::new();
    match algorithm {
        Algorithm::Gzip => {
            let mut rest = data;
            flate2::bufread::GzDecoder::new(&mut rest).read_to_end(&mut out).unwrap();
            assert!(rest.is_empty(), "bytes after the end");
        }
        Algorithm::Zstd => {
            zstd::stream::read::Decoder::new(data).unwrap().read_to_end(&mut out).unwrap();
        }
        Algorithm::Brotli => {
            brotli::Decompressor::new(data, 4096).read_to_end(&mut out).unwrap();
        }
    }
    out
}

pub(super) mod bodies {
    use super::super::Coding;
    use howdah_config::Algorithm;

    /// Numbers that look random and are the same in each run.
    pub(in crate::compress) struct Dice(pub(in crate::compress) u64);

    impl Dice {
        pub(in crate::compress) fn roll(&mut self, sides: usize) -> usize {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 33) as usize % sides
        }
    }

    pub(in crate::compress) fn codings() -> Vec<Coding> {
        let of = |algorithm, levels: &[u8]| {
            levels.iter().map(|level| Coding { algorithm, level: *level }).collect::<Vec<_>>()
        };
        [of(Algorithm::Gzip, &[1, 5, 9]), of(Algorithm::Zstd, &[1, 3, 9]), of(Algorithm::Brotli, &[0, 2, 4, 6])]
            .concat()
    }

    fn from_alphabet(alphabet: &[u8], length: usize) -> Vec<u8> {
        let mut dice = Dice(length as u64 + 1);
        (0..length).map(|_| alphabet[dice.roll(alphabet.len())]).collect()
    }

    pub(in crate::compress) fn random(length: usize) -> Vec<u8> {
        let mut dice = Dice(length as u64);
        (0..length).map(|_| dice.roll(256) as u8).collect()
    }

    /// Lines of 1023 random base64 digits.
    pub(in crate::compress) fn base64(length: usize) -> Vec<u8> {
        let digits = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        let mut body = from_alphabet(digits, length);
        body.iter_mut().skip(1023).step_by(1024).for_each(|byte| *byte = b'\n');
        body
    }

    /// Random words with markup: to a compressor, roughly a page.
    pub(in crate::compress) fn text(length: usize) -> Vec<u8> {
        const WORDS: &[&str] = &[
            "server",
            "request",
            "the",
            "of",
            "and",
            "worker",
            "answer",
            "PHP",
            "a",
            "process",
            "memory",
            "in",
            "to",
            "is",
            "header",
            "body",
            "client",
            "connection",
            "which",
            "time",
            "that",
            "for",
            "page",
            "with",
            "by",
            "quickly",
            "Ünïcode",
            "compression",
            "between",
            "however",
            "another",
            "yesterday",
            "mountain",
            "river",
        ];
        let mut dice = Dice(length as u64);
        let mut out = Vec::with_capacity(length + 64);
        while out.len() < length {
            let word = WORDS[dice.roll(WORDS.len())];
            match dice.roll(12) {
                0 => out.extend(format!("<a href=\"/{word}/{}.html\">{word}</a> ", dice.roll(10_000)).bytes()),
                1 => out.extend(format!("</p>\n<p class=\"{word}\">").bytes()),
                _ => out.extend(format!("{word} ").bytes()),
            }
        }
        out.truncate(length);
        out
    }

    pub(in crate::compress) fn json(rows: usize) -> Vec<u8> {
        let mut dice = Dice(rows as u64);
        let mut out = String::from("[");
        for id in 0..rows {
            let (name, price, ok) = (dice.roll(100_000), dice.roll(1_000_000), dice.roll(2) == 0);
            out +=
                &format!("{{\"id\":{id},\"name\":\"item {name}\",\"price\":{price}.{},\"ok\":{ok}}},", dice.roll(100));
        }
        (out + "null]").into_bytes()
    }

    /// 1500 different Chinese characters in random order, with full stops: harder to compress than any real text.
    fn chinese(length: usize) -> Vec<u8> {
        let mut dice = Dice(3);
        let mut out = String::from("<p>");
        while out.len() < length {
            // Real text uses few characters often.
            let rank = dice.roll(1500) * dice.roll(1500) / 1500;
            out.extend(char::from_u32(0x4e00 + (rank as u32 * 7919) % 20_000));
            if dice.roll(20) == 0 {
                out += "。</p>\n<p>";
            }
        }
        out.into_bytes()
    }

    /// Name, bytes, and whether it is worth compressing.
    pub(in crate::compress) fn all() -> Vec<(&'static str, Vec<u8>, bool)> {
        let lines = [vec![b'x'; 1023], b"\n".to_vec()].concat().repeat(50);
        vec![
            ("lines of x", lines, true),
            ("page", text(50_000), true),
            ("small page", text(1200), true),
            ("json", json(800), true),
            ("small json", json(20), true),
            ("hexadecimal digits", from_alphabet(b"0123456789abcdef", 50_000), true),
            ("decimal digits", from_alphabet(b"0123456789", 20_000), true),
            ("chinese", chinese(30_000), true),
            ("base64", base64(51_200), false),
            ("small base64", base64(3000), false),
            ("page with a large picture inside", [text(1500), base64(60_000), text(500)].concat(), false),
            ("random", random(50_000), false),
            ("small random", random(1100), false),
        ]
    }
}
