//! The NATS client.

use crate::address::Address;
use crate::backoff::{Backoff, STEP_TIMEOUT};
use async_nats::jetstream::{self, Context};
use async_nats::{Client, ConnectOptions};
use rustls::ClientConfig;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::OnceCell;

/// Interval of pings, so that a dead connection is noticed and replaced.
const PING: Duration = Duration::from_secs(2);

/// A NATS client, which connects with its first use and reconnects whenever the connection breaks.
pub(crate) struct Nats {
    address: Address,
    tls: Option<Arc<ClientConfig>>,
    client: OnceCell<Client>,
}

impl Nats {
    pub(crate) fn new(address: Address, tls: Option<Arc<ClientConfig>>) -> Self {
        Self { address, tls, client: OnceCell::new() }
    }

    pub(crate) fn address(&self) -> &Address {
        &self.address
    }

    pub(crate) async fn client(&self) -> io::Result<Client> {
        Ok(self.client.get_or_try_init(|| self.connect()).await?.clone())
    }

    pub(crate) async fn context(&self) -> io::Result<Context> {
        let mut context = jetstream::new(self.client().await?);
        context.set_timeout(STEP_TIMEOUT);
        Ok(context)
    }

    async fn connect(&self) -> io::Result<Client> {
        let Address { host, port, user, password, .. } = &self.address;
        let mut options = ConnectOptions::new()
            .name("howdah")
            .connection_timeout(STEP_TIMEOUT)
            .request_timeout(Some(STEP_TIMEOUT))
            .ping_interval(PING)
            .reconnect_delay_callback(Backoff::after)
            .retry_on_initial_connect();
        options = match (user, password) {
            (Some(user), Some(password)) => options.user_and_password(user.clone(), password.clone()),
            (None, Some(token)) => options.token(token.clone()),
            _ => options,
        };
        if let Some(tls) = &self.tls {
            options = options.require_tls(true).tls_client_config(ClientConfig::clone(tls));
        }
        let host = if host.contains(':') { format!("[{host}]") } else { host.clone() };
        options.connect(format!("nats://{host}:{port}")).await.map_err(io::Error::other)
    }
}

/// Encodes a text as the name of a NATS stream, subject or key: without dots, spaces and wildcards, which NATS forbids
/// or interprets. [`decoded`] reverses it.
pub(crate) fn encoded(text: &str) -> String {
    let mut name = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' => name.push(char::from(byte)),
            other => name.push_str(&format!("_{other:02x}")),
        }
    }
    name
}

/// The text of an encoded name; `None` if it is not one.
pub(crate) fn decoded(name: &str) -> Option<String> {
    let mut parts = name.split('_');
    let mut text = parts.next()?.as_bytes().to_vec();
    for part in parts {
        let (byte, rest) = part.split_at_checked(2)?;
        text.push(u8::from_str_radix(byte, 16).ok()?);
        text.extend_from_slice(rest.as_bytes());
    }
    String::from_utf8(text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_different_and_valid_whatever_the_text() {
        assert_eq!(encoded("howdah:log:default"), "howdah_3alog_3adefault");
        assert_ne!(encoded("a.b"), encoded("a_b"));
        for text in ["*.example \u{e9}>", "", "_", "a-b_.", "user@example.org"] {
            let name = encoded(text);
            assert!(name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte)));
            assert_eq!(decoded(&name).as_deref(), Some(text));
        }
        for wrong in ["_", "a_2", "_zz", "_ff", "_\u{e9}"] {
            assert_eq!(decoded(wrong), None);
        }
    }
}
