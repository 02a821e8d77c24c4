//! Several servers on one machine that share a broker: while it works, hangs, and is back.

mod channels;
mod hubs;
mod rates;

use howdah_tests::Setup;

/// A server that shares a broker at this port with others.
fn sharing(setup: Setup, scheme: &str, port: u16) -> Setup {
    setup.setting("share", &format!("\"{scheme}://127.0.0.1:{port}\""))
}
