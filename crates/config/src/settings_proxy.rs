//! The settings of proxies: servers that requests are handed on to, and how.

use std::path::PathBuf;
use std::time::Duration;

use crate::choice::{Balance, ForwardedFields, ProxyHost};
use crate::table::settings;
use crate::upstream_address::UpstreamAddr;

settings! {
    /// Other HTTP servers, all alike, to which routes hand requests on.
    pub struct ProxySettings at "proxy" {
        /// The servers: `http://HOST:PORT`, `https://HOST:PORT` or `unix:PATH`. Required.
        ///
        /// Behind an address, ` weight=N` gives that server N times as many requests as one without. A path cannot stand here:
        /// servers get the path that the client asked for.
        to: Vec<UpstreamAddr> = "[]" example(r#"["http://10.0.0.1:3000", "http://10.0.0.2:3000 weight=2"]"#);
        /// Which server gets the next request: each in turn, or the one with the fewest under way.
        balance: Balance = r#""round-robin""# example(r#""least-connections""#);
        /// What servers see as `Host`: what the client asked for, or their own name.
        host: ProxyHost = r#""request""# example(r#""upstream""#);
        /// Which fields tell servers who the client is: `X-Forwarded-For`, `-Proto`, `-Host`, `-Port` and `X-Real-IP`, or `Forwarded`
        /// (RFC 7239), or none. What a client that is no trusted proxy sends of them never arrives.
        forwarded: ForwardedFields = r#""x-forwarded""# example(r#""forwarded""#);
        /// The longest time that connecting to a server may take, TLS included; also how long a request waits for one of
        /// `max_connections`.
        connect_timeout: Duration = r#""5s""# example(r#""500ms""#);
        /// The longest time that a server may take to begin its response, counted from the last part of the request's body; then
        /// 504.
        response_timeout: Duration = r#""60s""# example(r#""5m""#);
        /// The longest pause within a response, and of an upgraded connection (a WebSocket) in both directions; then it is cut.
        idle_timeout: Duration = r#""5m""# example(r#""1h""#);
        /// Read a request's body to its end before a server is asked, so that a slow client holds none. In memory and temporary files
        /// as for PHP.
        buffer: bool = "false" example("true");
        /// The largest number of requests that a server has at once, upgraded connections included; further ones wait for
        /// `connect_timeout`, then they get 503. 0 for any number.
        max_connections: usize = "0" in(0, 1000000) example("200");
        /// How long it keeps them. Servers close idle connections too; a shorter time than theirs avoids the race.
        keep_alive_timeout: Duration = r#""30s""# example(r#""4s""#);
        /// After so many failures in a row a server gets nothing for `fail_timeout`; then one request tries whether it is back. 0 for
        /// never. A single server always gets its requests.
        max_fails: u32 = "3" in(0, 1000) example("1");
        /// How long a server that has failed gets nothing.
        fail_timeout: Duration = r#""10s""# example(r#""30s""#);
        /// A path that is asked of each server every `health_interval`: while the status is not 200 to 399, it gets no requests. `""`
        /// for no such check.
        health: Option<String> = r#""""# example(r#""/healthz""#);
        /// How often.
        health_interval: Duration = r#""5s""# example(r#""1s""#);
        /// Which protocols a connection may change to (`Upgrade`). `h2c` in this list lets clients past all rules.
        upgrade: Vec<String> = r#"["websocket"]"# example("[]");
        /// A file of certificates (PEM) that those of `https` servers must come from; `""` for those that the system trusts.
        ca: Option<PathBuf> = r#""""# example(r#""/etc/ssl/internal-ca.pem""#);
        /// The name that an `https` server must have in its certificate; `""` for the host of its address.
        server_name: Option<String> = r#""""# example(r#""app.internal""#);
        /// Whether certificates are checked at all. Without, anybody between the two servers can read and change everything.
        verify: bool = "true" example("false");
    }
    plus {
        /// Its name in settings and logs.
        name: String = String::new();
    }
}

impl ProxySettings {
    /// A proxy that is nothing but an address.
    #[must_use]
    pub fn to(address: UpstreamAddr) -> Self {
        Self { name: address.to_string(), to: vec![address], ..Self::default() }
    }

    /// Whether connections may change to what a client offers.
    #[must_use]
    pub fn may_change_to(&self, offer: &[u8]) -> bool {
        self.upgrade.iter().any(|name| name.as_bytes().eq_ignore_ascii_case(offer.trim_ascii()))
    }
}
