//! Decodes the records that a web server sends over one connection, however the bytes are split: requests, their
//! bodies, and management records, which are answered at once.
//!
//! A connection serves one request at a time, as in PHP-FPM: a second one that begins before the first has ended is
//! refused (`CANT_MPX_CONN`). Only the variables of the current request are buffered, up to a limit.

use super::record::{self, EndStatus, HEADER, Header, KEEP_CONNECTION, RESPONDER, kind};
use crate::params::{InvalidParams, Params, write_pair};
use bytes::{Buf, Bytes, BytesMut};

/// Maximum content of a record that is read as a whole: `BEGIN_REQUEST` or `GET_VALUES`.
const MAX_SHORT_RECORD: usize = 4096;

/// A decoded event.
#[derive(Debug)]
pub enum Event {
    /// A request's variables are complete; its body follows.
    Request(RequestStart),
    /// The request's variables exceed the limit.
    TooLarge(u16),
    /// A part of the request's body; never empty.
    Body(Bytes),
    /// The request's body is complete.
    BodyEnd,
    /// The web server has aborted the request.
    Abort,
}

/// A request that begins.
#[derive(Debug)]
pub struct RequestStart {
    pub id: u16,
    /// The web server keeps the connection for further requests.
    pub keep_connection: bool,
    pub params: Params,
}

/// Violation of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Malformed {
    Version,
    Record,
    Params,
    /// A request begins with the number of a request that has not ended.
    Nested,
}

/// The content of a record that is being read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Content {
    Skipped,
    Params,
    Body,
}

/// The request that has begun.
#[derive(Debug)]
struct Active {
    id: u16,
    keep_connection: bool,
    params: Vec<u8>,
    stage: Stage,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Params,
    Body,
    Complete,
}

/// Reads one connection.
#[derive(Debug)]
pub struct Decoder {
    content: Content,
    /// Bytes left of the present record's content.
    remaining: usize,
    /// Bytes of padding after it.
    padding: usize,
    active: Option<Active>,
    max_params: usize,
    max_connections: usize,
}

impl Decoder {
    /// A decoder that accepts up to `max_params` bytes of variables. `max_connections` is the answer to `GET_VALUES`; 0
    /// for no limit.
    pub const fn new(max_params: usize, max_connections: usize) -> Self {
        Self { content: Content::Skipped, remaining: 0, padding: 0, active: None, max_params, max_connections }
    }

    /// `true` if a record or a request's variables are incomplete.
    pub fn is_mid_record(&self) -> bool {
        self.remaining > 0 || self.padding > 0 || matches!(&self.active, Some(active) if active.stage == Stage::Params)
    }

    /// `true` if all of the present request's body was read.
    pub fn is_body_complete(&self) -> bool {
        self.active.as_ref().is_none_or(|active| active.stage == Stage::Complete)
    }

    /// Bytes of variables that are kept.
    pub fn buffered_params(&self) -> usize {
        self.active.as_ref().map_or(0, |active| active.params.len())
    }

    /// Ends the request. Its remaining records are skipped.
    pub fn finish(&mut self) {
        self.active = None;
        self.content = Content::Skipped;
    }

    /// Decodes the next event; `None` if more input is needed. Answers to management records are written to `out`.
    ///
    /// # Errors
    /// The input violates the protocol; the connection cannot be read any further.
    pub fn next(&mut self, input: &mut BytesMut, out: &mut Vec<u8>) -> Result<Option<Event>, Malformed> {
        loop {
            if self.remaining > 0 {
                let taken = self.remaining.min(input.len());
                if taken == 0 {
                    return Ok(None);
                }
                self.remaining -= taken;
                match (self.content, &mut self.active) {
                    (Content::Params, Some(active)) => {
                        if active.params.len() + taken > self.max_params {
                            return Ok(Some(Event::TooLarge(active.id)));
                        }
                        active.params.extend_from_slice(&input[..taken]);
                        input.advance(taken);
                    }
                    (Content::Body, Some(_)) => return Ok(Some(Event::Body(take(input, taken)))),
                    _ => input.advance(taken),
                }
                continue;
            }
            if self.padding > 0 {
                let taken = self.padding.min(input.len());
                if taken == 0 {
                    return Ok(None);
                }
                self.padding -= taken;
                input.advance(taken);
                continue;
            }
            // Another protocol is recognized by its first byte.
            if input.first().is_some_and(|version| *version != record::VERSION) {
                return Err(Malformed::Version);
            }
            let Some(header) = input.first_chunk::<HEADER>() else { return Ok(None) };
            let header = Header::parse(header).ok_or(Malformed::Version)?;
            let is_short = matches!(header.kind, kind::BEGIN_REQUEST | kind::GET_VALUES);
            let length = usize::from(header.length);
            if is_short && length > MAX_SHORT_RECORD {
                return Err(Malformed::Record);
            }
            if is_short && input.len() < HEADER + length {
                return Ok(None);
            }
            input.advance(HEADER);
            self.padding = usize::from(header.padding);
            if is_short {
                let content = input.split_to(length);
                self.handle_short_record(header, &content, out)?;
                continue;
            }
            (self.content, self.remaining) = (Content::Skipped, length);
            if let Some(event) = self.begin_record(header, out)? {
                return Ok(Some(event));
            }
        }
    }

    /// Handles a record that was read as a whole.
    fn handle_short_record(&mut self, header: Header, content: &[u8], out: &mut Vec<u8>) -> Result<(), Malformed> {
        if header.kind == kind::GET_VALUES {
            let requested = Params::parse(content.to_vec()).map_err(|_| Malformed::Params)?;
            record::write(out, kind::GET_VALUES_RESULT, 0, &self.values(&requested));
            return Ok(());
        }
        let [role_high, role_low, flags, ..] = *content else { return Err(Malformed::Record) };
        match &self.active {
            Some(active) if active.id == header.id => return Err(Malformed::Nested),
            Some(_) => record::write_end(out, header.id, EndStatus::CannotMultiplex),
            None if u16::from_be_bytes([role_high, role_low]) != RESPONDER => {
                record::write_end(out, header.id, EndStatus::UnknownRole);
            }
            None => {
                let keep_connection = flags & KEEP_CONNECTION != 0;
                self.active = Some(Active { id: header.id, keep_connection, params: Vec::new(), stage: Stage::Params });
            }
        }
        Ok(())
    }

    /// Begins a record whose content is streamed. Returns the event that the record itself means, if any.
    fn begin_record(&mut self, header: Header, out: &mut Vec<u8>) -> Result<Option<Event>, Malformed> {
        let Some(active) = self.active.as_mut().filter(|active| active.id == header.id) else {
            let is_known = (kind::BEGIN_REQUEST..=kind::UNKNOWN_TYPE).contains(&header.kind);
            if header.id == 0 && !is_known {
                record::write(out, kind::UNKNOWN_TYPE, 0, &[header.kind, 0, 0, 0, 0, 0, 0, 0]);
            }
            // Rest of a request that was refused or has ended.
            return Ok(None);
        };
        match (header.kind, active.stage) {
            (kind::PARAMS, Stage::Params) if header.length == 0 => {
                active.stage = Stage::Body;
                let (id, keep_connection) = (active.id, active.keep_connection);
                match Params::parse(std::mem::take(&mut active.params)) {
                    Ok(params) => Ok(Some(Event::Request(RequestStart { id, keep_connection, params }))),
                    Err(InvalidParams::TooMany) => Ok(Some(Event::TooLarge(id))),
                    Err(InvalidParams::CutOff) => Err(Malformed::Params),
                }
            }
            (kind::PARAMS, Stage::Params) => {
                self.content = Content::Params;
                Ok(None)
            }
            (kind::STDIN, Stage::Body) if header.length == 0 => {
                active.stage = Stage::Complete;
                Ok(Some(Event::BodyEnd))
            }
            (kind::STDIN, Stage::Body) => {
                self.content = Content::Body;
                Ok(None)
            }
            (kind::ABORT_REQUEST, Stage::Params) => {
                record::write_end(out, header.id, EndStatus::Complete);
                self.active = None;
                Ok(None)
            }
            (kind::ABORT_REQUEST, _) => Ok(Some(Event::Abort)),
            // A body before the variables are complete, or variables after them.
            (kind::STDIN | kind::PARAMS, _) if header.length > 0 => Err(Malformed::Record),
            _ => Ok(None),
        }
    }

    /// Answers `GET_VALUES`.
    fn values(&self, requested: &Params) -> Vec<u8> {
        let most = (self.max_connections > 0).then_some(self.max_connections);
        let known = [("FCGI_MAX_CONNS", most), ("FCGI_MAX_REQS", most), ("FCGI_MPXS_CONNS", Some(0))];
        let mut result = Vec::new();
        for (name, value) in known {
            if let Some(value) = value.filter(|_| requested.get(name).is_some()) {
                write_pair(&mut result, name.as_bytes(), value.to_string().as_bytes());
            }
        }
        result
    }
}

fn take(input: &mut BytesMut, length: usize) -> Bytes {
    // Taking the whole buffer avoids shared ownership of it.
    if length == input.len() { std::mem::take(input).freeze() } else { input.split_to(length).freeze() }
}

#[cfg(test)]
#[path = "decoder_tests.rs"]
mod tests;
