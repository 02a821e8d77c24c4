//! PHP-FPM's status and ping pages over FastCGI, for exporters and agents that ask PHP-FPM itself and speak nothing else.
//!
//! A connection to the admin endpoint that begins with FastCGI's version is one of these: no request of HTTP begins with that
//! byte. It may read `/pools/NAME/status`, `/pools/NAME/ping`, and what pools name as `status_path` and `ping_path`; nothing else
//! is there, and nothing is ordered. Pages are for the script name (`SCRIPT_NAME`), as in PHP-FPM. Source: the FastCGI
//! specification 1.0, sections 3 to 5; no crate that is kept has a server's side that one could use without its own runtime.

use howdah_site::upstream::PoolPageText;
use std::borrow::Cow;
use std::io;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::timeout;

/// The first byte of every record.
pub(crate) const VERSION: u8 = 1;

/// Maximum time for a request to arrive or its response to go; slower clients are disconnected.
const PATIENCE: Duration = Duration::from_secs(10);
/// Maximum time to wait for the client's end: with unread bytes, closing would discard the response.
const LINGER: Duration = Duration::from_secs(1);
/// Maximum size of all variables of a request, in bytes.
const MOST_PARAMS: usize = 64 << 10;
/// A record's content at most, a multiple of eight so that no padding is needed behind it.
const MOST_CONTENT: usize = 0xfff8;

/// Types of records.
const BEGIN_REQUEST: u8 = 1;
const ABORT_REQUEST: u8 = 2;
const END_REQUEST: u8 = 3;
const PARAMS: u8 = 4;
const STDOUT: u8 = 6;
const UNKNOWN_TYPE: u8 = 11;
/// The role of a responder, and the flag of a client that keeps the connection.
const RESPONDER: u16 = 1;
const KEEP_CONNECTION: u8 = 1;
/// Protocol status of a completed request.
const COMPLETE: u8 = 0;
const CANNOT_MULTIPLEX: u8 = 1;
const UNKNOWN_ROLE: u8 = 3;

/// The requested page.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Asked {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) query: String,
    /// The field of HTTP, for endpoints with a token.
    pub(crate) authorization: Option<String>,
}

/// Responds to the requests of a connection until its client ends it, or says that it has no more.
///
/// # Errors
/// The client has gone, is too slow, or does not speak FastCGI.
pub(crate) async fn serve(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    mut respond: impl FnMut(&Asked) -> PoolPageText,
) -> io::Result<()> {
    let mut talk = Talk { stream };
    while let Some((id, keep, asked)) = within(talk.request()).await? {
        within(talk.respond(id, &respond(&asked))).await?;
        if !keep {
            talk.stream.shutdown().await?;
            let _ = timeout(LINGER, tokio::io::copy(&mut talk.stream, &mut tokio::io::sink())).await;
            break;
        }
    }
    Ok(())
}

async fn within<T>(what: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    timeout(PATIENCE, what).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}

/// A record without its padding.
struct Record {
    kind: u8,
    id: u16,
    content: Vec<u8>,
}

struct Talk<S> {
    stream: S,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Talk<S> {
    /// The next request, by its number and whether another may follow it; none if the client has ended the connection. The
    /// pages need no body, so the end of the variables is the request's.
    async fn request(&mut self) -> io::Result<Option<(u16, bool, Asked)>> {
        let mut under_way = None;
        let mut params = Vec::new();
        while let Some(record) = self.record().await? {
            let Record { kind, id, content } = record;
            match (kind, under_way) {
                (BEGIN_REQUEST, None) => {
                    let [high, low, flags, ..] = content[..] else { return Err(malformed("a short beginning")) };
                    if u16::from_be_bytes([high, low]) == RESPONDER {
                        under_way = Some((id, flags & KEEP_CONNECTION != 0));
                    } else {
                        self.end(id, UNKNOWN_ROLE).await?;
                    }
                }
                (BEGIN_REQUEST, Some(_)) => self.end(id, CANNOT_MULTIPLEX).await?,
                (ABORT_REQUEST, Some((own, _))) if own == id => {
                    self.end(id, COMPLETE).await?;
                    (under_way, params) = (None, Vec::new());
                }
                (PARAMS, Some((own, keep))) if own == id => {
                    if content.is_empty() {
                        return Ok(Some((id, keep, asked(&params)?)));
                    }
                    params.extend_from_slice(&content);
                    if params.len() > MOST_PARAMS {
                        return Err(malformed("too many variables"));
                    }
                }
                // The rest of a body, or of a request that was ended.
                _ if id != 0 => {}
                _ => self.write(UNKNOWN_TYPE, 0, &[kind, 0, 0, 0, 0, 0, 0, 0]).await?,
            }
        }
        Ok(None)
    }

    async fn record(&mut self) -> io::Result<Option<Record>> {
        let mut head = [0; 8];
        if self.stream.read(&mut head[..1]).await? == 0 {
            return Ok(None);
        }
        self.stream.read_exact(&mut head[1..]).await?;
        let [version, kind, id_high, id_low, length_high, length_low, padding, _] = head;
        if version != VERSION {
            return Err(malformed("another version"));
        }
        let length = usize::from(u16::from_be_bytes([length_high, length_low]));
        let mut content = vec![0; length + usize::from(padding)];
        self.stream.read_exact(&mut content).await?;
        content.truncate(length);
        Ok(Some(Record { kind, id: u16::from_be_bytes([id_high, id_low]), content }))
    }

    async fn respond(&mut self, id: u16, said: &PoolPageText) -> io::Result<()> {
        let status = match said.status {
            hyper::StatusCode::OK => Cow::Borrowed(""),
            other => Cow::Owned(format!("Status: {other}\r\n")),
        };
        // Like PHP-FPM: these pages must not be cached.
        let head = format!(
            "{status}Expires: Thu, 01 Jan 1970 00:00:00 GMT\r\nCache-Control: no-cache, no-store, must-revalidate, \
             max-age=0\r\nContent-type: {}\r\n\r\n",
            said.media_type
        );
        let whole = [head.as_bytes(), said.body.as_bytes()].concat();
        for part in whole.chunks(MOST_CONTENT) {
            self.write(STDOUT, id, part).await?;
        }
        self.write(STDOUT, id, &[]).await?;
        self.end(id, COMPLETE).await
    }

    async fn end(&mut self, id: u16, how: u8) -> io::Result<()> {
        self.write(END_REQUEST, id, &[0, 0, 0, 0, how, 0, 0, 0]).await?;
        self.stream.flush().await
    }

    /// A record; `content` has at most `MOST_CONTENT`.
    async fn write(&mut self, kind: u8, id: u16, content: &[u8]) -> io::Result<()> {
        let padding = content.len().wrapping_neg() % 8;
        let [id_high, id_low] = id.to_be_bytes();
        let [length_high, length_low] = u16::try_from(content.len()).unwrap_or(u16::MAX).to_be_bytes();
        let head = [VERSION, kind, id_high, id_low, length_high, length_low, padding as u8, 0];
        self.stream.write_all(&[&head, content, &[0; 8][..padding]].concat()).await
    }
}

/// Parses the variables of a request.
fn asked(mut params: &[u8]) -> io::Result<Asked> {
    let mut asked = Asked::default();
    while !params.is_empty() {
        let name_length = length(&mut params)?;
        let value_length = length(&mut params)?;
        let name = take(&mut params, name_length)?;
        let value = String::from_utf8_lossy(take(&mut params, value_length)?).into_owned();
        match name {
            b"REQUEST_METHOD" => asked.method = value,
            b"SCRIPT_NAME" => asked.path = value,
            b"QUERY_STRING" => asked.query = value,
            b"HTTP_AUTHORIZATION" => asked.authorization = Some(value),
            _ => {}
        }
    }
    Ok(asked)
}

/// A length in one byte, or in four if the highest bit is set.
fn length(params: &mut &[u8]) -> io::Result<usize> {
    let first = take(params, 1)?[0];
    if first < 0x80 {
        return Ok(usize::from(first));
    }
    let rest = take(params, 3)?;
    Ok(u32::from_be_bytes([first & 0x7f, rest[0], rest[1], rest[2]]) as usize)
}

fn take<'a>(params: &mut &'a [u8], length: usize) -> io::Result<&'a [u8]> {
    let (taken, rest) = params.split_at_checked(length).ok_or_else(|| malformed("a variable that is cut off"))?;
    *params = rest;
    Ok(taken)
}

fn malformed(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(kind: u8, id: u8, content: &[u8]) -> Vec<u8> {
        let length = content.len() as u16;
        [&[VERSION, kind, 0, id, (length >> 8) as u8, length as u8, 3, 0], content, &[9; 3]].concat()
    }

    fn begin(id: u8, role: u8, flags: u8) -> Vec<u8> {
        record(BEGIN_REQUEST, id, &[0, role, flags, 0, 0, 0, 0, 0])
    }

    fn pair(name: &str, value: &str) -> Vec<u8> {
        let long = (value.len() as u32 | 0x8000_0000).to_be_bytes();
        [&[name.len() as u8], &long[..], name.as_bytes(), value.as_bytes()].concat()
    }

    fn request(id: u8, flags: u8, path: &str) -> Vec<u8> {
        let params = [pair("SCRIPT_NAME", path), pair("QUERY_STRING", "json"), pair("OTHER", "x")].concat();
        // Records may cut variables anywhere.
        let (first, rest) = params.split_at(7);
        [begin(id, 1, flags), record(PARAMS, id, first), record(PARAMS, id, rest), record(PARAMS, id, &[])].concat()
    }

    /// Responses to a client's data, as types, numbers and contents of records.
    async fn responses(sent: &[u8], body: &str) -> (io::Result<()>, Vec<(u8, u16, Vec<u8>)>) {
        let (mut client, server) = tokio::io::duplex(1 << 20);
        client.write_all(sent).await.unwrap();
        client.shutdown().await.unwrap();
        let done = serve(server, |asked| PoolPageText {
            status: if asked.path == "/none" { hyper::StatusCode::NOT_FOUND } else { hyper::StatusCode::OK },
            media_type: "text/plain",
            body: format!("{} {} {body}", asked.path, asked.query),
        })
        .await;
        let (mut talk, mut records) = (Talk { stream: client }, Vec::new());
        while let Some(record) = talk.record().await.unwrap() {
            records.push((record.kind, record.id, record.content));
        }
        (done, records)
    }

    #[tokio::test]
    async fn a_kept_connection_is_asked_several_times_and_long_pages_come_in_several_records() {
        let body = "x".repeat(200_000);
        let sent = [request(1, KEEP_CONNECTION, "/a"), record(5, 1, b""), request(2, 0, "/none")].concat();
        let (done, records) = responses(&sent, &body).await;
        done.unwrap();
        let of = |id: u16| {
            let mine = records.iter().filter(move |record| record.1 == id && record.0 == STDOUT);
            String::from_utf8(mine.flat_map(|record| record.2.clone()).collect()).unwrap()
        };
        assert!(
            of(1).starts_with("Expires: ") && of(1).ends_with(&format!("\r\n\r\n/a json {body}")),
            "{}",
            of(1).len()
        );
        assert!(of(2).starts_with("Status: 404 Not Found\r\n"), "{}", &of(2)[..100]);
        assert_eq!(records.iter().filter(|record| record.0 == END_REQUEST).count(), 2);
        assert!(records.len() > 8);
    }

    #[tokio::test]
    async fn what_is_no_request_for_a_page_is_refused_in_the_protocols_own_way() {
        let sent = [
            record(9, 0, b""),
            begin(1, 2, KEEP_CONNECTION),
            begin(2, 1, KEEP_CONNECTION),
            begin(3, 1, 0),
            record(ABORT_REQUEST, 2, b""),
            request(4, 0, "/a"),
        ]
        .concat();
        let (done, records) = responses(&sent, "").await;
        done.unwrap();
        let ends: Vec<(u16, u8)> =
            records.iter().filter(|record| record.0 == END_REQUEST).map(|record| (record.1, record.2[4])).collect();
        assert_eq!(ends, [(1, UNKNOWN_ROLE), (3, CANNOT_MULTIPLEX), (2, COMPLETE), (4, COMPLETE)]);
        assert_eq!((records[0].0, records[0].2[0]), (UNKNOWN_TYPE, 9));
    }

    #[tokio::test]
    async fn malformed_bytes_end_the_connection_and_take_no_memory() {
        let begun = begin(1, 1, 0);
        let cut = record(PARAMS, 1, &[200, 1, 1]);
        let beyond = record(PARAMS, 1, &[0xff, 0xff, 0xff, 0xff, 0, b'x']);
        let many: Vec<u8> = (0..3).flat_map(|_| record(PARAMS, 1, &[0; 0xffff])).collect();
        let end = record(PARAMS, 1, &[]);
        for wrong in [[&cut[..], &end].concat(), [&beyond[..], &end].concat(), many, vec![2; 8], vec![VERSION, 4]] {
            let (done, records) = responses(&[&begun[..], &wrong].concat(), "").await;
            assert!(done.is_err() && records.is_empty(), "{wrong:?}");
        }
    }
}
