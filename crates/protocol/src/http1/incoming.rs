//! A request's body in HTTP/1: decoded from the input by its length, or chunk by chunk.
//!
//! Chunked bodies are parsed strictly (RFC 9112 7.1): lines end with CR LF, and a length consists of hexadecimal digits
//! only. Extensions and trailers are bounded and dropped.

use bytes::{Buf, Bytes, BytesMut};

/// Maximum bytes of extensions in a whole body.
const MAX_EXTENSION_BYTES: usize = 16 * 1024;
/// Maximum bytes of trailers.
const MAX_TRAILER_BYTES: usize = 16 * 1024;
/// Maximum lines of trailers.
const MAX_TRAILER_LINES: usize = 100;

/// Errors of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Broken {
    #[error("invalid chunk of a body")]
    Chunk,
    #[error("chunk length too large")]
    Length,
    #[error("chunk extensions too long")]
    Extensions,
    #[error("invalid or too many trailers")]
    Trailers,
    #[error("the connection ended within the body")]
    Early,
    #[error("the body can no longer be read: the response has begun")]
    Over,
}

/// Decodes a body from the input.
#[derive(Debug)]
pub(crate) enum Decoder {
    /// This many bytes are still to come.
    Length(u64),
    Chunked(Chunks),
    /// Nothing more can be read.
    Broken(Broken),
}

impl Decoder {
    pub(crate) const DONE: Self = Self::Length(0);

    pub(crate) fn chunked() -> Self {
        Self::Chunked(Chunks { state: State::Start, left: 0, extensions: 0, trailers: Vec::new() })
    }

    /// `true` if the whole body has been taken.
    pub(crate) fn is_done(&self) -> bool {
        matches!(self, Self::Length(0)) || matches!(self, Self::Chunked(chunks) if chunks.state == State::End)
    }

    /// The next part of the body in `input`; `None` if there is none yet, or the body is complete.
    pub(crate) fn take(&mut self, input: &mut BytesMut) -> Result<Option<Bytes>, Broken> {
        let taken = match self {
            Self::Length(left) => Ok(take_data(left, input)),
            Self::Chunked(chunks) => chunks.take(input),
            Self::Broken(why) => Err(*why),
        };
        if let Err(why) = taken {
            *self = Self::Broken(why);
        }
        taken
    }
}

fn take_data(left: &mut u64, input: &mut BytesMut) -> Option<Bytes> {
    let length = usize::try_from(*left).unwrap_or(usize::MAX).min(input.len());
    if length == 0 {
        return None;
    }
    *left -= length as u64;
    // Taking the whole buffer avoids shared ownership of it.
    Some(if length == input.len() { std::mem::take(input).freeze() } else { input.split_to(length).freeze() })
}

/// Position of the next byte in a chunked body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// The first digit of a length.
    Start,
    /// A further digit.
    Size,
    /// Blanks after the length.
    Blanks,
    Extension,
    SizeEnd,
    Data,
    DataReturn,
    DataEnd,
    /// After the last chunk, at the start of a line.
    LineStart,
    Trailer,
    TrailerEnd,
    LastEnd,
    End,
}

/// A chunked body.
#[derive(Debug)]
pub(crate) struct Chunks {
    state: State,
    /// Bytes left of the chunk.
    left: u64,
    extensions: usize,
    trailers: Vec<u8>,
}

impl Chunks {
    fn take(&mut self, input: &mut BytesMut) -> Result<Option<Bytes>, Broken> {
        loop {
            match self.state {
                State::End => return Ok(None),
                State::Data => {
                    let data = take_data(&mut self.left, input);
                    if self.left == 0 {
                        self.state = State::DataReturn;
                    }
                    return Ok(data);
                }
                _ => {}
            }
            let mut used = 0;
            while used < input.len() && !matches!(self.state, State::Data | State::End) {
                let byte = input[used];
                used += 1;
                self.state = self.step(byte)?;
            }
            input.advance(used);
            if input.is_empty() {
                // Gives the memory back.
                *input = BytesMut::new();
                if !matches!(self.state, State::End) {
                    return Ok(None);
                }
            }
        }
    }

    fn step(&mut self, byte: u8) -> Result<State, Broken> {
        Ok(match (self.state, byte) {
            (State::Start | State::Size, digit) if digit.is_ascii_hexdigit() => {
                let digit = char::from(digit).to_digit(16).unwrap_or(0);
                let longer = self.left.checked_mul(16).and_then(|left| left.checked_add(u64::from(digit)));
                self.left = longer.ok_or(Broken::Length)?;
                State::Size
            }
            (State::Size | State::Blanks, b' ' | b'\t') => State::Blanks,
            (State::Size | State::Blanks, b';') => State::Extension,
            (State::Size | State::Blanks | State::Extension, b'\r') => State::SizeEnd,
            // Other parsers might take a bare LF for the line's end: request smuggling.
            (State::Extension, b'\n') => return Err(Broken::Chunk),
            (State::Extension, _) => {
                self.extensions += 1;
                if self.extensions >= MAX_EXTENSION_BYTES {
                    return Err(Broken::Extensions);
                }
                State::Extension
            }
            (State::SizeEnd, b'\n') if self.left == 0 => State::LineStart,
            (State::SizeEnd, b'\n') => State::Data,
            (State::DataReturn, b'\r') => State::DataEnd,
            (State::DataEnd, b'\n') => State::Start,
            (State::LineStart, b'\r') => State::LastEnd,
            // Only some parsers accept a bare LF as a line's end: request smuggling.
            (State::LineStart | State::Trailer, b'\n') => return Err(Broken::Trailers),
            (State::LineStart | State::Trailer, byte) => {
                self.trailers.push(byte);
                if self.trailers.len() >= MAX_TRAILER_BYTES {
                    return Err(Broken::Trailers);
                }
                if byte == b'\r' { State::TrailerEnd } else { State::Trailer }
            }
            (State::TrailerEnd, b'\n') => {
                self.trailers.push(byte);
                State::LineStart
            }
            (State::LastEnd, b'\n') => {
                self.check_trailers()?;
                State::End
            }
            _ => return Err(Broken::Chunk),
        })
    }

    /// Validates the trailers: a lenient reading could enable request smuggling.
    fn check_trailers(&mut self) -> Result<(), Broken> {
        if self.trailers.is_empty() {
            return Ok(());
        }
        let mut text = std::mem::take(&mut self.trailers);
        text.extend_from_slice(b"\r\n");
        let mut lines = [httparse::EMPTY_HEADER; MAX_TRAILER_LINES];
        match httparse::parse_headers(&text, &mut lines) {
            Ok(httparse::Status::Complete((length, _))) if length == text.len() => Ok(()),
            _ => Err(Broken::Trailers),
        }
    }
}

#[cfg(test)]
#[path = "incoming_tests.rs"]
mod tests;
