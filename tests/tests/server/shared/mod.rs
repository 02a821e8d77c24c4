//! Several servers on one machine that share a broker: while it works, hangs, and is back.

mod rates;

use howdah_tests::Setup;
use howdah_tests::servers::Server;

/// A server that shares a Redis with others.
fn sharing(setup: Setup, redis: &Server) -> Setup {
    setup.setting("share", &format!("\"redis://127.0.0.1:{}\"", redis.port))
}
