//! Addresses for `dev`: on this machine only, on free ports.

use howdah_config::{ListenAddr, Settings, SocketPlace};
use std::net::{Ipv4Addr, TcpListener};

/// First ports to try, for HTTP and HTTPS.
const PORTS: (u16, u16) = (8080, 8443);
/// Number of ports to try, counting up from the first.
const TRIES: u16 = 50;

/// Returns two free addresses. If another process takes one in the meantime, binding reports it.
pub(super) fn free() -> [String; 2] {
    let port = |first: u16| (first..first + TRIES).find(|&port| is_free(port)).unwrap_or(first);
    [format!("127.0.0.1:{}", port(PORTS.0)), format!("https://127.0.0.1:{}", port(PORTS.1))]
}

fn is_free(port: u16) -> bool {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok()
}

/// Checks that only this machine can connect: under `dev`, clients can read source code.
pub(super) fn check_local(settings: &Settings) -> Result<(), String> {
    let is_remote = |addr: &&ListenAddr| match addr.place() {
        SocketPlace::Tcp(addr) => !addr.ip().is_loopback(),
        SocketPlace::Unix(_) => false,
    };
    match settings.listen.iter().find(is_remote) {
        Some(addr) => Err(format!(
            "dev shows source code to its clients, and other machines can reach {addr}: \
             listen on 127.0.0.1 or [::1], or use `howdah serve`"
        )),
        None => Ok(()),
    }
}

/// Host name for browsers, from the project's name. Browsers resolve names below `localhost` to this machine only.
pub(super) fn name(project: &std::path::Path) -> String {
    let name = project.file_name().map(|name| name.to_string_lossy().to_ascii_lowercase()).unwrap_or_default();
    let name: String = name.chars().map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '-' }).collect();
    let name = &name[..name.len().min(60)];
    match name.trim_matches('-') {
        "" => "localhost".to_owned(),
        name => format!("{name}.localhost"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn each_project_has_its_own_host_name() {
        for (path, expected) in [
            ("/srv/shop", "shop.localhost"),
            ("/srv/My Shop_2", "my-shop-2.localhost"),
            ("/srv/---", "localhost"),
            ("/", "localhost"),
        ] {
            assert_eq!(name(Path::new(path)), expected);
        }
    }
}
