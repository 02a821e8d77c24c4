//! Channels: their names, their kinds, and their topics in the site's hub.

/// Maximum length of a name, in bytes.
const MAX_NAME: usize = 164;
/// Prefix of the topics, so that no channel is a topic of another protocol.
const TOPIC: &str = "pusher:";

/// Access to a channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Every client may subscribe.
    Public,
    /// Requires a signature of the application.
    Private,
    /// Requires a signature. Clients and publishers encrypt the data, which is forwarded unchanged.
    Encrypted,
    /// Requires a signature and a user, which is shown to other members.
    Presence,
    /// The channel of a signed-in user. Clients do not subscribe to it by name.
    User,
}

impl Kind {
    /// The kind of the channel with this name; `None` if the name is invalid.
    pub fn from_name(name: &str) -> Option<Self> {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-=@,.;".contains(&byte);
        let plain = name.strip_prefix(USER).unwrap_or(name);
        if plain.is_empty() || name.len() > MAX_NAME || !plain.bytes().all(is_plain) {
            return None;
        }
        Some(match name {
            encrypted if encrypted.starts_with("private-encrypted-") => Self::Encrypted,
            private if private.starts_with("private-") => Self::Private,
            user if user.starts_with(USER) => Self::User,
            presence if presence.starts_with("presence-") => Self::Presence,
            _ => Self::Public,
        })
    }

    /// `true` if the channel with this name passes its last event to new subscribers.
    pub fn is_cached(name: &str) -> bool {
        ["private-encrypted-", "private-", "presence-", ""]
            .iter()
            .any(|prefix| name.strip_prefix(prefix).is_some_and(|rest| rest.starts_with("cache-")))
    }

    /// `true` if the channel's clients may publish.
    pub fn allows_client_events(self) -> bool {
        matches!(self, Self::Private | Self::Presence)
    }
}

/// Prefix of the channel of a signed-in user.
pub const USER: &str = "#server-to-user-";

/// The topic of a channel.
pub fn topic(name: &str) -> String {
    format!("{TOPIC}{name}")
}

/// The channel of a topic.
pub fn name(topic: &str) -> Option<&str> {
    topic.strip_prefix(TOPIC)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_determines_the_kind() {
        for (name, kind) in [
            ("orders", Some(Kind::Public)),
            ("private-orders.7", Some(Kind::Private)),
            ("private-encrypted-orders", Some(Kind::Encrypted)),
            ("presence-room_1", Some(Kind::Presence)),
            ("#server-to-user-7", Some(Kind::User)),
            ("", None),
            ("#server-to-user-", None),
            ("#other", None),
            ("with space", None),
            ("ü", None),
        ] {
            assert_eq!(Kind::from_name(name), kind, "{name}");
        }
        for name in ["cache-a", "private-cache-a", "presence-cache-a", "private-encrypted-cache-a"] {
            assert!(Kind::is_cached(name), "{name}");
        }
        for name in ["a", "private-a", "a-cache-b", "cache", "private-a-cache-", "#server-to-user-cache-"] {
            assert!(!Kind::is_cached(name), "{name}");
        }
        assert_eq!((Kind::from_name(&"x".repeat(164)), Kind::from_name(&"x".repeat(165))), (Some(Kind::Public), None));
        assert_eq!((name(&topic("a")), name("a")), (Some("a"), None));
    }
}
