//! The banner that `dev` prints at its start.

use super::debugger;
use crate::output;
use howdah_config::{ListenAddr, Settings};
use std::fmt::Write as _;

/// Prints the banner, ignoring errors of standard output.
pub(super) fn print(settings: &Settings) {
    let _ = output::print(text(settings));
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
                    "  https://{name}:{}/   (`sudo howdah trust --state {}`, once, makes browsers trust it)",
                    addr.port(),
                    settings.acme.state.display()
                ),
                None => writeln!(text, "  https://{addr}/"),
            },
            ListenAddr::Unix(_) | ListenAddr::FastCgiTcp(_) | ListenAddr::FastCgiUnix(_) => {
                writeln!(text, "  {addr}")
            }
        };
    }
    let modes: Vec<String> = settings.pools.iter().map(|pool| format!("{} ({})", pool.name, pool.mode)).collect();
    let _ =
        writeln!(text, "\nPools: {}. Mails: `howdah mails`. Errors show source code. Ctrl+C ends.", modes.join(", "));
    let _ = writeln!(text, "{}\n", debugger::words(settings));
    text
}
