//! The client side of the admin endpoint: sends one request to a running server.

use crate::control::outcome::{ORDER, Outcome};
use crate::output;
use crate::output::{plain, plain_lines};
use anyhow::{Context, Result, anyhow, bail};
use howdah_config::{AdminAddress, ListenAddr, Settings, SocketPlace};
use serde_json::Value;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::time::Duration;

/// Default maximum wait for a response.
pub(crate) const RESPONSE_TIMEOUT: Duration = Duration::from_secs(600);
/// Maximum wait of a starting server for the response of a server that already runs.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

pub(crate) trait Stream: Read + Write {}
impl<T: Read + Write> Stream for T {}

/// Connects to the endpoint. Reads from the connection fail after `patience`.
pub(crate) fn connect(addr: &ListenAddr, patience: Duration) -> Result<Box<dyn Stream>> {
    let unreachable = |error: std::io::Error| match error.kind() {
        ErrorKind::PermissionDenied => anyhow!(
            "this user may not access the server on {addr} ({error}): run the command as root, or see `admin_group`"
        ),
        _ => anyhow!(
            "no howdah server responds on {addr} ({error}); is it running? `--config` names its settings, `--admin` its \
             address"
        ),
    };
    Ok(match addr.place() {
        SocketPlace::Tcp(socket) => {
            let stream = TcpStream::connect_timeout(&socket, Duration::from_secs(5)).map_err(unreachable)?;
            stream.set_read_timeout(Some(patience))?;
            Box::new(stream)
        }
        SocketPlace::Unix(path) => {
            let stream = UnixStream::connect(path).map_err(unreachable)?;
            stream.set_read_timeout(Some(patience))?;
            Box::new(stream)
        }
    })
}

/// Sends a request; returns status and body. Blocks until the response arrives.
pub(crate) fn ask(admin: &AdminAddress, method: &str, path: &str) -> Result<(u16, String)> {
    ask_within(admin, method, path, RESPONSE_TIMEOUT)
}

/// Sends a request with a time limit for the response.
pub(crate) fn ask_within(admin: &AdminAddress, method: &str, path: &str, patience: Duration) -> Result<(u16, String)> {
    let token =
        admin.token.as_ref().map(|token| format!("Authorization: Bearer {}\r\n", token.expose())).unwrap_or_default();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nHost: localhost\r\n{ORDER}: 1\r\n{token}Content-Length: 0\r\nConnection: close\r\n\r\n"
    );
    let mut stream = connect(&admin.addr, patience)?;
    stream.write_all(request.as_bytes())?;
    let mut response = Vec::new();
    stream.read_to_end(&mut response)?;
    let text = String::from_utf8_lossy(&response);
    let (head, body) = text.split_once("\r\n\r\n").context("invalid response from the server")?;
    let status = head.split(' ').nth(1).and_then(|s| s.parse().ok()).context("the server's response has no status")?;
    Ok((status, body.to_owned()))
}

/// Requests the server's status.
pub(crate) fn status_text(admin: &AdminAddress) -> Result<String> {
    let (code, body) = ask(admin, "GET", "/status")?;
    if code != 200 {
        bail!("the server responded with {code}: {}", plain(&body));
    }
    Ok(body)
}

/// Requests the server's status, parsed.
pub(crate) fn server_status(admin: &AdminAddress) -> Result<Value> {
    read_status(&status_text(admin)?)
}

pub(crate) fn read_status(text: &str) -> Result<Value> {
    serde_json::from_str(text).context("the server's response is not JSON")
}

/// Process ID of the server at the admin address of these settings, if one runs.
pub(crate) fn process_of(settings: &Settings) -> Option<u64> {
    let admin = AdminAddress { addr: settings.admin.clone(), token: settings.admin_token.clone() };
    let (code, body) = ask_within(&admin, "GET", "/status", CONNECT_TIMEOUT).ok()?;
    read_status(&body).ok().filter(|_| code == 200)?["pid"].as_u64()
}

/// Sends an order to the server.
pub(crate) fn order(admin: &AdminAddress, path: &str) -> Result<ExitCode> {
    order_within(admin, path, RESPONSE_TIMEOUT)
}

pub(crate) fn order_within(admin: &AdminAddress, path: &str, patience: Duration) -> Result<ExitCode> {
    let (_, body) = ask_within(admin, "POST", path, patience)?;
    let outcome: Outcome = serde_json::from_str(&body).context("the server's response is not JSON")?;
    let lines = [outcome.message].into_iter().chain(outcome.changes);
    let text = lines.map(|line| plain_lines(&line)).collect::<Vec<_>>().join("\n");
    if outcome.ok {
        output::print(text + "\n")?;
        return Ok(ExitCode::SUCCESS);
    }
    output::complain(text);
    Ok(ExitCode::FAILURE)
}
