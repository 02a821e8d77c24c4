//! Facts about an error.

/// A line of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    pub file: String,
    /// Counted from 1.
    pub line: u32,
}

/// One step of the way that PHP has gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// The running function, as PHP writes it.
    pub what: String,
    /// Where it was started; none for PHP's own functions.
    pub place: Option<Place>,
}

/// An error, or an exception that led to another.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cause {
    /// A class (`RuntimeException`), a kind of error (`Fatal error`) or a status (`504 Gateway Timeout`).
    pub kind: String,
    pub message: String,
    pub place: Option<Place>,
    /// The innermost first.
    pub frames: Vec<Frame>,
}

/// The request. Its secrets are left out when it is shown.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Request {
    pub method: String,
    /// Path and query.
    pub target: String,
    pub headers: Vec<(String, String)>,
}

/// All that a page says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// The error.
    pub cause: Cause,
    /// Its causes, the nearest first.
    pub earlier: Vec<Cause>,
    /// Advice for the developer.
    pub hint: Option<String>,
    pub request: Request,
    /// The server, such as `PHP 8.2.29, classic mode`.
    pub server: String,
}
