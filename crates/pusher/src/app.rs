//! An application: its id, key and secret, and its signatures.

use aws_lc_rs::hmac;
use md5::{Digest as _, Md5};
use std::fmt::Write as _;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Maximum difference between the clocks of both sides.
const MAX_SKEW: Duration = Duration::from_secs(600);
/// Parameters of a request that its signature does not cover.
const UNSIGNED_PARAMETERS: &[&str] = &["auth_signature"];

/// An application that may publish, and whose clients may connect.
#[derive(Debug)]
pub struct App {
    id: String,
    key: String,
    secret: hmac::Key,
}

/// Error in the text of an application.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AppError {
    #[error("is not ID:KEY:SECRET")]
    Parts,
    #[error("has an id or a key with characters other than letters, digits, `-` and `_`")]
    Characters,
}

/// The reason why a request of the HTTP API is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AuthError {
    #[error("auth_key is not the key of this application")]
    Key,
    #[error("auth_timestamp is missing or more than 600 s away from the server's clock")]
    Time,
    #[error("body_md5 is missing or does not match the body")]
    Body,
    #[error("auth_signature is missing or does not match")]
    Signature,
}

impl App {
    /// Parses `ID:KEY:SECRET`.
    ///
    /// # Errors
    /// A part is missing, or has characters that cannot be in a path.
    pub fn new(text: &str) -> Result<Self, AppError> {
        let mut parts = text.trim().splitn(3, ':');
        let (Some(id), Some(key), Some(secret)) = (parts.next(), parts.next(), parts.next()) else {
            return Err(AppError::Parts);
        };
        if id.is_empty() || key.is_empty() || secret.is_empty() {
            return Err(AppError::Parts);
        }
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        if !id.bytes().chain(key.bytes()).all(is_plain) {
            return Err(AppError::Characters);
        }
        let secret = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
        Ok(Self { id: id.to_owned(), key: key.to_owned(), secret })
    }

    /// The application's id, which is in the paths of the HTTP API.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The application's key, which clients know.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// The signature of a webhook.
    pub fn sign(&self, text: &[u8]) -> String {
        let mut digits = String::with_capacity(64);
        for byte in hmac::sign(&self.secret, text).as_ref() {
            // Writing to a string cannot fail.
            let _ = write!(digits, "{byte:02x}");
        }
        digits
    }

    /// `true` if the application has authorized this connection for a channel: `auth` is `KEY:SIGNATURE`.
    pub fn authorizes(&self, socket: &str, channel: &str, data: Option<&str>, auth: &str) -> bool {
        let Some((key, signature)) = auth.split_once(':') else { return false };
        let mut signed = format!("{socket}:{channel}");
        if let Some(data) = data {
            signed.extend([":", data]);
        }
        key == self.key && self.verify_signature(&signed, signature)
    }

    /// `true` if the application has authenticated this connection's user: `auth` is `KEY:SIGNATURE`.
    pub fn authenticates(&self, socket: &str, user_data: &str, auth: &str) -> bool {
        let Some((key, signature)) = auth.split_once(':') else { return false };
        key == self.key && self.verify_signature(&format!("{socket}::user::{user_data}"), signature)
    }

    /// Checks the signature of a request of the HTTP API.
    ///
    /// # Errors
    /// The request was not signed by this application, its body differs, or its time is too far from the server's
    /// clock.
    pub fn verify(
        &self,
        (method, path): (&str, &str),
        query: &[(String, String)],
        body: &[u8],
        now: SystemTime,
    ) -> Result<(), AuthError> {
        let value = |name: &str| query.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str());
        if value("auth_key") != Some(&self.key) {
            return Err(AuthError::Key);
        }
        let seconds = value("auth_timestamp").and_then(|seconds| seconds.parse().ok()).ok_or(AuthError::Time)?;
        let at = UNIX_EPOCH.checked_add(Duration::from_secs(seconds)).ok_or(AuthError::Time)?;
        let skew = now.duration_since(at).or_else(|_| at.duration_since(now)).unwrap_or_default();
        if skew > MAX_SKEW {
            return Err(AuthError::Time);
        }
        if !body.is_empty() && value("body_md5") != Some(&*md5(body)) {
            return Err(AuthError::Body);
        }
        let mut signed: Vec<(String, &str)> = query
            .iter()
            .map(|(name, value)| (name.to_ascii_lowercase(), value.as_str()))
            .filter(|(name, _)| !UNSIGNED_PARAMETERS.contains(&name.as_str()))
            .collect();
        signed.sort_unstable();
        let signed: Vec<String> = signed.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let text = format!("{method}\n{path}\n{}", signed.join("&"));
        let signature = value("auth_signature").ok_or(AuthError::Signature)?;
        if self.verify_signature(&text, signature) { Ok(()) } else { Err(AuthError::Signature) }
    }

    /// Compares in constant time.
    fn verify_signature(&self, text: &str, signature: &str) -> bool {
        bytes(signature).is_some_and(|tag| hmac::verify(&self.secret, text.as_bytes(), &tag).is_ok())
    }
}

fn md5(body: &[u8]) -> String {
    Md5::digest(body).iter().fold(String::with_capacity(32), |mut digits, byte| {
        let _ = write!(digits, "{byte:02x}");
        digits
    })
}

/// Decodes hexadecimal digits.
fn bytes(digits: &str) -> Option<Vec<u8>> {
    let pairs = digits.as_bytes().chunks_exact(2);
    if !pairs.remainder().is_empty() {
        return None;
    }
    pairs.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn app() -> App {
        App::new("3:278d425bdf160c739803:7ad3773142a6692b25b8").unwrap()
    }

    #[test]
    fn an_application_has_three_parts() {
        let parts = |text| App::new(text).map(|app| (app.id, app.key));
        assert_eq!(parts("app:key:se:cret\n"), Ok(("app".to_owned(), "key".to_owned())));
        for text in ["", "app", "app:key", "app:key:", ":key:secret", "app::secret"] {
            assert_eq!(parts(text), Err(AppError::Parts), "{text}");
        }
        assert_eq!(parts("a/b:key:secret"), Err(AppError::Characters));
    }

    /// The examples in Pusher's documentation: they specify the signed text.
    #[test]
    fn channel_signatures_are_those_of_the_documentation() {
        let app = app();
        let key = "278d425bdf160c739803";
        let private = format!("{key}:58df8b0c36d6982b82c3ecf6b4662e34fe8c25bba48f5369f135bf843651c3a4");
        assert!(app.authorizes("1234.1234", "private-foobar", None, &private));
        let data = r#"{"user_id":10,"user_info":{"name":"Mr. Channels"}}"#;
        let presence = format!("{key}:31935e7d86dba64c2a90aed31fdc61869f9b22ba9d8863bba239c03ca481bc80");
        assert!(app.authorizes("1234.1234", "presence-foobar", Some(data), &presence));
        for (socket, channel, data, auth) in [
            ("1234.1235", "private-foobar", None, &private[..]),
            ("1234.1234", "private-other", None, &private),
            ("1234.1234", "private-foobar", Some(""), &private),
            ("1234.1234", "private-foobar", None, &private[1..]),
            ("1234.1234", "private-foobar", None, &private[..private.len() - 1]),
            ("1234.1234", "private-foobar", None, ""),
            ("1234.1234", "private-foobar", None, "278d425bdf160c739803:+"),
        ] {
            assert!(!app.authorizes(socket, channel, data, auth), "{socket} {channel} {auth}");
        }
    }

    #[test]
    fn a_request_is_accepted_with_a_signature_of_all_its_parts() {
        let app = app();
        let body = br#"{"name":"foo","channels":["project-3"],"data":"{\"some\":\"data\"}"}"#;
        let now = UNIX_EPOCH + Duration::from_secs(1_353_088_179);
        let query = |changed: Option<(&str, &str)>| -> Vec<(String, String)> {
            let fields = [
                ("auth_key", "278d425bdf160c739803"),
                ("auth_signature", "da454824c97ba181a32ccc17a72625ba02771f50b50e1e7430e47a1f3f457e6c"),
                ("auth_timestamp", "1353088179"),
                ("auth_version", "1.0"),
                ("body_md5", "ec365a775a4cd0599faeb73354201b6f"),
            ];
            let fields = fields.map(|own| changed.filter(|changed| changed.0 == own.0).unwrap_or(own));
            fields.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
        };
        let verify =
            |query: &[(String, String)], path: &str, body: &[u8], now| app.verify(("POST", path), query, body, now);
        let path = "/apps/3/events";
        assert_eq!(verify(&query(None), path, body, now), Ok(()));
        assert_eq!(verify(&query(None), path, b"other", now), Err(AuthError::Body));
        assert_eq!(verify(&query(None), "/apps/4/events", body, now), Err(AuthError::Signature));
        assert_eq!(verify(&query(None), path, body, now + Duration::from_secs(601)), Err(AuthError::Time));
        assert_eq!(verify(&query(None), path, body, now - Duration::from_secs(601)), Err(AuthError::Time));
        for (name, value, error) in [
            ("auth_key", "other", AuthError::Key),
            ("auth_timestamp", "soon", AuthError::Time),
            ("auth_timestamp", "1353088180", AuthError::Signature),
            ("body_md5", "", AuthError::Body),
            ("auth_signature", "00", AuthError::Signature),
        ] {
            assert_eq!(verify(&query(Some((name, value))), path, body, now), Err(error), "{name}={value}");
        }
    }
}
