//! Several servers on one machine that share a broker: while it works, while it hangs, and after it recovers.

mod channels;
mod hubs;
mod rates;

use howdah_tests::Setup;

/// A server that shares a broker on this port with others.
fn sharing(setup: Setup, scheme: &str, port: u16) -> Setup {
    setup.setting("share", &format!("\"{scheme}://127.0.0.1:{port}\""))
}
