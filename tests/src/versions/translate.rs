//! Handles a connection's requests one after the other: sends each over the new version and writes its response as
//! HTTP/1.1.

use super::End;
use super::link::{Link, Lost, Receiver, Sender};
use super::request::Input;
use http::Response;
use std::fmt::Write;
use tokio::io::AsyncWriteExt;
use tokio::net::UnixStream;
use tokio::net::unix::WriteHalf;

impl From<Lost> for End {
    fn from(_: Lost) -> Self {
        Self::Gone
    }
}

/// Serves a scenario's connection to its end.
pub(super) async fn serve(scenario: &mut UnixStream, mut link: Link) -> Result<(), End> {
    let (from, mut to) = scenario.split();
    let mut input = Input::new(from);
    loop {
        let head = tokio::select! {
            head = input.head() => head?,
            () = link.closed() => return Ok(()),
        };
        let Some(head) = head else { return Ok(()) };
        let method = head.request.method().clone();
        let (mut up, mut down) = link.begin(head.request, !head.has_body).await?;
        let is_whole = {
            let upload = upload(&mut input, &mut up);
            let download = download(method == http::Method::HEAD, &mut down, &mut to);
            tokio::pin!(upload, download);
            tokio::select! {
                biased;
                sent = &mut upload => {
                    let is_whole = sent?;
                    download.await?;
                    is_whole
                }
                received = &mut download => {
                    received?;
                    // The server may respond before it has the whole body. The rest of the body does no harm.
                    match at_once(&mut upload).await {
                        Some(sent) => sent?,
                        None => false,
                    }
                }
            }
        };
        if head.closes || !is_whole {
            return Ok(());
        }
    }
}

/// Result of a future, if it is ready at once.
async fn at_once<F: Future + Unpin>(future: &mut F) -> Option<F::Output> {
    tokio::select! {
        biased;
        output = future => Some(output),
        () = std::future::ready(()) => None,
    }
}

/// Sends the body as it arrives; false if the server wanted no more of it.
async fn upload(input: &mut Input<'_>, up: &mut Sender) -> Result<bool, End> {
    while let Some(piece) = input.piece().await? {
        if up.send(piece).await.is_err() {
            return Ok(false);
        }
    }
    Ok(up.finish().await.is_ok())
}

async fn download(is_head: bool, down: &mut Receiver, to: &mut WriteHalf<'_>) -> Result<(), End> {
    let response = loop {
        let head = down.head().await?;
        if !head.status().is_informational() {
            break head;
        }
        write(to, head_text(&head, "")?.as_bytes()).await?;
    };
    let status = response.status().as_u16();
    let has_length = response.headers().contains_key("content-length");
    let is_bare = is_head || status == 204 || status == 304;
    let framing = if is_bare || has_length { "" } else { "transfer-encoding: chunked\r\n" };
    write(to, head_text(&response, framing)?.as_bytes()).await?;
    while let Some(piece) = down.piece().await? {
        if piece.is_empty() {
            continue;
        }
        if is_bare {
            return Err(End::Complaint(format!("the server sent a body with {status}")));
        }
        if has_length {
            write(to, &piece).await?;
        } else {
            let mut chunk = format!("{:x}\r\n", piece.len()).into_bytes();
            chunk.extend_from_slice(&piece);
            chunk.extend_from_slice(b"\r\n");
            write(to, &chunk).await?;
        }
    }
    if !is_bare && !has_length {
        write(to, b"0\r\n\r\n").await?;
    }
    Ok(())
}

async fn write(to: &mut WriteHalf<'_>, bytes: &[u8]) -> Result<(), End> {
    to.write_all(bytes).await.map_err(|_| End::Gone)
}

/// Fields that are forbidden in heads of HTTP/2 and HTTP/3 (RFC 9113 section 8.2.2).
const FORBIDDEN: [&str; 5] = ["connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade"];

fn head_text(head: &Response<()>, framing: &str) -> Result<String, End> {
    let mut text =
        format!("HTTP/1.1 {} {}\r\n", head.status().as_u16(), head.status().canonical_reason().unwrap_or(""));
    for (name, value) in head.headers() {
        if FORBIDDEN.contains(&name.as_str()) {
            return Err(End::Complaint(format!("the server sent {name}, which belongs to HTTP/1.1 alone")));
        }
        // Scenarios read heads as UTF-8 with replacements, so this does too.
        let _ = write!(text, "{name}: {}\r\n", String::from_utf8_lossy(value.as_bytes()));
    }
    text.push_str(framing);
    text.push_str("\r\n");
    Ok(text)
}
