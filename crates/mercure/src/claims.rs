//! The claims of a token about Mercure, of 0.x or 1.0, and the reasons to refuse one.

use howdah_live::Selector;
use std::time::SystemTime;

/// Maximum number of selectors of a claim, or of matchers of an access token.
pub(crate) const MAX_SELECTORS: usize = 1000;

/// The claims of a verified token.
#[derive(Debug, Default)]
pub struct Claims {
    /// The topics that the bearer may publish to. `None`: the bearer may not publish.
    pub publish: Option<Vec<Selector>>,
    /// The topics whose private updates the bearer may receive. `None`: the bearer is not a subscriber.
    pub subscribe: Option<Vec<Selector>>,
    /// Data about the bearer, as JSON.
    pub payload: Option<Box<str>>,
    /// The time at which it expires.
    pub expires: Option<SystemTime>,
    /// It is an access token of Mercure 1.0.
    pub is_access_token: bool,
    /// For each detail of an access token that allows to subscribe: its topics, and data about such subscriptions.
    pub(crate) payloads: Vec<(Vec<Selector>, Option<Box<str>>)>,
}

/// Reason why a token is refused, for the log only: clients do not learn it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    #[error("not a token of three parts in base64url")]
    Malformed,
    #[error("no key has its `kid`")]
    KeyId,
    #[error("its algorithm is not the key's")]
    Algorithm,
    #[error("its critical extensions are not supported")]
    Critical,
    #[error("its signature is wrong")]
    Signature,
    #[error("its claims are missing or malformed")]
    Claims,
    #[error("its audience is not this hub")]
    Audience,
    #[error("it has expired")]
    Expired,
    #[error("it is not valid yet")]
    NotYet,
}

impl Claims {
    /// The payload of a subscription with this matcher: that of the first detail that matches it as if it were a topic.
    pub fn payload_of(&self, matcher: &Selector) -> Option<Box<str>> {
        let is_of = |allowed: &Selector| {
            allowed.matches(matcher.text()) || (allowed.is_same_kind(matcher) && allowed.text() == matcher.text())
        };
        let (_, payload) = self.payloads.iter().find(|(topics, _)| topics.iter().any(is_of))?;
        payload.clone()
    }
}
