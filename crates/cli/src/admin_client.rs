//! `howdah status`, `reload` and `stop`: one request to a running server's admin endpoint.

use crate::admin::Outcome;
use anyhow::{Context, Result, bail};
use howdah_config::ListenAddr;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::time::Duration;

/// Longest wait for an answer: a reload boots PHP anew.
const PATIENCE: Duration = Duration::from_secs(120);

/// Asks the server; returns status and body. Blocking, as nothing else is to be done meanwhile.
fn ask(addr: &ListenAddr, method: &str, path: &str) -> Result<(u16, String)> {
    let request = format!("{method} {path} HTTP/1.1\r\nHost: howdah\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    let unreachable = || format!("no howdah server answers on {addr}; is it running? (`--admin` names another address)");
    let mut answer = Vec::new();
    match addr {
        ListenAddr::Tcp(socket) => {
            let mut stream = TcpStream::connect_timeout(socket, Duration::from_secs(5)).with_context(unreachable)?;
            stream.set_read_timeout(Some(PATIENCE))?;
            stream.write_all(request.as_bytes())?;
            stream.read_to_end(&mut answer)?;
        }
        ListenAddr::Unix(path) => {
            let mut stream = UnixStream::connect(path).with_context(unreachable)?;
            stream.set_read_timeout(Some(PATIENCE))?;
            stream.write_all(request.as_bytes())?;
            stream.read_to_end(&mut answer)?;
        }
    }
    let text = String::from_utf8_lossy(&answer);
    let (head, body) = text.split_once("\r\n\r\n").context("the server's answer makes no sense")?;
    let status = head.split(' ').nth(1).and_then(|s| s.parse().ok()).context("the server's answer has no status")?;
    Ok((status, body.to_owned()))
}

/// `howdah status`: as text for people, or the JSON as the server gave it.
pub(crate) fn status(addr: &ListenAddr, json: bool) -> Result<ExitCode> {
    let (code, body) = ask(addr, "GET", "/status")?;
    if code != 200 {
        bail!("the server answered {code}: {body}");
    }
    if json {
        println!("{body}");
    } else {
        let status = serde_json::from_str(&body).context("the server's answer is no JSON")?;
        print!("{}", crate::status_text::render(&status));
    }
    Ok(ExitCode::SUCCESS)
}

/// `howdah reload` and `howdah stop`.
pub(crate) fn order(addr: &ListenAddr, path: &str) -> Result<ExitCode> {
    let (_, body) = ask(addr, "POST", path)?;
    let outcome: Outcome = serde_json::from_str(&body).context("the server's answer is no JSON")?;
    if outcome.ok {
        println!("{}", outcome.message);
        return Ok(ExitCode::SUCCESS);
    }
    eprintln!("{}", outcome.message);
    Ok(ExitCode::FAILURE)
}
