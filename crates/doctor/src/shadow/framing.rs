//! Finds the end of a message's body (RFC 9112, section 6.3). Bodies pass byte for byte, with their chunk sizes and
//! trailers; the decoder also extracts their content for the comparison.

use anyhow::{Result, bail};

/// Maximum length of the line before a chunk, and of all trailers, in bytes.
const MAX_CHUNK_LINE: usize = 4096;
const MAX_TRAILERS: usize = 64 << 10;

/// Kind of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Framing {
    Length(u64),
    Chunked,
    /// To the end of the connection.
    UntilClose,
}

/// Position within a body.
#[derive(Debug)]
pub(super) struct Decoder(State);

#[derive(Debug)]
enum State {
    Done,
    Length(u64),
    UntilClose,
    /// The line before a chunk: its size, the number of digits and the length so far, and the last byte.
    Size {
        size: u64,
        digits: u8,
        length: usize,
        last: u8,
    },
    Data(u64),
    /// Number of bytes of the CRLF after a chunk that have been read.
    AfterData(usize),
    /// Length of the current line without CR and LF, length of all lines, and the last byte.
    Trailers {
        line: usize,
        all: usize,
        last: u8,
    },
}

const NEXT_CHUNK: State = State::Size { size: 0, digits: 0, length: 0, last: 0 };

impl Decoder {
    pub(super) const fn new(framing: Framing) -> Self {
        Self(match framing {
            Framing::Length(0) => State::Done,
            Framing::Length(length) => State::Length(length),
            Framing::Chunked => NEXT_CHUNK,
            Framing::UntilClose => State::UntilClose,
        })
    }

    pub(super) const fn is_done(&self) -> bool {
        matches!(self.0, State::Done)
    }

    /// `true` if the end of the connection is the end of the body.
    pub(super) const fn ends_with_connection(&self) -> bool {
        matches!(self.0, State::UntilClose)
    }

    /// Reads bytes and returns how many of them belong to the body. `data` gets the content without its framing.
    ///
    /// # Errors
    /// The chunks are malformed.
    pub(super) fn feed(&mut self, input: &[u8], mut data: impl FnMut(&[u8])) -> Result<usize> {
        let mut at = 0;
        while at < input.len() {
            let rest = &input[at..];
            at += match &mut self.0 {
                State::Done => break,
                State::UntilClose => {
                    data(rest);
                    rest.len()
                }
                State::Length(left) => {
                    let part = first(rest, left);
                    data(part);
                    if *left == 0 {
                        self.0 = State::Done;
                    }
                    part.len()
                }
                State::Data(left) => {
                    let part = first(rest, left);
                    data(part);
                    if *left == 0 {
                        self.0 = State::AfterData(0);
                    }
                    part.len()
                }
                _ => {
                    self.line(rest[0])?;
                    1
                }
            };
        }
        Ok(at)
    }

    /// Reads a byte between chunks.
    fn line(&mut self, byte: u8) -> Result<()> {
        match &mut self.0 {
            State::Size { size, digits, length, last } => {
                *length += 1;
                if *length > MAX_CHUNK_LINE {
                    bail!("a chunk size of more than {MAX_CHUNK_LINE} bytes");
                }
                let digit = char::from(byte).to_digit(16).filter(|_| *length == usize::from(*digits) + 1);
                match (byte, digit) {
                    (_, Some(digit)) if *digits < 16 => {
                        *size = (*size << 4) | u64::from(digit);
                        *digits += 1;
                    }
                    (b'\n', _) if *last == b'\r' && *digits > 0 => {
                        self.0 = match *size {
                            0 => State::Trailers { line: 0, all: 0, last: 0 },
                            size => State::Data(size),
                        };
                        return Ok(());
                    }
                    (b'\r' | b';' | b' ' | b'\t', None) if *digits > 0 && *last != b'\r' => {}
                    (_, None)
                        if *length > usize::from(*digits) + 1 && !matches!(byte, b'\r' | b'\n') && *last != b'\r' => {}
                    _ => bail!("a malformed chunk size"),
                }
                *last = byte;
            }
            State::AfterData(read) => match (*read, byte) {
                (0, b'\r') => *read = 1,
                (1, b'\n') => self.0 = NEXT_CHUNK,
                _ => bail!("a chunk that is longer than its size"),
            },
            State::Trailers { line, all, last } => {
                *all += 1;
                match byte {
                    b'\n' if *last != b'\r' => bail!("a malformed trailer"),
                    b'\n' if *line == 0 => {
                        self.0 = State::Done;
                        return Ok(());
                    }
                    b'\n' => *line = 0,
                    b'\r' => {}
                    _ => *line += 1,
                }
                if *all > MAX_TRAILERS {
                    bail!("trailers of more than {MAX_TRAILERS} bytes");
                }
                *last = byte;
            }
            State::Done | State::Length(_) | State::UntilClose | State::Data(_) => {}
        }
        Ok(())
    }
}

/// The part of `input` that belongs to the next `left` bytes, which it reduces.
fn first<'a>(input: &'a [u8], left: &mut u64) -> &'a [u8] {
    let part = &input[..usize::try_from(*left).unwrap_or(usize::MAX).min(input.len())];
    *left -= part.len() as u64;
    part
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Content of a body that arrives in pieces of this size, the number of bytes that belong to it, and whether it has
    /// ended.
    fn read(framing: Framing, input: &[u8], piece: usize) -> Result<(Vec<u8>, usize, bool)> {
        let (mut decoder, mut content, mut used) = (Decoder::new(framing), Vec::new(), 0);
        for part in input.chunks(piece) {
            let own = decoder.feed(part, |data| content.extend_from_slice(data))?;
            used += own;
            if own < part.len() {
                break;
            }
        }
        Ok((content, used, decoder.is_done()))
    }

    #[test]
    fn a_body_ends_by_its_framing_however_it_is_split() {
        let chunked = b"5;a=\"b\"\r\nhello\r\n0A \r\n, chunked!\r\n000\r\nX-Sum: 1\r\nX-b: 2\r\n\r\nGET /next";
        let own = chunked.len() - "GET /next".len();
        for piece in 1..=chunked.len() {
            let found = read(Framing::Chunked, chunked, piece).unwrap();
            assert_eq!(found, (b"hello, chunked!".to_vec(), own, true), "{piece}");
            assert_eq!(read(Framing::Length(9), chunked, piece).unwrap(), (b"5;a=\"b\"\r\n".to_vec(), 9, true));
            assert_eq!(read(Framing::UntilClose, chunked, piece).unwrap(), (chunked.to_vec(), chunked.len(), false));
        }
        assert_eq!(read(Framing::Length(0), b"GET", 3).unwrap(), (Vec::new(), 0, true));
        assert_eq!(read(Framing::Chunked, b"0\r\n\r\nGET", 8).unwrap(), (Vec::new(), 5, true));
        assert_eq!(read(Framing::Chunked, b"5\r\nhel", 9).unwrap(), (b"hel".to_vec(), 6, false));
    }

    #[test]
    fn malformed_chunks_are_refused() {
        let long = format!("5;{}\r\n", "x".repeat(MAX_CHUNK_LINE));
        let trailers = format!("0\r\n{}", "a: b\r\n".repeat(MAX_TRAILERS / 6 + 1));
        for wrong in [
            "\r\n",
            "x\r\n",
            "-1\r\n",
            " 5\r\n",
            "5\nhello",
            "5\r\nhello!",
            "5\r\nhello\n",
            "5\rx\n",
            "5x\r\n",
            ";\r\n",
            "11112222333344445\r\n",
            "0\r\na: b\n",
            &long,
            &trailers,
        ] {
            assert!(read(Framing::Chunked, wrong.as_bytes(), wrong.len()).is_err(), "{wrong:.40}");
        }
    }
}
