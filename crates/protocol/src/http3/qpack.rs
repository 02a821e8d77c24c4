//! Header blocks (QPACK, RFC 9204) without a dynamic table: the server neither allows nor uses one. So blocks are
//! independent of each other, none waits for another stream, and no state is kept for a client.

use super::huffman;
use super::table::LINES;
use bytes::{BufMut, Bytes};

/// Overhead of each line in addition to its bytes (RFC 9114 4.2.2).
const LINE_OVERHEAD: usize = 32;

/// A header line, not validated yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) name: Bytes,
    pub(super) value: Bytes,
}

/// Reason why a block is rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BlockError {
    /// The lines exceed the size limit.
    TooLarge,
    /// The encoding is invalid.
    Invalid,
}

/// Decodes a block; an error if its lines exceed `most` bytes, each counted with `LINE_OVERHEAD`.
pub(super) fn decode(block: Bytes, most: usize) -> Result<Vec<Line>, BlockError> {
    let mut block = Block(block);
    // Required Insert Count, then the sign and the delta of the Base (RFC 9204 4.5.1): without a dynamic table, the
    // count is 0 and the sign positive.
    let required = block.integer(8)?.1;
    let (sign, _) = block.integer(7)?;
    if required != 0 || sign & 1 != 0 {
        return Err(BlockError::Invalid);
    }
    let (mut lines, mut size) = (Vec::new(), 0usize);
    while !block.0.is_empty() {
        let line = block.line()?;
        size = size.saturating_add(line.name.len() + line.value.len() + LINE_OVERHEAD);
        if size > most {
            return Err(BlockError::TooLarge);
        }
        lines.push(line);
    }
    Ok(lines)
}

/// Unread rest of a block.
struct Block(Bytes);

impl Block {
    fn byte(&mut self) -> Result<u8, BlockError> {
        match self.0.is_empty() {
            true => Err(BlockError::Invalid),
            false => Ok(self.0.split_to(1)[0]),
        }
    }

    /// Reads an integer with a prefix of `bits` bits (RFC 7541 5.1). Returns the bits above the prefix, and the
    /// integer.
    fn integer(&mut self, bits: u32) -> Result<(u8, usize), BlockError> {
        let first = self.byte()?;
        let most = ((1u16 << bits) - 1) as u8;
        let above = u16::from(first) >> bits;
        let mut value = usize::from(first & most);
        if first & most == most {
            // No string is longer than its block, so four continuation bytes are enough.
            for shift in [0, 7, 14, 21] {
                let byte = self.byte()?;
                value += usize::from(byte & 0x7f) << shift;
                if byte & 0x80 == 0 {
                    return Ok((above as u8, value));
                }
            }
            return Err(BlockError::Invalid);
        }
        Ok((above as u8, value))
    }

    /// Reads a string: the Huffman flag, the length with a prefix of `bits` bits, and the bytes.
    fn string(&mut self, bits: u32) -> Result<Bytes, BlockError> {
        let (above, length) = self.integer(bits)?;
        if length > self.0.len() {
            return Err(BlockError::Invalid);
        }
        let text = self.0.split_to(length);
        match above & 1 {
            0 => Ok(text),
            _ => huffman::decode(&text).map(Bytes::from).ok_or(BlockError::Invalid),
        }
    }

    /// The next line (RFC 9204 4.5). References to the dynamic table are invalid.
    fn line(&mut self) -> Result<Line, BlockError> {
        let &first = self.0.first().ok_or(BlockError::Invalid)?;
        match first >> 4 {
            // Indexed name and value.
            0b1100.. => {
                let (name, value) = Self::known(self.integer(6)?.1)?;
                Ok(Line { name, value })
            }
            // Indexed name, literal value.
            0b0101 | 0b0111 => {
                let (name, _) = Self::known(self.integer(4)?.1)?;
                Ok(Line { name, value: self.string(7)? })
            }
            // Literal name and value.
            0b0010 | 0b0011 => Ok(Line { name: self.string(3)?, value: self.string(7)? }),
            _ => Err(BlockError::Invalid),
        }
    }

    fn known(number: usize) -> Result<(Bytes, Bytes), BlockError> {
        let (name, value) = LINES.get(number).ok_or(BlockError::Invalid)?;
        Ok((Bytes::from_static(name.as_bytes()), Bytes::from_static(value.as_bytes())))
    }
}

/// Begins a block.
pub(super) fn begin(out: &mut impl BufMut) {
    out.put_slice(&[0, 0]);
}

/// Writes a line. Strings are not Huffman-encoded: they are short, and encoding would cost the server time.
pub(super) fn put_line(out: &mut impl BufMut, name: &str, value: &[u8]) {
    let mut named = None;
    for (number, (known, with)) in LINES.iter().enumerate() {
        if *known == name {
            if with.as_bytes() == value {
                return put_integer(out, 0b1100_0000, 6, number);
            }
            named = named.or(Some(number));
        }
    }
    match named {
        Some(number) => put_integer(out, 0b0101_0000, 4, number),
        None => {
            put_integer(out, 0b0010_0000, 3, name.len());
            out.put_slice(name.as_bytes());
        }
    }
    put_integer(out, 0, 7, value.len());
    out.put_slice(value);
}

/// Writes an integer with a prefix of `bits` bits below the bits of `above` (RFC 7541 5.1).
fn put_integer(out: &mut impl BufMut, above: u8, bits: u32, value: usize) {
    let most = (1usize << bits) - 1;
    if value < most {
        return out.put_u8(above | value as u8);
    }
    out.put_u8(above | most as u8);
    let mut rest = value - most;
    while rest >= 0x80 {
        out.put_u8(rest as u8 | 0x80);
        rest >>= 7;
    }
    out.put_u8(rest as u8);
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::BytesMut;

    fn written(lines: &[(&str, &str)]) -> Bytes {
        let mut out = BytesMut::new();
        begin(&mut out);
        for (name, value) in lines {
            put_line(&mut out, name, value.as_bytes());
        }
        out.freeze()
    }

    fn read(block: &Bytes) -> Vec<(String, String)> {
        let text = |bytes: &Bytes| String::from_utf8(bytes.to_vec()).unwrap();
        decode(block.clone(), 100_000).unwrap().iter().map(|line| (text(&line.name), text(&line.value))).collect()
    }

    #[test]
    fn lines_round_trip_whether_or_not_the_table_has_them() {
        let long = "v".repeat(5000);
        let lines = [
            (":status", "200"),
            (":status", "418"),
            ("content-type", "text/html; charset=utf-8"),
            ("content-type", "text/x-php"),
            ("x-own", ""),
            ("x-frame-options", "sameorigin"),
            ("a-name-that-is-longer-than-what-fits-into-the-first-byte", &long),
        ];
        let block = written(&lines);
        assert_eq!(read(&block), lines.map(|(name, value)| (name.to_string(), value.to_string())));
        assert_eq!(&block[..3], b"\0\0\xd9", "one byte for what the table has");
    }

    #[test]
    fn the_first_example_of_the_rfc() {
        // RFC 9204 B.1
        let block = Bytes::from_static(b"\x00\x00\x51\x0b/index.html");
        assert_eq!(read(&block), [(":path".to_string(), "/index.html".to_string())]);
    }

    #[test]
    fn references_to_a_dynamic_table_are_invalid_and_so_are_truncated_blocks() {
        let invalid: [&[u8]; 8] = [
            b"\x02\x00\x80",
            b"\0\0\x80",
            b"\0\0\x10",
            b"\0\0\x40\0",
            b"\0\0\0\0",
            b"\0\x80\xd9",
            b"\0\0\xff\xff",
            b"\0",
        ];
        for block in invalid {
            let error = decode(Bytes::from_static(block), 1000).unwrap_err();
            assert_eq!(error, BlockError::Invalid, "{}", block.escape_ascii());
        }
        let whole = written(&[("x-name", "value"), (":path", "/p")]);
        let lengths = (3..whole.len()).filter(|&end| decode(whole.slice(..end), 1000).is_ok());
        assert_eq!(lengths.count(), 1, "only between the two lines");
        let number = b"\0\0\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01";
        assert_eq!(decode(Bytes::from_static(number), 1000), Err(BlockError::Invalid));
    }

    #[test]
    fn a_header_block_counts_by_its_decoded_size() {
        // A byte each, and 42 when read.
        let mut block = vec![0, 0];
        block.resize(102, 0xd1);
        let size = ":method".len() + "GET".len() + 32;
        assert_eq!(decode(block.clone().into(), 100 * size).unwrap().len(), 100);
        assert_eq!(decode(block.into(), 100 * size - 1), Err(BlockError::TooLarge));
    }
}
