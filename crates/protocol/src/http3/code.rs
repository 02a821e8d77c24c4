//! Error codes of HTTP/3 streams and connections (RFC 9114 8.1, RFC 9204 6).

use crate::rejection::Rejection;
use http::StatusCode;
use quinn::VarInt;

/// An error code on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Code(u32);

impl Code {
    pub(super) const NO_ERROR: Self = Self(0x100);
    pub(super) const INTERNAL_ERROR: Self = Self(0x102);
    pub(super) const STREAM_CREATION_ERROR: Self = Self(0x103);
    pub(super) const CLOSED_CRITICAL_STREAM: Self = Self(0x104);
    pub(super) const FRAME_UNEXPECTED: Self = Self(0x105);
    pub(super) const FRAME_ERROR: Self = Self(0x106);
    pub(super) const EXCESSIVE_LOAD: Self = Self(0x107);
    pub(super) const ID_ERROR: Self = Self(0x108);
    pub(super) const SETTINGS_ERROR: Self = Self(0x109);
    pub(super) const MISSING_SETTINGS: Self = Self(0x10a);
    pub(super) const REQUEST_REJECTED: Self = Self(0x10b);
    pub(super) const REQUEST_CANCELLED: Self = Self(0x10c);
    pub(super) const REQUEST_INCOMPLETE: Self = Self(0x10d);
    pub(super) const MESSAGE_ERROR: Self = Self(0x10e);
    pub(super) const DECOMPRESSION_FAILED: Self = Self(0x200);
    pub(super) const ENCODER_STREAM_ERROR: Self = Self(0x201);
}

impl From<Code> for VarInt {
    fn from(code: Code) -> Self {
        Self::from_u32(code.0)
    }
}

/// Reason for ending a stream or a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// The connection cannot continue.
    Connection(Code, &'static str),
    /// This stream cannot continue.
    Stream(Code, &'static str),
    /// The client has ended the stream or the connection itself.
    Gone,
}

/// Reason for ending a stream whose head is not complete in time.
pub(super) const HEAD_TOO_SLOW: &str = "the head takes too long";

impl Fault {
    /// The rejection and status for logs and counters, if the client violated the protocol.
    pub(super) fn rejection(&self) -> Option<(Rejection, StatusCode)> {
        match self {
            Self::Stream(_, HEAD_TOO_SLOW) => Some((Rejection::HeaderTimeout, StatusCode::REQUEST_TIMEOUT)),
            // The budget has no room, or the client cancelled the request.
            Self::Stream(Code::EXCESSIVE_LOAD | Code::REQUEST_CANCELLED, _) | Self::Gone => None,
            Self::Connection(..) | Self::Stream(..) => Some((Rejection::Http3, StatusCode::BAD_REQUEST)),
        }
    }
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Connection(code, why) | Self::Stream(code, why) => write!(f, "{why} (0x{:x})", code.0),
            Self::Gone => f.write_str("the client has gone"),
        }
    }
}

impl std::error::Error for Fault {}
