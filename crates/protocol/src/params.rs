//! The variables of a request, as a web server sends them: pairs of names and values, each length in one byte or four
//! (FastCGI specification 1.0, section 3.4).

use std::fmt;
use std::ops::Range;

/// Maximum number of variables of one request. nginx sends some 30, and one for each of the client's fields.
pub const MAX_PARAMS: usize = 2048;

/// The variables of a request, in the order in which they came. The last one of a name counts.
#[derive(Clone, Default)]
pub struct Params {
    text: Vec<u8>,
    pairs: Vec<(Range<u32>, Range<u32>)>,
}

/// Reason why variables cannot be parsed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InvalidParams {
    /// A length reaches beyond the end.
    CutOff,
    /// There are more than `MAX_PARAMS`.
    TooMany,
}

impl Params {
    /// Reads the content of all `PARAMS` records of a request. A pair without a name is left out.
    ///
    /// # Errors
    /// The content is cut off, or there are too many variables.
    pub fn parse(text: Vec<u8>) -> Result<Self, InvalidParams> {
        let mut pairs = Vec::with_capacity(40);
        let mut at = 0;
        while at < text.len() {
            let name_length = length(&text, &mut at)?;
            let value_length = length(&text, &mut at)?;
            let name = range(&text, &mut at, name_length)?;
            let value = range(&text, &mut at, value_length)?;
            if name.is_empty() {
                continue;
            }
            if pairs.len() == MAX_PARAMS {
                return Err(InvalidParams::TooMany);
            }
            pairs.push((name, value));
        }
        Ok(Self { text, pairs })
    }

    fn slice(&self, range: &Range<u32>) -> &[u8] {
        self.text.get(range.start as usize..range.end as usize).unwrap_or_default()
    }

    /// The value of a variable.
    pub fn get(&self, name: &str) -> Option<&[u8]> {
        let found = self.pairs.iter().rev().find(|(own, _)| self.slice(own) == name.as_bytes());
        found.map(|(_, value)| self.slice(value))
    }

    /// All names and values.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.pairs.iter().map(|(name, value)| (self.slice(name), self.slice(value)))
    }

    /// Sets a variable.
    pub fn set(&mut self, name: &str, value: &[u8]) {
        self.remove(name);
        let (name, value) = (self.push(name.as_bytes()), self.push(value));
        self.pairs.push((name, value));
    }

    /// Removes a variable.
    pub fn remove(&mut self, name: &str) {
        let text = &self.text;
        self.pairs.retain(|(own, _)| text.get(own.start as usize..own.end as usize) != Some(name.as_bytes()));
    }

    fn push(&mut self, bytes: &[u8]) -> Range<u32> {
        let start = position(self.text.len());
        self.text.extend_from_slice(bytes);
        start..position(self.text.len())
    }
}

impl fmt::Debug for Params {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Values may contain passwords.
        f.debug_list().entries(self.iter().map(|(name, _)| String::from_utf8_lossy(name))).finish()
    }
}

/// Positions are far below 4 GB: the connection keeps no more of a request than `head_buffer`.
fn position(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}

fn length(text: &[u8], at: &mut usize) -> Result<usize, InvalidParams> {
    let rest = text.get(*at..).unwrap_or_default();
    match *rest {
        [short @ 0..=0x7f, ..] => {
            *at += 1;
            Ok(usize::from(short))
        }
        [first, second, third, fourth, ..] => {
            *at += 4;
            Ok(u32::from_be_bytes([first & 0x7f, second, third, fourth]) as usize)
        }
        _ => Err(InvalidParams::CutOff),
    }
}

fn range(text: &[u8], at: &mut usize, length: usize) -> Result<Range<u32>, InvalidParams> {
    let end = at.checked_add(length).filter(|end| *end <= text.len()).ok_or(InvalidParams::CutOff)?;
    let range = position(*at)..position(end);
    *at = end;
    Ok(range)
}

/// Writes a pair, as a web server does.
pub fn write_pair(out: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    for length in [name.len(), value.len()] {
        match u8::try_from(length) {
            Ok(short @ 0..=0x7f) => out.push(short),
            _ => out.extend_from_slice(&(position(length) | 0x8000_0000).to_be_bytes()),
        }
    }
    out.extend_from_slice(name);
    out.extend_from_slice(value);
}
