//! Facts about an error.

/// A line of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    pub file: String,
    /// Counted from 1.
    pub line: u32,
}

/// A stack frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// The running function, in PHP's notation.
    pub what: String,
    /// Place of the call; in a recorded stack, the current line. `None` if it is in PHP itself.
    pub place: Option<Place>,
}

/// An error, or an exception that led to another.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cause {
    /// A class (`RuntimeException`), a kind of error (`Fatal error`) or a status (`504 Gateway Timeout`).
    pub kind: String,
    pub message: String,
    pub place: Option<Place>,
    /// The stack, innermost frame first.
    pub frames: Vec<Frame>,
}

/// The request. Its secrets are hidden when it is shown.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Request {
    pub method: String,
    /// Path and query.
    pub target: String,
    pub headers: Vec<(String, String)>,
}

/// The content of an error page.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// The error.
    pub cause: Cause,
    /// The exceptions that caused it, nearest first.
    pub earlier: Vec<Cause>,
    /// Advice for the developer.
    pub hint: Option<String>,
    pub request: Request,
    /// The server's description, such as `PHP 8.2.29, classic mode`.
    pub server: String,
}
