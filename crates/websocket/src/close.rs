//! Close codes (RFC 6455 7.4) and the closing of a connection.

use bytes::Bytes;

/// Longest reason, in bytes.
const MAX_REASON: usize = 123;

/// A broken rule: the code to close with, and the reason.
pub(crate) type Violation = (u16, &'static str);

/// The end of a connection: a code and a reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Close {
    /// The code; `None` if the frame has none, which applications see as 1005.
    pub code: Option<u16>,
    pub reason: Bytes,
}

impl Close {
    /// Without a code.
    pub const NO_STATUS: Self = Self { code: None, reason: Bytes::new() };
    /// The client must connect again: the server stops, or the settings of the connection's protocol have changed.
    pub const GOING_AWAY: Self = Self::of(1001, "the server restarts");
    /// A broken frame.
    pub const PROTOCOL_ERROR: u16 = 1002;
    /// A text that is not UTF-8.
    pub const INVALID_PAYLOAD: u16 = 1007;
    /// A message that is not accepted.
    pub const POLICY_VIOLATION: u16 = 1008;
    /// A message that is too large.
    pub const MESSAGE_TOO_BIG: u16 = 1009;
    /// The handler failed.
    pub const INTERNAL_ERROR: u16 = 1011;
    /// The server has no memory left; try again later.
    pub const TRY_AGAIN_LATER: u16 = 1013;
    /// The connection ended without a close frame. Never on the wire.
    pub const ABNORMAL: u16 = 1006;

    /// A close that the server begins.
    pub const fn of(code: u16, reason: &'static str) -> Self {
        Self { code: Some(code), reason: Bytes::from_static(reason.as_bytes()) }
    }

    /// The code for an application: 1005 stands for none.
    pub fn number(&self) -> u16 {
        self.code.unwrap_or(1005)
    }

    /// The payload of a close frame.
    pub fn payload(&self) -> Vec<u8> {
        let Some(code) = self.code else { return Vec::new() };
        let mut end = self.reason.len().min(MAX_REASON);
        // The reason must stay valid UTF-8 when it is cut.
        while std::str::from_utf8(&self.reason[..end]).is_err() && end > 0 {
            end -= 1;
        }
        [&code.to_be_bytes(), &self.reason[..end]].concat()
    }

    /// Reads a close frame's payload. An error is the code to close with instead, and the reason.
    ///
    /// # Errors
    /// The payload violates the protocol.
    pub(crate) fn parse(payload: &[u8]) -> Result<Self, Violation> {
        if payload.is_empty() {
            return Ok(Self::NO_STATUS);
        }
        let Some((code, reason)) = payload.split_first_chunk() else {
            return Err((Self::PROTOCOL_ERROR, "the close code is truncated"));
        };
        let code = u16::from_be_bytes(*code);
        if !matches!(code, 1000..=1003 | 1007..=1014 | 3000..=4999) {
            return Err((Self::PROTOCOL_ERROR, "the close code is invalid"));
        }
        if std::str::from_utf8(reason).is_err() {
            return Err((Self::INVALID_PAYLOAD, "the close reason is not UTF-8"));
        }
        Ok(Self { code: Some(code), reason: Bytes::copy_from_slice(reason) })
    }
}
