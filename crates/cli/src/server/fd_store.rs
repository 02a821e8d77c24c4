//! Addresses that systemd keeps open for the server while it does not run: those of a socket unit, and sockets in the
//! service's descriptor store (`FDSTORE=1` in `service`). `howdah check` must not report them as used by another
//! program.
//!
//! Asks systemd, because the kernel shows the sockets of process 1 only to processes with more rights than the unit
//! has.

use howdah_config::{ListenAddr, SocketPlace};
use std::process::{Command, Stdio};

/// Units whose sockets belong to the server if its own unit is unknown.
const OWN_UNITS: &str = "howdah";

/// Sockets that systemd keeps for the server.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct FdStore {
    /// Addresses of the server's socket units, as systemd writes them.
    sockets: Vec<String>,
    /// Number of sockets in the descriptor store; systemd does not name them before version 254.
    stored: usize,
}

impl FdStore {
    /// Returns the sockets that systemd keeps now; none without systemd.
    pub(crate) fn now() -> Self {
        // systemd sets this for every process of a unit, including `ExecStartPre=`.
        let own = std::env::var_os("INVOCATION_ID").and_then(|_| std::fs::read_to_string("/proc/self/cgroup").ok());
        let own = own.as_deref().and_then(service_of);
        let sockets = show(&["--property=ActiveState,Triggers,Listen", "*.socket"]);
        let stored = own.and_then(|own| show(&["--property=NFileDescriptorStore", own]));
        Self::read(own, &sockets.unwrap_or_default(), &stored.unwrap_or_default())
    }

    fn read(own: Option<&str>, sockets: &str, stored: &str) -> Self {
        let is_own = |unit: &str| own.map_or_else(|| unit.starts_with(OWN_UNITS), |own| own == unit);
        let value = |unit: &str, name: &str| -> Vec<String> {
            let of = |line: &str| Some(line.strip_prefix(name)?.strip_prefix('=')?.to_owned());
            unit.lines().filter_map(of).collect()
        };
        let listens = |unit: &str| {
            let is_active = value(unit, "ActiveState").iter().any(|state| state == "active");
            let is_for_us = value(unit, "Triggers").iter().any(|units| units.split(' ').any(is_own));
            let listen = if is_active && is_for_us { value(unit, "Listen") } else { Vec::new() };
            listen.into_iter().filter_map(|listen| Some(listen.split_once(" (")?.0.to_owned()))
        };
        let stored = value(stored, "NFileDescriptorStore");
        Self {
            sockets: sockets.split("\n\n").flat_map(listens).collect(),
            stored: stored.first().and_then(|count| count.parse().ok()).unwrap_or(0),
        }
    }

    /// `true` if this used address is one of the sockets. Each stored socket accounts for one address.
    pub(crate) fn has(&mut self, addr: &ListenAddr) -> bool {
        let (is_stored, text) = match addr.place() {
            SocketPlace::Tcp(tcp) => (self.stored > 0, tcp.to_string()),
            // The server binds its own Unix sockets anew.
            SocketPlace::Unix(path) => (false, path.display().to_string()),
        };
        if self.sockets.contains(&text) {
            return true;
        }
        self.stored -= usize::from(is_stored);
        is_stored
    }
}

/// Returns the service whose control group a process is in.
fn service_of(cgroups: &str) -> Option<&str> {
    // Version 2 has a single hierarchy; in version 1, systemd's own hierarchy has the same path.
    let own = cgroups.lines().find_map(|line| {
        line.strip_prefix("0::").or_else(|| line.split_once(":name=systemd:").map(|(_, group)| group))
    })?;
    own.rsplit('/').find(|part| part.ends_with(".service"))
}

fn show(what: &[&str]) -> Option<String> {
    let mut systemctl = Command::new("systemctl");
    systemctl.args(["show", "--no-pager"]).args(what).stdin(Stdio::null()).stderr(Stdio::null());
    let output = systemctl.output().ok().filter(|output| output.status.success())?;
    String::from_utf8(output.stdout).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOCKETS: &str = "Listen=127.0.0.1:8080 (Stream)\nListen=/run/howdah/http.sock (Stream)\nActiveState=active\n\
        Triggers=howdah.service\n\nListen=127.0.0.1:9090 (Stream)\nActiveState=active\nTriggers=cockpit.service\n\n\
        Listen=127.0.0.1:8090 (Stream)\nActiveState=inactive\nTriggers=howdah.service\n";

    fn has(kept: &mut FdStore, addr: &str) -> bool {
        kept.has(&addr.parse().unwrap())
    }

    #[test]
    fn sockets_of_a_unit_are_the_servers_if_the_unit_is_for_its_service() {
        for (own, is_own) in [(None, true), (Some("howdah.service"), true), (Some("howdah@shop.service"), false)] {
            let mut kept = FdStore::read(own, SOCKETS, "");
            assert_eq!(has(&mut kept, "127.0.0.1:8080"), is_own, "{own:?}");
            assert_eq!(has(&mut kept, "https://127.0.0.1:8080"), is_own, "{own:?}");
            assert_eq!(has(&mut kept, "unix:/run/howdah/http.sock"), is_own, "{own:?}");
            assert!(!has(&mut kept, "127.0.0.1:9090") && !has(&mut kept, "127.0.0.1:8090"), "{own:?}");
        }
    }

    #[test]
    fn descriptors_stored_for_the_service_stand_for_as_many_addresses_and_for_no_unix_socket() {
        let mut kept = FdStore::read(Some("howdah.service"), "", "NFileDescriptorStore=1\n");
        assert!(!has(&mut kept, "unix:/run/howdah/http.sock"));
        assert!(has(&mut kept, "127.0.0.1:80"));
        assert!(!has(&mut kept, "127.0.0.1:81"), "another program has it");
        assert_eq!(FdStore::read(None, "", ""), FdStore::default());
    }

    #[test]
    fn the_service_is_recognized_by_its_control_group() {
        assert_eq!(service_of("0::/system.slice/howdah.service\n"), Some("howdah.service"));
        assert_eq!(
            service_of("0::/system.slice/system-howdah.slice/howdah@a.service/.control\n"),
            Some("howdah@a.service")
        );
        let hybrid = "4:memory:/x\n1:name=systemd:/system.slice/howdah.service\n0::/system.slice/howdah.service\n";
        assert_eq!(service_of(hybrid), Some("howdah.service"));
        assert_eq!(service_of("0::/user.slice/user-0.slice/session-1.scope\n"), None);
    }
}
