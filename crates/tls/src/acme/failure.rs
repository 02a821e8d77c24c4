//! Failures of ACME orders, and their effect on the next attempt.

use instant_acme::Error;
use std::time::{Duration, SystemTime};

/// Prefix of problem types (RFC 8555 section 6.7).
const PREFIX: &str = "urn:ietf:params:acme:error:";
/// Pause of all orders after the authority reported a rate limit without a duration.
const RATE_LIMITED: Duration = Duration::from_secs(15 * 60);
/// Maximum pause, even if the authority asks for a longer one.
const MAX_BACKOFF: Duration = Duration::from_secs(2 * 86400);
/// Maximum number of retries after a refused nonce, in addition to the library's.
pub(super) const NONCES: usize = 8;

/// Retries a step while its nonce is refused, which happens now and then where many clients share a nonce server (RFC
/// 8555 section 6.5).
macro_rules! patiently {
    ($step:expr) => {{
        let mut left = $crate::acme::failure::NONCES;
        loop {
            match $step.await {
                Err(error) if left > 0 && $crate::acme::failure::kind(&error) == "badNonce" => left -= 1,
                result => break result,
            }
        }
    }};
}
pub(super) use patiently;

/// A failed attempt.
#[derive(Debug, Clone)]
pub(super) struct Failure {
    /// The error message, with the remedy.
    pub(super) message: String,
    /// The affected scope.
    pub(super) whose: FailureScope,
    /// Earliest time of the next attempt.
    pub(super) not_before: Option<SystemTime>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FailureScope {
    /// Only this name: orders for others may succeed.
    Name,
    /// The authority or the connection to it: no order would succeed now.
    Authority,
    /// The account no longer exists: the next attempt creates another.
    Account,
}

impl Failure {
    pub(super) fn of_name(message: impl Into<String>) -> Self {
        Self { message: message.into(), whose: FailureScope::Name, not_before: None }
    }

    pub(super) fn of_authority(message: impl Into<String>) -> Self {
        Self { message: message.into(), whose: FailureScope::Authority, not_before: None }
    }

    /// Converts an error of the ACME library; `retry_after` is from the authority's last refusal.
    pub(super) fn of(doing: &str, error: &Error, retry_after: Option<SystemTime>) -> Self {
        let kind = kind(error);
        let whose = match (error, kind) {
            (Error::Api(_), "accountDoesNotExist") => FailureScope::Account,
            (
                Error::Api(_),
                "rateLimited" | "serverInternal" | "badNonce" | "externalAccountRequired" | "unauthorized",
            ) if !doing.starts_with(CHECKING) => FailureScope::Authority,
            (Error::Api(_) | Error::Timeout(_), _) => FailureScope::Name,
            _ => FailureScope::Authority,
        };
        let now = SystemTime::now();
        let not_before = match (kind, retry_after) {
            (_, Some(at)) => Some(at.min(now + MAX_BACKOFF)),
            ("rateLimited", None) => Some(now + RATE_LIMITED),
            _ => None,
        };
        let hint = match kind {
            "externalAccountRequired" => "; set `acme.eab` to the key id and key that the authority gave you",
            "invalidContact" | "unsupportedContact" => "; set `acme.email` to an address that the authority accepts",
            "userActionRequired" => "; the authority requires an action by the account's owner first",
            "invalidProfile" => "; see `acme.profile`",
            "caa" => "; the domain's CAA records do not allow this authority",
            _ => "",
        };
        Self { message: format!("{doing}: {}{hint}", chain(error)), whose, not_before }
    }
}

/// Step name while the authority checks the name: a problem in this step concerns that name only.
pub(super) const CHECKING: &str = "the authority could not check the name";

/// The type of a problem, without the common prefix.
pub(super) fn kind(error: &Error) -> &str {
    match error {
        Error::Api(problem) => problem.r#type.as_deref().and_then(|kind| kind.strip_prefix(PREFIX)).unwrap_or(""),
        _ => "",
    }
}

/// Formats an error with its sources. They may contain text from a remote server, so the length is bounded and the text
/// is on one line.
pub(super) fn chain(error: &dyn std::error::Error) -> String {
    const MAX_TEXT_LEN: usize = 500;
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        source = cause.source();
    }
    let one_line: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(MAX_TEXT_LEN).collect();
    one_line
}
