//! A server that the doctor starts and stops: another process of the doctor's program.

use crate::interrupted;
use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};
use std::fs::{self, File};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Maximum time for a server to start listening, and to end.
const START_TIMEOUT: Duration = Duration::from_secs(90);

/// Interval of these checks.
const POLL_INTERVAL: Duration = Duration::from_millis(15);

/// Environment variable of a server that stops at the end of its standard input.
const ENDS_WITH_INPUT: &str = "HOWDAH_ENDS_WITH_INPUT";

/// A running server, stopped on drop.
#[derive(Debug)]
pub(crate) struct Server {
    child: Child,
    port: u16,
    log: PathBuf,
}

/// Resources used by the processes of a server.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Usage {
    /// Processor time of PHP.
    pub(crate) processor: Duration,
    /// Private memory of PHP, in bytes.
    pub(crate) memory: u64,
}

/// Returns a port that is free at the moment.
pub(crate) fn free_port() -> Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("no port is free")?;
    Ok(listener.local_addr()?.port())
}

impl Server {
    /// Starts a server and waits until it listens.
    pub(crate) fn start(program: &Path, config: &Path, port: u16) -> Result<Self> {
        let room = config.parent().unwrap_or(Path::new("/"));
        let log = room.join("server.log");
        let output = File::create(&log)?;
        let mut command = Command::new(program);
        // The given settings already include those from the environment.
        std::env::vars_os()
            .filter(|(name, _)| name.to_string_lossy().starts_with("HOWDAH_") && name != "HOWDAH_TINY_RINGS")
            .for_each(|(name, _)| {
                command.env_remove(name);
            });
        let child = command
            .arg("serve")
            .arg("--config")
            .arg(config)
            // The kernel closes it however this process ends.
            .stdin(Stdio::piped())
            .env(ENDS_WITH_INPUT, "1")
            .stdout(output.try_clone()?)
            .stderr(output)
            .spawn()
            .with_context(|| format!("cannot start {}", program.display()))?;
        let mut server = Self { child, port, log };
        server.wait_until_it_listens()?;
        Ok(server)
    }

    fn wait_until_it_listens(&mut self) -> Result<()> {
        let begun = Instant::now();
        while begun.elapsed() < START_TIMEOUT {
            if let Some(status) = self.child.try_wait()? {
                bail!("the server has ended with {status}:\n{}", self.last_words());
            }
            // The system may choose the server's port for the client, which is then connected to itself.
            let is_server = |client: TcpStream| client.local_addr().ok() != client.peer_addr().ok();
            if TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).is_ok_and(is_server) {
                return Ok(());
            }
            interrupted::check()?;
            std::thread::sleep(POLL_INTERVAL);
        }
        bail!("the server did not listen within {START_TIMEOUT:?}; its log:\n{}", self.last_words())
    }

    pub(crate) const fn port(&self) -> u16 {
        self.port
    }

    /// `true` if the server has ended, for whatever reason.
    pub(crate) fn has_ended(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    /// Returns the reason why workers do not boot, else the last errors in the server's log, else its last lines.
    pub(crate) fn last_words(&self) -> String {
        let text = fs::read(&self.log).map(|text| String::from_utf8_lossy(&text).into_owned()).unwrap_or_default();
        last_words(&text)
    }

    /// Kills the workers, for scripts that cannot be asked to end. The server starts new ones.
    pub(crate) fn end_workers(&self) {
        for pid in self.workers() {
            let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { continue };
            let _ = kill_process(pid, Signal::KILL);
            let begun = Instant::now();
            while is_alive(pid.as_raw_nonzero().get()) && begun.elapsed() < START_TIMEOUT {
                std::thread::sleep(POLL_INTERVAL / 5);
            }
        }
    }

    /// Resources that PHP has used so far.
    pub(crate) fn usage(&self) -> Usage {
        let mut usage = Usage::default();
        for pid in self.workers() {
            let nanoseconds = fs::read_to_string(format!("/proc/{pid}/schedstat")).unwrap_or_default();
            let nanoseconds = nanoseconds.split(' ').next().and_then(|n| n.trim().parse().ok()).unwrap_or_default();
            usage.processor += Duration::from_nanos(nanoseconds);
            let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
            let own = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
            let kilobytes: u64 = own.and_then(|text| text.trim().split(' ').next()?.parse().ok()).unwrap_or_default();
            usage.memory += kilobytes << 10;
        }
        usage
    }

    /// Returns the server's descendants without children: workers, not the zygotes that fork them.
    fn workers(&self) -> Vec<u32> {
        let mut processes: Vec<(u32, u32)> = Vec::new();
        for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
            let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
            let stat = fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
            // The name may contain any character; the fields after it are numbers.
            let Some((_, rest)) = stat.rsplit_once(") ") else { continue };
            let mut fields = rest.split(' ');
            let is_dead = matches!(fields.next(), Some("Z" | "X"));
            if let (false, Some(parent)) = (is_dead, fields.next().and_then(|parent| parent.parse().ok())) {
                processes.push((pid, parent));
            }
        }
        let mut below = vec![self.child.id()];
        let mut at = 0;
        while at < below.len() {
            let above = below[at];
            below.extend(processes.iter().filter(|(_, parent)| *parent == above).map(|(pid, _)| *pid));
            at += 1;
        }
        below.remove(0);
        // Children of the server are zygotes; workers are descendants of these.
        let is_child = |pid: &u32| processes.iter().any(|(other, parent)| other == pid && *parent == self.child.id());
        below.into_iter().filter(|pid| !is_child(pid)).filter(|pid| !processes.iter().any(|(_, p)| p == pid)).collect()
    }
}

/// The pool's message about a worker that ended during its boot; the reason follows on the same line.
const DOES_NOT_BOOT: &str = "ended before it was ready: ";
const NEXT_ATTEMPT: &str = "; next attempt in ";

fn last_words(log: &str) -> String {
    let why = log.lines().rev().find_map(|line| {
        let (_, why) = line.split_once(DOES_NOT_BOOT)?;
        let (why, _) = why.rsplit_once(NEXT_ATTEMPT).unwrap_or((why, ""));
        // Without the trace, whose line breaks are escaped.
        let why = why.split("\\n").next().unwrap_or(why);
        // The reason is quoted if it is a field of the line.
        Some(why.strip_suffix('"').unwrap_or(why))
    });
    if let Some(why) = why {
        return why.to_owned();
    }
    let bad: Vec<&str> = log.lines().filter(|line| line.contains(" ERROR ")).collect();
    let lines = if bad.is_empty() { log.lines().collect() } else { bad };
    lines[lines.len().saturating_sub(5)..].join("\n")
}

fn is_alive(pid: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

impl Drop for Server {
    fn drop(&mut self) {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        if let (Some(pid), Ok(None)) = (pid, self.child.try_wait()) {
            let _ = kill_process(pid, Signal::TERM);
            let begun = Instant::now();
            while begun.elapsed() < START_TIMEOUT && matches!(self.child.try_wait(), Ok(None)) {
                std::thread::sleep(POLL_INTERVAL);
            }
            let _ = self.child.kill();
        }
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::last_words;

    #[test]
    fn the_reason_of_a_failed_boot_is_returned_once() {
        let log = "1 ERROR php: no\n2 ERROR pool: worker 7 ended before it was ready: recipe x: no a; b; next attempt in 1s \
                   failures=1\n3 ERROR pool: worker 8 ended before it was ready: recipe x: no a; b\\n#0 x(); next attempt in 2s";
        assert_eq!(last_words(log), "recipe x: no a; b");
        assert_eq!(last_words("1 INFO a\n2 ERROR b"), "2 ERROR b");
    }
}
