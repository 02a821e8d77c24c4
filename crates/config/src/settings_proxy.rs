//! Settings of proxies: upstream servers, and the requests to them.

use std::path::PathBuf;
use std::time::Duration;

use crate::choice::{Balance, ForwardedFields, ProxyHost};
use crate::fixed_time::fixed_time;
use crate::table::settings;
use crate::upstream_address::UpstreamAddr;

settings! {
    /// Equivalent HTTP servers to which rules forward requests.
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
        /// `X-Real-IP`, or `Forwarded` (RFC 7239), or none. Values sent by clients that are not trusted proxies are
        /// dropped.
        forwarded: ForwardedFields = r#""x-forwarded""# example(r#""forwarded""#);
        /// Maximum time until a server begins its response, from the last part of the request's body; then 504.
        ///
        /// Responses and upgraded connections (WebSockets) without any data for this long, and for at least 5 minutes,
        /// are cut off.
        response_timeout: Duration = r#""60s""# example(r#""5m""#);
        /// Read a request's body completely before connecting, so that slow clients do not occupy a server. It is kept
        /// in memory or temporary files, as for PHP.
        buffer: bool = "false" example("true");
        /// Maximum number of concurrent requests per server, upgraded connections included. Further ones wait for 5
        /// seconds, at up to 3 servers in turn, then get 503. 0 for no limit.
        max_connections: usize = "0" in(0, 1000000) example("200");
        /// Path to probe on each server, 5 seconds after the previous probe. While the status is not 200 to 399,
        /// requests go to other servers if one of these is up. `""` for none.
        health: Option<String> = r#""""# example(r#""/healthz""#);
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
        /// Maximum time to connect to a server, TLS included, and to wait for one of `max_connections`.
        connect_timeout: Duration = fixed_time("proxy.connect_timeout", Duration::from_secs(5));
        /// Minimum of the pause after which a response or an upgraded connection is closed.
        pause: Duration = fixed_time("proxy.pause", Duration::from_secs(300));
        /// Time that idle connections to servers are kept.
        keep_alive_timeout: Duration = fixed_time("proxy.keep_alive_timeout", Duration::from_secs(30));
        /// Time for which a server is avoided after 3 failures in a row.
        fail_timeout: Duration = fixed_time("proxy.fail_timeout", Duration::from_secs(10));
        /// Pause between two health probes of a server.
        health_interval: Duration = fixed_time("proxy.health_interval", Duration::from_secs(5));
    }
}

impl ProxySettings {
    /// A proxy with one server and default settings.
    pub fn to(address: UpstreamAddr) -> Self {
        Self { name: address.to_string(), to: vec![address], ..Self::default() }
    }

    /// Maximum pause within a response, and of an upgraded connection in both directions.
    pub fn idle_timeout(&self) -> Duration {
        self.response_timeout.max(self.pause)
    }
}

/// `true` if a connection may switch to this protocol. `h2c` would let clients bypass all rules.
pub fn may_switch_to(protocol: &[u8]) -> bool {
    protocol.trim_ascii().eq_ignore_ascii_case(b"websocket")
}
