//! The Mercure protocol (0.x, and 1.0 as of draft 08), without HTTP: tokens, forms, events and the documents of
//! subscriptions.
//!
//! Reading order: `key`, `keys`, `claims`, `token` and `access_token` (authorization), `matcher` (topics of 1.0),
//! `form`, `publication` and `event` (from a form to an update), `document` and `active` (lists of subscriptions of 0.x
//! and 1.0).
#![forbid(unsafe_code)]

mod access_token;
mod active;
mod claims;
pub mod document;
pub mod event;
pub mod form;
mod key;
mod keys;
mod matcher;
mod publication;
mod token;

pub use access_token::DETAIL_TYPE;
pub use active::EVENT_TYPE;
pub use claims::{Claims, TokenError};
pub use key::KeyError;
pub use keys::Keys;
pub use matcher::{MatchType, MatcherError};
pub use publication::{Publication, PublicationError, check_id};

use aws_lc_rs::rand;
use howdah_live::{Hub, Interest, Update};
use std::fmt::Write as _;

/// Path of the hub.
pub const PATH: &str = "/.well-known/mercure";

/// The updates that announce a subscriber's subscriptions (`active`) or their end, each in the format of its version.
pub fn events(hub: &Hub, interest: &Interest, active: bool) -> impl Iterator<Item = Update> {
    document::events(hub, interest, active).chain(active::events(hub, interest, active))
}

/// A new id: a random UUID (RFC 9562, version 4) as a URN. `None`: the system has no random bytes.
pub fn new_id() -> Option<String> {
    let mut bytes = [0u8; 16];
    rand::fill(&mut bytes).ok()?;
    bytes[6] = (bytes[6] & 0x0f) | 0x40;
    bytes[8] = (bytes[8] & 0x3f) | 0x80;
    let mut id = String::with_capacity(45);
    id.push_str("urn:uuid:");
    for (at, byte) in bytes.iter().enumerate() {
        if matches!(at, 4 | 6 | 8 | 10) {
            id.push('-');
        }
        // Writing to a string does not fail.
        let _ = write!(id, "{byte:02x}");
    }
    Some(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_uuids_and_differ() {
        let (one, other) = (new_id().unwrap(), new_id().unwrap());
        assert_ne!(one, other);
        let parts: Vec<&str> = one.strip_prefix("urn:uuid:").unwrap().split('-').collect();
        assert_eq!(parts.iter().map(|part| part.len()).collect::<Vec<_>>(), [8, 4, 4, 4, 12]);
        assert!(parts[2].starts_with('4') && parts[3].starts_with(['8', '9', 'a', 'b']), "{one}");
    }
}
