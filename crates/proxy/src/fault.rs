//! The reasons why a request got no response from a server.

use http::StatusCode;

/// Kind of a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultKind {
    /// The server could not be connected to.
    Connect,
    /// It did not respond in time.
    Timeout,
    /// The server disconnected before its response, or sent an invalid one.
    Broken,
    /// The server has reached its maximum number of requests.
    Busy,
    /// The client disconnected, its body is too large, or its request cannot be forwarded: not the server's failure.
    Body,
}

impl FaultKind {
    /// Its label in metrics.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Connect => "connect",
            Self::Timeout => "timeout",
            Self::Broken => "broken",
            Self::Busy => "busy",
            Self::Body => "body",
        }
    }

    /// The status that the client gets.
    pub const fn status(self) -> StatusCode {
        match self {
            Self::Connect | Self::Broken => StatusCode::BAD_GATEWAY,
            Self::Timeout => StatusCode::GATEWAY_TIMEOUT,
            Self::Busy => StatusCode::SERVICE_UNAVAILABLE,
            Self::Body => StatusCode::BAD_REQUEST,
        }
    }
}

/// A failure, in words for the log.
#[derive(Debug, thiserror::Error)]
#[error("{server}: {why}")]
pub struct Fault {
    pub kind: FaultKind,
    /// The server's address, or the proxy's name if no server was chosen.
    pub server: String,
    /// The cause, with the sources of the error.
    pub why: String,
}

/// An error with its chain of sources, because hyper's messages are terse.
pub(crate) fn in_words(error: &dyn std::error::Error) -> String {
    let mut words = error.to_string();
    let mut behind = error.source();
    while let Some(error) = behind {
        let next = error.to_string();
        if !words.contains(&next) {
            words.push_str(": ");
            words.push_str(&next);
        }
        behind = error.source();
    }
    words
}
