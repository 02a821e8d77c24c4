//! Starts a pool's PHP once, for `howdah check` and `howdah dev`, with the pool's settings and its user's rights, but
//! without the application.

use crate::config::PoolConfig;
use crate::process::program::Program;
use std::collections::BTreeMap;
use std::io::Read;
use std::process::Stdio;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

/// Interval at which the program's end is checked.
const POLL_INTERVAL: Duration = Duration::from_millis(10);
/// Maximum number of bytes kept of PHP's output.
const MAX_OUTPUT: u64 = 64 * 1024;

/// Maximum time from the program's end to the end of its output.
const OUTPUT_TIMEOUT: Duration = Duration::from_secs(5);

/// Result of starting PHP once.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PhpCheck {
    /// PHP's messages while it started, line by line.
    pub said: Vec<String>,
    /// PHP's own limits by setting, such as `post_max_size`; none if it did not start.
    pub limits: BTreeMap<String, String>,
    /// The reason why no worker would run, if so.
    pub failure: Option<String>,
}

/// Starts the pool's PHP and ends it. `names`: PHP settings of the pool; PHP reports unknown ones.
pub fn try_php(config: &PoolConfig, names: &[&str]) -> PhpCheck {
    let argument = format!("--try={}", names.join("\n"));
    let mut child = match Program::start_once(config, &argument, Stdio::piped(), Stdio::piped()) {
        Ok(child) => child,
        Err(why) => return PhpCheck { failure: Some(why), ..PhpCheck::default() },
    };
    let (printed, said) = (output(child.stdout.take()), output(child.stderr.take()));
    let until = Instant::now() + config.settings.boot_timeout;
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break Some(status),
            Ok(None) if Instant::now() < until => thread::sleep(POLL_INTERVAL),
            _ => break None,
        }
    };
    if status.is_none() {
        let _ = child.kill();
        let _ = child.wait();
    }
    // Processes started by an extension may keep the stream open.
    let text = said.recv_timeout(OUTPUT_TIMEOUT).unwrap_or_default();
    let printed = printed.recv_timeout(OUTPUT_TIMEOUT).unwrap_or_default();
    let limits = String::from_utf8_lossy(&printed);
    let limits = limits.lines().filter_map(|line| line.split_once('='));
    let limits = limits.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    let said: Vec<String> = String::from_utf8_lossy(&text)
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .map(str::to_owned)
        .collect();
    let failure = match status {
        None => Some(format!("PHP did not start within {:?}", config.settings.boot_timeout)),
        Some(status) if !status.success() => Some(format!("PHP does not start ({status})")),
        // Lines after the error have no effect, even security settings.
        Some(_) if said.iter().any(|line| line.contains("syntax error")) => {
            Some("PHP stops reading php.ini at an error".to_owned())
        }
        Some(_) => None,
    };
    PhpCheck { said, limits, failure }
}

/// Reads a stream in a thread, because reading and waiting must not block each other.
fn output(stream: Option<impl Read + Send + 'static>) -> mpsc::Receiver<Vec<u8>> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut text = Vec::new();
        let _ = stream.map(|stream| stream.take(MAX_OUTPUT).read_to_end(&mut text));
        let _ = sender.send(text);
    });
    receiver
}
