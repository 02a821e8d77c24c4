//! Why there is no certificate, and what that says about the next attempt.

use instant_acme::Error;
use std::time::{Duration, SystemTime};

/// Problems (RFC 8555 section 6.7) have this before their kind.
const PREFIX: &str = "urn:ietf:params:acme:error:";
/// Pause of orders after the authority has reported a rate limit without a duration.
const RATE_LIMITED: Duration = Duration::from_secs(15 * 60);
/// The longest pause that the authority is granted.
const MAX_BACKOFF: Duration = Duration::from_secs(2 * 86400);
/// Maximum number of repetitions of a step whose nonce was refused, besides the library's.
pub(super) const NONCES: usize = 8;

/// Repeats a step whose nonce was refused: clients that share a nonce server with many others are refused now and then
/// (RFC 8555 section 6.5).
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

/// An attempt that failed.
#[derive(Debug, Clone)]
pub(super) struct Failure {
    /// The failure, and the remedy.
    pub(super) message: String,
    /// The affected party.
    pub(super) whose: Whose,
    /// Not before then.
    pub(super) not_before: Option<SystemTime>,
}

/// The party that a failure affects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Whose {
    /// The name: others may succeed.
    Name,
    /// The authority or the way to it: no order would succeed now.
    Authority,
    /// Our account there is gone: the next attempt makes another.
    Account,
}

impl Failure {
    pub(super) fn of_name(message: impl Into<String>) -> Self {
        Self { message: message.into(), whose: Whose::Name, not_before: None }
    }

    pub(super) fn of_authority(message: impl Into<String>) -> Self {
        Self { message: message.into(), whose: Whose::Authority, not_before: None }
    }

    /// Converts an error of the protocol's library; `retry_after` is from the authority's last refusal.
    pub(super) fn of(doing: &str, error: &Error, retry_after: Option<SystemTime>) -> Self {
        let kind = kind(error);
        let whose = match (error, kind) {
            (Error::Api(_), "accountDoesNotExist") => Whose::Account,
            (
                Error::Api(_),
                "rateLimited" | "serverInternal" | "badNonce" | "externalAccountRequired" | "unauthorized",
            ) if !doing.starts_with(CHECKING) => Whose::Authority,
            (Error::Api(_) | Error::Timeout(_), _) => Whose::Name,
            _ => Whose::Authority,
        };
        let now = SystemTime::now();
        let not_before = match (kind, retry_after) {
            (_, Some(at)) => Some(at.min(now + MAX_BACKOFF)),
            ("rateLimited", None) => Some(now + RATE_LIMITED),
            _ => None,
        };
        let hint = match kind {
            "externalAccountRequired" => "; set `acme.eab` to the key id and key that the authority gave you",
            "invalidContact" | "unsupportedContact" => "; set `acme.email` to an address that the authority takes",
            "userActionRequired" => "; the authority wants you to agree to something first",
            "invalidProfile" => "; see `acme.profile`",
            "caa" => "; the domain's CAA records do not allow this authority",
            _ => "",
        };
        Self { message: format!("{doing}: {}{hint}", chain(error)), whose, not_before }
    }
}

/// The state of an order while the authority checks the name: a problem here concerns that name.
pub(super) const CHECKING: &str = "the authority could not check the name";

/// The kind of a problem, without what all have in common.
pub(super) fn kind(error: &Error) -> &str {
    match error {
        Error::Api(problem) => problem.r#type.as_deref().and_then(|kind| kind.strip_prefix(PREFIX)).unwrap_or(""),
        _ => "",
    }
}

/// An error with what it came from. It may hold what a server far away wrote: of bounded length, on one line.
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
