//! What `dev` says before it serves.

use howdah_config::{ListenAddr, Settings};
use std::fmt::Write as _;
use std::io::Write as _;

/// Prints it. Nobody need be there to read it.
pub(super) fn print(settings: &Settings) {
    let _ = std::io::stdout().write_all(text(settings).as_bytes());
    let _ = std::io::stdout().flush();
}

fn text(settings: &Settings) -> String {
    let mut text = format!("Howdah {} serves {}\n\n", env!("CARGO_PKG_VERSION"), settings.root.display());
    let name = settings.acme.names.iter().find(|name| name.ends_with(".localhost"));
    for addr in &settings.listen {
        // Writing to a String cannot fail.
        let _ = match addr {
            ListenAddr::Tcp(addr) => writeln!(text, "  http://{addr}/"),
            ListenAddr::Https(addr) => match name {
                Some(name) => writeln!(
                    text,
                    "  https://{name}:{}/   (`howdah trust`, once, makes browsers believe it)",
                    addr.port()
                ),
                None => writeln!(text, "  https://{addr}/"),
            },
            ListenAddr::Unix(path) => writeln!(text, "  unix:{}", path.display()),
        };
    }
    let modes: Vec<String> = settings.pools.iter().map(|pool| format!("{} ({})", pool.name, pool.mode)).collect();
    let _ =
        writeln!(text, "\nPools: {}. Mails: `howdah mails`. Errors show source code. Ctrl+C ends.\n", modes.join(", "));
    text
}
