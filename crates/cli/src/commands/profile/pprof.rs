//! The format of pprof (`go tool pprof`, and what else reads its `profile.proto`): Protocol Buffers, packed with gzip. The few
//! fields that are used are written by hand: numbers and bytes are all that the encoding knows.

use super::{name_of, samples};
use anyhow::Result;
use flate2::Compression;
use flate2::write::GzEncoder;
use howdah_pool::Profile;
use std::collections::HashMap;
use std::io::Write;

/// A message under construction.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    fn varint(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.0.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.0.push(number as u8);
    }

    fn number(&mut self, field: u64, number: u64) -> &mut Self {
        self.varint(field << 3);
        self.varint(number);
        self
    }

    fn bytes(&mut self, field: u64, bytes: &[u8]) -> &mut Self {
        self.varint(field << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
        self
    }

    fn numbers(&mut self, field: u64, numbers: impl Iterator<Item = u64>) -> &mut Self {
        let mut packed = Self::default();
        numbers.for_each(|number| packed.varint(number));
        self.bytes(field, &packed.0)
    }
}

/// Texts are identified by their position; the first one is empty.
struct Texts {
    positions: HashMap<String, u64>,
    all: Vec<String>,
}

impl Texts {
    fn of(&mut self, text: &str) -> u64 {
        if let Some(&known) = self.positions.get(text) {
            return known;
        }
        let position = self.all.len() as u64;
        self.positions.insert(text.to_owned(), position);
        self.all.push(text.to_owned());
        position
    }
}

pub(super) fn render(profile: &Profile) -> Result<Vec<u8>> {
    let mut packed = GzEncoder::new(Vec::new(), Compression::default());
    packed.write_all(&message(profile).0)?;
    Ok(packed.finish()?)
}

fn message(profile: &Profile) -> Message {
    let mut out = Message::default();
    let mut texts = Texts { positions: HashMap::from([(String::new(), 0)]), all: vec![String::new()] };
    let period = 1_000_000_000 / u64::from(profile.rate.max(1));
    let kind = |texts: &mut Texts, name: &str, unit: &str| {
        let mut kind = Message::default();
        kind.number(1, texts.of(name)).number(2, texts.of(unit));
        kind.0
    };
    let (counts, time) = (kind(&mut texts, "samples", "count"), kind(&mut texts, "wall", "nanoseconds"));
    out.bytes(1, &counts).bytes(1, &time);
    for (stack, times) in &profile.stacks {
        let mut sample = Message::default();
        // Location numbers begin with 1; innermost first, as here.
        sample.numbers(1, stack.iter().map(|&at| u64::from(at) + 1));
        sample.numbers(2, [*times, times.saturating_mul(period)].into_iter());
        out.bytes(2, &sample.0);
    }
    let mut functions: HashMap<(&str, &str), u64> = HashMap::new();
    for (at, frame) in profile.frames.iter().enumerate() {
        let next = functions.len() as u64 + 1;
        let key = (name_of(frame), frame.file.as_str());
        let function = *functions.entry(key).or_insert(next);
        if function == next {
            let mut described = Message::default();
            let name = texts.of(key.0);
            described.number(1, function).number(2, name).number(3, name).number(4, texts.of(key.1));
            out.bytes(5, &described.0);
        }
        let (mut line, mut location) = (Message::default(), Message::default());
        line.number(1, function).number(2, u64::from(frame.line));
        location.number(1, at as u64 + 1).bytes(4, &line.0);
        out.bytes(4, &location.0);
    }
    out.number(10, profile.milliseconds.saturating_mul(1_000_000)).bytes(11, &time).number(12, period);
    let note = texts.of(&format!("pool {}: {} samples by howdah", profile.pool, samples(profile)));
    out.number(13, note);
    for text in &texts.all {
        out.bytes(6, text.as_bytes());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::testing::profile;
    use super::*;
    use std::io::Read;

    /// The fields of a message: their numbers, and a number or bytes.
    fn fields(mut bytes: &[u8]) -> Vec<(u64, u64, Vec<u8>)> {
        fn varint(bytes: &mut &[u8]) -> u64 {
            let (mut number, mut shift) = (0, 0);
            loop {
                let byte = bytes[0];
                *bytes = &bytes[1..];
                number |= u64::from(byte & 0x7f) << shift;
                shift += 7;
                if byte < 0x80 {
                    return number;
                }
            }
        }
        let mut found = Vec::new();
        while !bytes.is_empty() {
            let key = varint(&mut bytes);
            let number = varint(&mut bytes);
            let content = if key & 7 == 2 {
                let (content, rest) = bytes.split_at(number as usize);
                bytes = rest;
                content.to_vec()
            } else {
                Vec::new()
            };
            found.push((key >> 3, number, content));
        }
        found
    }

    #[test]
    fn the_message_says_which_functions_were_seen_how_often() {
        let mut message = Vec::new();
        flate2::read::GzDecoder::new(&*render(&profile()).unwrap()).read_to_end(&mut message).unwrap();
        let all = fields(&message);
        let of = |field: u64| all.iter().filter(move |found| found.0 == field).map(|found| found.2.clone());
        let texts: Vec<String> = of(6).map(|text| String::from_utf8(text).unwrap()).collect();
        assert_eq!(texts[..5], ["", "samples", "count", "wall", "nanoseconds"]);
        let named: Vec<&str> = of(5).map(|function| texts[fields(&function)[1].1 as usize].as_str()).collect();
        assert_eq!(named, ["/srv/index.php", "App\\Report->work", "sort"]);
        let second = of(2).nth(1).unwrap();
        let (stack, values) = (&fields(&second)[0].2, fields(&second)[1].2.clone());
        assert_eq!(stack, &[3, 2, 1]);
        assert_eq!(values[0], 25);
        assert_eq!((of(4).count(), of(1).count()), (4, 2));
        // The last location is another line of the first function.
        let last = fields(&of(4).next_back().unwrap());
        assert_eq!((last[0].1, fields(&last[1].2)[0].1, fields(&last[1].2)[1].1), (4, 1, 9));
    }
}
