//! Records of FastCGI: their headers, and writing them (FastCGI specification 1.0, sections 3.3 and 5 to 8).

/// The first byte of every record.
pub const VERSION: u8 = 1;
/// Bytes of a record's header.
pub const HEADER: usize = 8;
/// Maximum content of one record that is written: a multiple of eight.
pub const MAX_CONTENT: usize = 0xfff8;

/// Types of records.
pub mod kind {
    pub const BEGIN_REQUEST: u8 = 1;
    pub const ABORT_REQUEST: u8 = 2;
    pub const END_REQUEST: u8 = 3;
    pub const PARAMS: u8 = 4;
    pub const STDIN: u8 = 5;
    pub const STDOUT: u8 = 6;
    pub const STDERR: u8 = 7;
    pub const GET_VALUES: u8 = 9;
    pub const GET_VALUES_RESULT: u8 = 10;
    pub const UNKNOWN_TYPE: u8 = 11;
}

/// The role of a server that responds to requests. Authorizers and filters are not served.
pub const RESPONDER: u16 = 1;
/// The flag of a request after which the connection stays open.
pub const KEEP_CONNECTION: u8 = 1;

/// The outcome of a request at the level of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum EndStatus {
    Complete = 0,
    CannotMultiplex = 1,
    UnknownRole = 3,
}

/// A record's header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    pub kind: u8,
    pub id: u16,
    pub length: u16,
    pub padding: u8,
}

impl Header {
    /// Reads a header; `None` if it is of another version.
    pub const fn parse(bytes: &[u8; HEADER]) -> Option<Self> {
        let [version, kind, id_high, id_low, length_high, length_low, padding, _] = *bytes;
        if version != VERSION {
            return None;
        }
        let (id, length) = (u16::from_be_bytes([id_high, id_low]), u16::from_be_bytes([length_high, length_low]));
        Some(Self { kind, id, length, padding })
    }

    /// The bytes of a header without padding.
    pub const fn bytes(kind: u8, id: u16, length: u16) -> [u8; HEADER] {
        let ([id_high, id_low], [length_high, length_low]) = (id.to_be_bytes(), length.to_be_bytes());
        [VERSION, kind, id_high, id_low, length_high, length_low, 0, 0]
    }
}

/// Writes content as one record, or as several where it is longer than one holds. Empty content writes the record that
/// ends a stream.
pub fn write(out: &mut Vec<u8>, kind: u8, id: u16, content: &[u8]) {
    if content.is_empty() {
        out.extend_from_slice(&Header::bytes(kind, id, 0));
    }
    for part in content.chunks(MAX_CONTENT) {
        // A chunk is never longer than a record.
        out.extend_from_slice(&Header::bytes(kind, id, part.len() as u16));
        out.extend_from_slice(part);
    }
}

/// Writes the end of a request.
pub fn write_end(out: &mut Vec<u8>, id: u16, status: EndStatus) {
    write(out, kind::END_REQUEST, id, &[0, 0, 0, 0, status as u8, 0, 0, 0]);
}
