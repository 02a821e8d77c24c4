//! A client with one connection that requests one path repeatedly.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use super::Case;

/// Under callgrind a request takes a hundred times as long.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(20);

/// Sends this number of requests, each after the previous response is complete.
pub(super) fn ask(address: SocketAddr, case: &Case, requests: u32) -> Result<()> {
    let mut connection = TcpStream::connect(address).context("the server does not listen")?;
    connection.set_read_timeout(Some(RESPONSE_TIMEOUT))?;
    let request = format!("GET {} HTTP/1.1\r\nHost: localhost\r\n{}\r\n", case.path, case.fields);
    let mut buffer = vec![0; 1 << 20];
    for _ in 0..requests {
        connection.write_all(request.as_bytes())?;
        let mut got = 0;
        let whole = loop {
            match connection.read(&mut buffer[got..]).context("no response")? {
                0 => bail!("the connection was closed, or a response is longer than {} bytes", buffer.len()),
                bytes => got += bytes,
            }
            if let Some(whole) = length(&buffer[..got])? {
                break whole;
            }
        };
        while got < whole {
            match connection.read(&mut buffer[got..]).context("half a response")? {
                0 => bail!("the connection was closed within a response"),
                bytes => got += bytes,
            }
        }
    }
    Ok(())
}

/// Returns the total length of the response that begins with these bytes, once its head is complete.
fn length(bytes: &[u8]) -> Result<Option<usize>> {
    let mut fields = [httparse::EMPTY_HEADER; 32];
    let mut response = httparse::Response::new(&mut fields);
    let httparse::Status::Complete(head) = response.parse(bytes)? else { return Ok(None) };
    if response.code != Some(200) {
        bail!("status {:?}", response.code);
    }
    let field = response.headers.iter().find(|field| field.name.eq_ignore_ascii_case("content-length"));
    let value = field.and_then(|field| std::str::from_utf8(field.value).ok()).context("a response without a length")?;
    let body: usize = value.parse().context("Content-Length")?;
    Ok(Some(head + body))
}
