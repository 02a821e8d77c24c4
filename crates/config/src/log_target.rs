//! Log destinations: a standard stream, a file, or a log service of the system.

use std::path::PathBuf;

use crate::kind::Kind;
use crate::value::Value;
use howdah_rules::tree::quoted;

/// Socket of journald's native protocol.
const JOURNAL: &str = "/run/systemd/journal/socket";
/// The socket of this machine's syslog daemon.
const SYSLOG: &str = "/dev/log";

/// Destination of the error log.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum LogTarget {
    /// The standard error stream.
    #[default]
    Stderr,
    /// A file, opened for appending.
    File(PathBuf),
    Service(LogService),
}

/// Destination of the access log.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum AccessTarget {
    /// No access log.
    #[default]
    Off,
    /// The standard output stream.
    Stdout,
    /// The standard error stream.
    Stderr,
    /// A file, opened for appending.
    File(PathBuf),
    Service(LogService),
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum LogService {
    /// The native protocol of journald, at this socket.
    Journald(PathBuf),
    /// A syslog daemon of this machine, at this socket.
    SyslogUnix(PathBuf),
    /// A syslog server, at `HOST:PORT` by UDP (RFC 5424, 5426).
    SyslogUdp(String),
    /// A syslog server, at `HOST:PORT` by TCP (RFC 5424; RFC 6587 with lengths).
    SyslogTcp(String),
}

impl LogService {
    /// Parses the name of a service; the inner `None` if its address is invalid. `None` if the text names no service.
    fn named(text: &str) -> Option<Option<Self>> {
        let (word, rest) = text.split_once(':').map_or((text, None), |(word, rest)| (word, Some(rest)));
        match (word, rest) {
            ("journald", None) => Some(Some(Self::Journald(JOURNAL.into()))),
            ("journald", Some(path)) => Some(path.starts_with('/').then(|| Self::Journald(path.into()))),
            ("syslog", None) => Some(Some(Self::SyslogUnix(SYSLOG.into()))),
            ("syslog", Some(rest)) => Some(Self::syslog(rest)),
            _ => None,
        }
    }

    fn syslog(rest: &str) -> Option<Self> {
        if let Some(address) = rest.strip_prefix("udp://") {
            return is_address(address).then(|| Self::SyslogUdp(address.to_owned()));
        }
        if let Some(address) = rest.strip_prefix("tcp://") {
            return is_address(address).then(|| Self::SyslogTcp(address.to_owned()));
        }
        rest.starts_with('/').then(|| Self::SyslogUnix(rest.into()))
    }
}

/// `true` if a text is `HOST:PORT`.
fn is_address(text: &str) -> bool {
    text.rsplit_once(':').is_some_and(|(host, port)| {
        !host.is_empty() && !host.contains(['/', ' ', '@']) && port.parse::<u16>().is_ok_and(|port| port > 0)
    })
}

impl std::fmt::Display for LogService {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Journald(path) if path.as_os_str() == JOURNAL => f.write_str("journald"),
            Self::Journald(path) => write!(f, "journald:{}", path.display()),
            Self::SyslogUnix(path) if path.as_os_str() == SYSLOG => f.write_str("syslog"),
            Self::SyslogUnix(path) => write!(f, "syslog:{}", path.display()),
            Self::SyslogUdp(address) => write!(f, "syslog:udp://{address}"),
            Self::SyslogTcp(address) => write!(f, "syslog:tcp://{address}"),
        }
    }
}

impl Value for LogTarget {
    const KIND: Kind = Kind::LogTarget(&["stderr", "journald", "syslog"]);

    fn from_text(text: &str) -> Option<Self> {
        match (text, LogService::named(text)) {
            ("", _) => None,
            ("stderr", _) => Some(Self::Stderr),
            (_, Some(service)) => service.map(Self::Service),
            (path, None) => Some(Self::File(path.into())),
        }
    }

    fn show(&self) -> String {
        match self {
            Self::Stderr => quoted("stderr"),
            Self::File(path) => path.show(),
            Self::Service(service) => quoted(&service.to_string()),
        }
    }

    fn paths(&mut self) -> Vec<&mut PathBuf> {
        if let Self::File(path) = self { vec![path] } else { Vec::new() }
    }
}

impl Value for AccessTarget {
    const KIND: Kind = Kind::LogTarget(&["off", "stdout", "stderr", "journald", "syslog"]);

    fn from_text(text: &str) -> Option<Self> {
        match (text, LogService::named(text)) {
            ("", _) => None,
            ("off", _) => Some(Self::Off),
            ("stdout", _) => Some(Self::Stdout),
            ("stderr", _) => Some(Self::Stderr),
            (_, Some(service)) => service.map(Self::Service),
            (path, None) => Some(Self::File(path.into())),
        }
    }

    fn show(&self) -> String {
        match self {
            Self::Off => quoted("off"),
            Self::Stdout => quoted("stdout"),
            Self::Stderr => quoted("stderr"),
            Self::File(path) => path.show(),
            Self::Service(service) => quoted(&service.to_string()),
        }
    }

    fn paths(&mut self) -> Vec<&mut PathBuf> {
        if let Self::File(path) = self { vec![path] } else { Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn services_are_distinguished_from_files() {
        let journald = |path: &str| Some(LogTarget::Service(LogService::Journald(path.into())));
        let syslog = |service| Some(LogTarget::Service(service));
        for (text, expected) in [
            ("stderr", Some(LogTarget::Stderr)),
            ("journald", journald(JOURNAL)),
            ("journald:/tmp/j", journald("/tmp/j")),
            ("syslog", syslog(LogService::SyslogUnix(SYSLOG.into()))),
            ("syslog:/run/log", syslog(LogService::SyslogUnix("/run/log".into()))),
            ("syslog:udp://logs:514", syslog(LogService::SyslogUdp("logs:514".to_owned()))),
            ("syslog:tcp://[::1]:601", syslog(LogService::SyslogTcp("[::1]:601".to_owned()))),
            ("./syslog", Some(LogTarget::File("./syslog".into()))),
            ("/var/log/a:b", Some(LogTarget::File("/var/log/a:b".into()))),
        ] {
            let found = LogTarget::from_text(text);
            assert_eq!(found, expected, "{text}");
            if let Some(LogTarget::Service(service)) = found {
                assert_eq!(service.to_string(), text);
            }
        }
        for wrong in
            ["", "journald:x", "syslog:", "syslog:udp://logs", "syslog:tcp://:1", "syslog:tcp://a:0", "syslog:x://a:1"]
        {
            assert_eq!(LogTarget::from_text(wrong), None, "{wrong}");
        }
    }
}
