//! The settings of proxies: servers that requests are handed on to, and how.

use std::path::PathBuf;
use std::time::Duration;

use crate::choice::{Balance, ForwardedFields, ProxyHost};
use crate::table::settings;
use crate::upstream_address::UpstreamAddr;

settings! {
    /// Other HTTP servers, all alike, to which rules hand requests on.
    pub struct ProxySettings at "proxy" {
        /// Upstream servers: `http://HOST:PORT`, `https://HOST:PORT` or `unix:PATH`. Required.
        ///
        /// ` weight=N` after an address gives that server N times as many requests. Addresses have no path: servers get
        /// the requested path.
        to: Vec<UpstreamAddr> = "[]" example(r#"["http://10.0.0.1:3000", "http://10.0.0.2:3000 weight=2"]"#);
        /// Choice of the server for a request: each in turn, or the one with the fewest running requests.
        balance: Balance = r#""round-robin""# example(r#""least-connections""#);
        /// `Host` that servers receive: as requested, or their own name.
        host: ProxyHost = r#""request""# example(r#""upstream""#);
        /// Headers that tell servers the client's address: `X-Forwarded-For`, `-Proto`, `-Host`, `-Port` and
        /// `X-Real-IP`, or `Forwarded` (RFC 7239), or none. Values sent by clients that are no trusted proxies are
        /// dropped.
        forwarded: ForwardedFields = r#""x-forwarded""# example(r#""forwarded""#);
        /// Maximum time to connect to a server, TLS included; also the time that a request waits for one of
        /// `max_connections`.
        connect_timeout: Duration = r#""5s""# example(r#""500ms""#);
        /// Maximum time until a server begins its response, from the last part of the request's body; then 504.
        response_timeout: Duration = r#""60s""# example(r#""5m""#);
        /// Maximum pause within a response, and of an upgraded connection (a WebSocket) in both directions; then it is
        /// closed.
        idle_timeout: Duration = r#""5m""# example(r#""1h""#);
        /// Read a request's body completely before connecting, so that slow clients do not occupy a server. It is kept
        /// in memory or temporary files, as for PHP.
        buffer: bool = "false" example("true");
        /// Maximum number of concurrent requests per server, upgraded connections included. Further ones wait for
        /// `connect_timeout`, then get 503. 0 for no limit.
        max_connections: usize = "0" in(0, 1000000) example("200");
        /// Time that idle connections to servers are kept. Choose a shorter time than the servers' own.
        keep_alive_timeout: Duration = r#""30s""# example(r#""4s""#);
        /// Number of consecutive failures after which a server gets no requests for `fail_timeout`; then one request
        /// probes it. 0 for never. A single server always gets requests.
        max_fails: u32 = "3" in(0, 1000) example("1");
        /// Time that a failed server gets no requests.
        fail_timeout: Duration = r#""10s""# example(r#""30s""#);
        /// Path to probe on each server every `health_interval`; a server gets no requests while its status is not 200
        /// to 399. `""` for none.
        health: Option<String> = r#""""# example(r#""/healthz""#);
        /// Interval of these probes.
        health_interval: Duration = r#""5s""# example(r#""1s""#);
        /// Protocols that a connection may switch to (`Upgrade`). `h2c` would let clients bypass all rules.
        upgrade: Vec<String> = r#"["websocket"]"# example("[]");
        /// CA certificates to verify `https` servers with (PEM); `""` for the system's.
        ca: Option<PathBuf> = r#""""# example(r#""/etc/ssl/internal-ca.pem""#);
        /// Name that an `https` server's certificate must have; `""` for the host of its address.
        server_name: Option<String> = r#""""# example(r#""app.internal""#);
        /// Verify certificates. Without it, anyone between the two servers can read and change the traffic.
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

    /// `true` if connections may be upgraded to a client's offer.
    #[must_use]
    pub fn may_change_to(&self, offer: &[u8]) -> bool {
        self.upgrade.iter().any(|name| name.as_bytes().eq_ignore_ascii_case(offer.trim_ascii()))
    }
}
