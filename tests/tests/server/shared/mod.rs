//! Several servers on one machine that share a broker: while it works, while it hangs, and after it recovers.

/// Scenarios with each broker.
macro_rules! with_each_broker {
    ($($scenario:ident),* $(,)?) => {
        mod redis {
            $(#[test]
            fn $scenario() {
                super::$scenario(super::Broker::redis());
            })*
        }
        mod nats {
            $(#[test]
            fn $scenario() {
                super::$scenario(super::Broker::nats());
            })*
        }
    };
}

mod channels;
mod hubs;
mod presence;
mod rates;

use howdah_tests::Setup;
use howdah_tests::relay::Relay;
use howdah_tests::servers::Server;
use std::time::Duration;

/// A server that shares a broker on this port with others.
fn sharing(setup: Setup, scheme: &str, port: u16) -> Setup {
    setup.setting("share", &format!("\"{scheme}://127.0.0.1:{port}\""))
}

/// A broker for the hubs under test.
struct Broker {
    server: Server,
    scheme: &'static str,
}

impl Broker {
    fn redis() -> Self {
        Self { server: Server::redis(false), scheme: "redis" }
    }

    fn nats() -> Self {
        Self { server: Server::nats(), scheme: "nats" }
    }

    fn relay(&self, delay: Duration) -> Relay {
        Relay::to(self.server.port, delay)
    }
}
