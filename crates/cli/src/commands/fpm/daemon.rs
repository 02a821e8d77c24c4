//! Runs `howdah-fpm` in the background.

use anyhow::{Context, Result};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

/// Environment variable that marks the background process.
const IN_BACKGROUND: &str = "HOWDAH_FPM_IN_BACKGROUND";
/// Interval at which the parent checks that the background process is still alive.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// `true` in the background process.
pub(super) fn is_child() -> bool {
    std::env::var_os(IN_BACKGROUND).is_some()
}

/// Starts this program again in the background, and returns when it is ready. The child reports that as it would to a
/// service manager.
pub(super) fn start() -> Result<ExitCode> {
    let name = format!("howdah-fpm-{}", std::process::id());
    let socket =
        UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(&name)?).context("cannot start in the background")?;
    socket.set_read_timeout(Some(POLL_INTERVAL))?;
    let mut arguments = std::env::args_os();
    let program = std::env::current_exe().context("cannot determine the path of this program")?;
    let mut command = Command::new(program);
    command.arg0(arguments.next().unwrap_or_default()).args(arguments);
    command.env(IN_BACKGROUND, "1").env("NOTIFY_SOCKET", format!("@{name}"));
    // A separate process group: the terminal's signals are for this process's group.
    command.process_group(0).stdin(Stdio::null()).stdout(Stdio::null());
    let mut child = command.spawn().context("cannot start in the background")?;
    let mut message = [0; 4096];
    loop {
        if let Some(status) = child.try_wait()? {
            let code = status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1);
            return Ok(ExitCode::from(code));
        }
        if let Ok(length) = socket.recv(&mut message)
            && message[..length].split(|byte| *byte == b'\n').any(|line| line == b"READY=1")
        {
            return Ok(ExitCode::SUCCESS);
        }
    }
}

/// Leaves the parent's terminal.
pub(super) fn leave_terminal() {
    if is_child() {
        let _ = rustix::process::setsid();
    }
}
