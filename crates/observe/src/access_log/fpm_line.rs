//! Access log lines in the format of PHP-FPM's `access.format`.

use crate::clock::Formatted;
use crate::escape;
use howdah_config::{CpuTime, FpmField, TimeUnit};
use std::io::Write as _;
use std::net::IpAddr;
use std::time::{Duration, SystemTime};

/// Facts about an ended request, as PHP-FPM knows them.
pub struct FpmEntry<'a> {
    pub time: SystemTime,
    pub total: Duration,
    pub status: u16,
    pub method: &'a [u8],
    /// The path as sent by the web server, and the query.
    pub path: &'a [u8],
    pub query: &'a [u8],
    /// The script that ran.
    pub script: Option<&'a [u8]>,
    /// Bytes of the request's body.
    pub length: u64,
    pub pool: &'a str,
    /// The process IDs of the worker and of the server.
    pub process: u32,
    pub parent: u32,
    /// Peak memory in bytes.
    pub memory: u64,
    /// Processor time in microseconds.
    pub cpu_us: u64,
    /// Microseconds of it in the kernel.
    pub system_us: u64,
    /// The address of the web server.
    pub remote: Option<IpAddr>,
    pub user: &'a [u8],
    /// Variables of the request, by name.
    pub variable: &'a dyn Fn(&str) -> Option<&'a [u8]>,
    /// Fields of the response, by name.
    pub header: &'a dyn Fn(&str) -> Option<&'a [u8]>,
}

impl FpmEntry<'_> {
    /// Appends the entry's line. Writing to a Vec cannot fail.
    pub fn format(&self, fields: &[FpmField], line: &mut Vec<u8>) {
        for field in fields {
            self.field(field, line);
        }
        line.push(b'\n');
    }

    fn field(&self, field: &FpmField, line: &mut Vec<u8>) {
        if let Some(text) = self.text(field) {
            return escape::combined(line, text);
        }
        let micros = self.total.as_micros();
        let _ = match field {
            FpmField::Text(text) => line.write_all(text.as_bytes()),
            FpmField::Cpu(part) => {
                // The two clocks have different resolutions.
                let system = self.system_us.min(self.cpu_us);
                let used = match part {
                    CpuTime::Total => self.cpu_us,
                    CpuTime::User => self.cpu_us - system,
                    CpuTime::System => system,
                };
                write!(line, "{:.2}", used as f64 * 100.0 / (micros as f64).max(1.0))
            }
            FpmField::Duration(TimeUnit::Seconds) => write!(line, "{:.3}", micros as f64 / 1e6),
            FpmField::Duration(TimeUnit::Milliseconds) => write!(line, "{:.3}", micros as f64 / 1e3),
            FpmField::Duration(TimeUnit::Microseconds) => write!(line, "{micros}"),
            FpmField::Memory(unit) => write!(line, "{}", self.memory / unit),
            FpmField::Length => write!(line, "{}", self.length),
            FpmField::Process => write!(line, "{}", self.process),
            FpmField::Parent => write!(line, "{}", self.parent),
            FpmField::Status => write!(line, "{}", self.status),
            FpmField::Begun(format) => write!(line, "{}", Formatted(self.time, format)),
            FpmField::Ended(format) => write!(line, "{}", Formatted(self.time + self.total, format)),
            FpmField::Remote if self.remote.is_some() => {
                self.remote.map_or(Ok(()), |remote| write!(line, "{}", remote.to_canonical()))
            }
            // The value is unknown.
            _ => line.write_all(b"-"),
        };
    }

    fn text(&self, field: &FpmField) -> Option<&[u8]> {
        match field {
            FpmField::Variable(name) => (self.variable)(name),
            FpmField::Header(name) => (self.header)(name),
            FpmField::Script => self.script,
            FpmField::Method => Some(self.method),
            FpmField::Pool => Some(self.pool.as_bytes()),
            FpmField::Query => Some(self.query),
            FpmField::QueryMark => Some(if self.query.is_empty() { b"" } else { b"?" }),
            FpmField::Path => Some(self.path),
            FpmField::User => Some(self.user),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use howdah_config::FpmAccess;

    #[test]
    fn lines_are_those_of_php_fpm() {
        let entry = FpmEntry {
            time: SystemTime::UNIX_EPOCH + Duration::from_secs(1_795_219_200),
            total: Duration::from_micros(1535),
            status: 200,
            method: b"GET",
            path: b"/a.php",
            query: b"b=1",
            script: Some(b"/srv/a.php"),
            length: 4,
            pool: "www",
            process: 7,
            parent: 5,
            memory: 2 << 20,
            cpu_us: 1535,
            system_us: 307,
            remote: None,
            user: b"",
            variable: &|name| (name == "HOST").then_some(b"x\"\n".as_slice()),
            header: &|name| (name == "Content-Type").then_some(b"text/html".as_slice()),
        };
        let line = |format: &str| {
            let mut line = Vec::new();
            entry.format(&FpmAccess::parse(format, Vec::new()).unwrap().format, &mut line);
            String::from_utf8(line).unwrap()
        };
        assert_eq!(line("%R - %u %t \"%m %r\" %s"), "- -  21/Nov/2026:00:00:00 +0000 \"GET /a.php\" 200\n");
        assert_eq!(line("%r%Q%q %f %l %n %p/%P %C%%"), "/a.php?b=1 /srv/a.php 4 www 7/5 100.00%\n");
        assert_eq!(line("%{total}C %{user}C %{system}C"), "100.00 80.00 20.00\n");
        assert_eq!(line("%d %{milli}d %{micro}d %M %{kilo}M %{mega}M"), "0.002 1.535 1535 2097152 2048 2\n");
        assert_eq!(line("%{HOST}e %{NONE}e %{Content-Type}o %{X}o"), "x\\x22\\x0A - text/html -\n");
        assert_eq!(line("%{%F}t %{%s}T"), "2026-11-21 1795219200\n");
    }
}
