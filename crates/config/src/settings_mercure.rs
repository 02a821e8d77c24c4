//! The settings of the Mercure hub.

use std::time::Duration;

use crate::fixed_time::fixed_time;
use crate::secret::Secret;
use crate::table::settings;

settings! {
    /// The Mercure hub of a site at `/.well-known/mercure`. It exists if a key or `anonymous` is set.
    pub struct MercureSettings at "mercure" {
        /// Key that verifies the tokens (JWT) of publishers: a shared secret for HS256, HS384 and HS512; a public key in
        /// PEM (RSA, P-256, P-384, P-521 or Ed25519); a JSON Web Key Set of both; or `file:/PATH` of a file with one of
        /// these.
        ///
        /// Prefer the environment variable or a file. Scripts publish without a token, by `mercure_publish()`.
        publisher_key: Option<Secret> = r#""""# example(r#""file:/run/secrets/mercure""#);
        /// Key that verifies the tokens of subscribers, like `publisher_key`; `""` for the same key.
        subscriber_key: Option<Secret> = r#""""# example(r#""file:/etc/howdah/subscribers.pem""#);
        /// Let clients without a token subscribe. They get public updates only.
        anonymous: bool = "false" example("true");
        /// Origins of pages on other hosts that may subscribe, and may publish by cookie: `https://HOST[:PORT]`, or
        /// `"*"` for all (without cookies).
        allowed_origins: Vec<String> = "[]" example(r#"["https://app.example"]"#);
    }
    plus {
        /// Time after which a comment is sent to a subscriber that gets no update, so that no proxy ends its connection.
        heartbeat: Duration = fixed_time("mercure.heartbeat", Duration::from_secs(40));
    }
}

impl MercureSettings {
    /// `true` if there is a hub.
    pub fn is_used(&self) -> bool {
        self.publisher_key.is_some() || self.subscriber_key.is_some() || self.anonymous
    }

    /// The key of subscribers.
    pub fn key_of_subscribers(&self) -> Option<&Secret> {
        self.subscriber_key.as_ref().or(self.publisher_key.as_ref())
    }
}
