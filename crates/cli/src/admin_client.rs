//! `howdah status`, `reload`, `upgrade` and `stop`: one request to a running server's admin endpoint.

use crate::admin_guard::ORDER;
use crate::outcome::Outcome;
use crate::output;
use crate::status_text::{plain, plain_lines};
use anyhow::{Context, Result, anyhow, bail};
use howdah_config::{AdminAddress, ListenAddr, ReloadFlags, Settings};
use howdah_observe::escape;
use serde_json::Value;
use std::io::{ErrorKind, IsTerminal, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::time::Duration;

/// Longest wait for a response: a reload boots each pool's PHP anew, one after the other.
const PATIENCE: Duration = Duration::from_secs(600);
/// The same where new workers may also be watched for up to an hour.
const PATIENCE_OF_RELOADS: Duration = Duration::from_secs(600 + 3600);

/// The time that a server has to respond to another one that wants its addresses.
const LOOK_FOR_SERVER: Duration = Duration::from_secs(2);

/// Longest wait for an upgrade, whatever the server's settings say.
const LONGEST_UPGRADE: Duration = Duration::from_secs(24 * 3600);

trait Stream: Read + Write {}
impl<T: Read + Write> Stream for T {}

fn connect(addr: &ListenAddr) -> Result<Box<dyn Stream>> {
    connect_for(addr, PATIENCE)
}

fn connect_for(addr: &ListenAddr, patience: Duration) -> Result<Box<dyn Stream>> {
    let unreachable = |error: std::io::Error| match error.kind() {
        ErrorKind::PermissionDenied => anyhow!(
            "the server on {addr} is not for this user ({error}): run the command as root, or see `admin_mode` and \
             `admin_group`"
        ),
        _ => anyhow!(
            "no howdah server responds on {addr} ({error}); is it running? `--config` names its settings, `--admin` its \
             address"
        ),
    };
    Ok(match addr {
        ListenAddr::Tcp(socket) | ListenAddr::Https(socket) => {
            let stream = TcpStream::connect_timeout(socket, Duration::from_secs(5)).map_err(unreachable)?;
            stream.set_read_timeout(Some(patience))?;
            Box::new(stream)
        }
        ListenAddr::Unix(path) => {
            let stream = UnixStream::connect(path).map_err(unreachable)?;
            stream.set_read_timeout(Some(patience))?;
            Box::new(stream)
        }
    })
}

/// Asks the server; returns status and body. Blocking, as nothing else is to be done meanwhile.
pub(crate) fn ask(admin: &AdminAddress, method: &str, path: &str) -> Result<(u16, String)> {
    ask_within(admin, method, path, PATIENCE)
}

/// The same, with so much time for the response.
pub(crate) fn ask_within(admin: &AdminAddress, method: &str, path: &str, patience: Duration) -> Result<(u16, String)> {
    let token =
        admin.token.as_ref().map(|token| format!("Authorization: Bearer {}\r\n", token.expose())).unwrap_or_default();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nHost: localhost\r\n{ORDER}: 1\r\n{token}Content-Length: 0\r\nConnection: close\r\n\r\n"
    );
    let mut stream = connect_for(&admin.addr, patience)?;
    stream.write_all(request.as_bytes())?;
    let mut response = Vec::new();
    stream.read_to_end(&mut response)?;
    let text = String::from_utf8_lossy(&response);
    let (head, body) = text.split_once("\r\n\r\n").context("the server's response makes no sense")?;
    let status = head.split(' ').nth(1).and_then(|s| s.parse().ok()).context("the server's response has no status")?;
    Ok((status, body.to_owned()))
}

/// What the server says of itself.
fn status_text(admin: &AdminAddress) -> Result<String> {
    let (code, body) = ask(admin, "GET", "/status")?;
    if code != 200 {
        bail!("the server answered {code}: {}", plain(&body));
    }
    Ok(body)
}

/// The same, read.
pub(crate) fn server_status(admin: &AdminAddress) -> Result<Value> {
    read_status(&status_text(admin)?)
}

fn read_status(text: &str) -> Result<Value> {
    serde_json::from_str(text).context("the server's response is no JSON")
}

/// The process of a server that these settings lead to, if one runs.
pub(crate) fn process_of(settings: &Settings) -> Option<u64> {
    let admin = AdminAddress { addr: settings.admin.clone(), token: settings.admin_token.clone() };
    let (code, body) = ask_within(&admin, "GET", "/status", LOOK_FOR_SERVER).ok()?;
    read_status(&body).ok().filter(|_| code == 200)?["pid"].as_u64()
}

/// `howdah sandbox`: the settings that pools which learn have found to be needed.
pub(crate) fn sandbox(addr: &AdminAddress) -> Result<ExitCode> {
    output::print(crate::sandbox::learnt(&server_status(addr)?))?;
    Ok(ExitCode::SUCCESS)
}

/// `howdah status`: as text for people, or the JSON as the server gave it; with `watch` every second, until it fails.
pub(crate) fn status(admin: &AdminAddress, json: bool, watch: bool) -> Result<ExitCode> {
    // A terminal shows the newest in the place of the one before; whatever else reads this gets one after the other.
    let clear = if watch && !json && std::io::stdout().is_terminal() { "\x1b[H\x1b[2J" } else { "" };
    loop {
        let body = status_text(admin)?;
        let shown = match (json, watch) {
            (true, false) => escape::of_json(&body) + "\n",
            (true, true) => escape::of_json(&read_status(&body)?.to_string()) + "\n",
            (false, _) => crate::status_text::render(&read_status(&body)?),
        };
        if !output::print_bytes(clear)? || !output::print_while_read(shown)? || !watch {
            return Ok(ExitCode::SUCCESS);
        }
        std::thread::sleep(Duration::from_secs(1));
    }
}

/// `howdah stop`: returns when the server has ended, so that another one can be started next.
pub(crate) fn stop(admin: &AdminAddress) -> Result<ExitCode> {
    // The server closes the connections of its admin endpoint last.
    let mut until_the_end = connect(&admin.addr)?;
    let code = order(admin, "/stop")?;
    if code == ExitCode::SUCCESS {
        match until_the_end.read(&mut [0; 1]) {
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                bail!("the server still finishes requests after {} s; it ends by itself", PATIENCE.as_secs());
            }
            _ => output::print("stopped\n")?,
        }
    }
    Ok(code)
}

/// `howdah upgrade`: returns when the new process serves, or with the reason why it does not.
pub(crate) fn upgrade(admin: &AdminAddress) -> Result<ExitCode> {
    // The server gives up in time; how long that is are its settings.
    order_within(admin, "/upgrade", LONGEST_UPGRADE)
}

/// `howdah reload`: what changes goes to standard output, why nothing does to standard error.
pub(crate) fn reload(admin: &AdminAddress, flags: ReloadFlags) -> Result<ExitCode> {
    order_within(admin, &format!("/reload?{}", flags.to_query()), PATIENCE_OF_RELOADS)
}

/// An order to the server.
pub(crate) fn order(admin: &AdminAddress, path: &str) -> Result<ExitCode> {
    order_within(admin, path, PATIENCE)
}

fn order_within(admin: &AdminAddress, path: &str, patience: Duration) -> Result<ExitCode> {
    let (_, body) = ask_within(admin, "POST", path, patience)?;
    let outcome: Outcome = serde_json::from_str(&body).context("the server's response is no JSON")?;
    let lines = [outcome.message].into_iter().chain(outcome.changes);
    let text = lines.map(|line| plain_lines(&line)).collect::<Vec<_>>().join("\n");
    if outcome.ok {
        output::print(text + "\n")?;
        return Ok(ExitCode::SUCCESS);
    }
    output::complain(text);
    Ok(ExitCode::FAILURE)
}
