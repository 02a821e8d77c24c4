//! PHP-FPM's status and ping pages over FastCGI, for exporters and agents that speak only FastCGI.
//!
//! A connection to the admin endpoint whose first byte is the FastCGI version is served here: no HTTP request begins
//! with that byte. It can read `/pools/NAME/status` and the paths that pools set as `status_path`; it cannot give
//! orders. As in PHP-FPM, the script name (`SCRIPT_NAME`) selects the page.

use bytes::BytesMut;
use howdah_protocol::Params;
use howdah_protocol::fastcgi::decoder::{Decoder, Event, RequestStart};
use howdah_protocol::fastcgi::record::{self, EndStatus, kind};
use howdah_site::upstream::PoolPageText;
use std::borrow::Cow;
use std::io;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::timeout;

/// The first byte of every record.
pub(crate) use howdah_protocol::fastcgi::record::VERSION;

/// Maximum time to receive a request or to send its response; slower clients are disconnected.
const READ_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum time to wait for the client to close: closing with unread bytes in the socket would discard the response.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);
/// Maximum total size of a request's variables, in bytes.
const MAX_PARAMS_LEN: usize = 64 << 10;

#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct PageRequest {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) query: String,
    /// Value of the HTTP `Authorization` field, for endpoints with a token.
    pub(crate) authorization: Option<String>,
}

impl PageRequest {
    fn of(params: &Params) -> Self {
        let text = |name| params.get(name).map(|value| String::from_utf8_lossy(value).into_owned());
        Self {
            method: text("REQUEST_METHOD").unwrap_or_default(),
            path: text("SCRIPT_NAME").unwrap_or_default(),
            query: text("QUERY_STRING").unwrap_or_default(),
            authorization: text("HTTP_AUTHORIZATION"),
        }
    }
}

/// Responds to a connection's requests until the client closes it or sends its last request.
///
/// # Errors
/// The client disconnects, is too slow, or does not speak FastCGI.
pub(crate) async fn serve(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    mut respond: impl FnMut(&PageRequest) -> PoolPageText,
) -> io::Result<()> {
    let mut talk = FcgiConnection { stream, decoder: Decoder::new(MAX_PARAMS_LEN, 0), input: BytesMut::new() };
    while let Some((id, keep, asked)) = within(talk.request()).await? {
        within(talk.respond(id, &respond(&asked))).await?;
        if !keep {
            talk.stream.shutdown().await?;
            let _ = timeout(CLOSE_TIMEOUT, tokio::io::copy(&mut talk.stream, &mut tokio::io::sink())).await;
            break;
        }
    }
    Ok(())
}

async fn within<T>(what: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    timeout(READ_TIMEOUT, what).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}

struct FcgiConnection<S> {
    stream: S,
    decoder: Decoder,
    input: BytesMut,
}

impl<S: AsyncRead + AsyncWrite + Unpin> FcgiConnection<S> {
    /// Returns the next request with its id and whether another may follow; `None` if the client has closed the
    /// connection. The pages need no body, so a request is complete with its variables.
    async fn request(&mut self) -> io::Result<Option<(u16, bool, PageRequest)>> {
        loop {
            let mut out = Vec::new();
            let event = self.decoder.next(&mut self.input, &mut out);
            self.stream.write_all(&out).await?;
            match event {
                Ok(Some(Event::Request(RequestStart { id, keep_connection: keep, params }))) => {
                    self.decoder.finish();
                    return Ok(Some((id, keep, PageRequest::of(&params))));
                }
                Ok(Some(Event::TooLarge(_))) | Err(_) => return Err(io::ErrorKind::InvalidData.into()),
                Ok(Some(_)) => {}
                Ok(None) => {
                    if self.stream.read_buf(&mut self.input).await? == 0 {
                        let is_cut = self.decoder.is_mid_record() || !self.input.is_empty();
                        return if is_cut { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(None) };
                    }
                }
            }
        }
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
        let mut out = Vec::new();
        record::write(&mut out, kind::STDOUT, id, &[head.as_bytes(), said.body.as_bytes()].concat());
        record::write(&mut out, kind::STDOUT, id, b"");
        record::write_end(&mut out, id, EndStatus::Complete);
        self.stream.write_all(&out).await?;
        self.stream.flush().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use howdah_protocol::fastcgi::record::{HEADER, Header, KEEP_CONNECTION};
    use howdah_protocol::params::write_pair;

    fn request(id: u16, flags: u8, path: &str) -> Vec<u8> {
        let (mut params, mut out) = (Vec::new(), Vec::new());
        for (name, value) in [("SCRIPT_NAME", path), ("QUERY_STRING", "json"), ("OTHER", "x")] {
            write_pair(&mut params, name.as_bytes(), value.as_bytes());
        }
        record::write(&mut out, kind::BEGIN_REQUEST, id, &[0, 1, flags, 0, 0, 0, 0, 0]);
        record::write(&mut out, kind::PARAMS, id, &params);
        record::write(&mut out, kind::PARAMS, id, b"");
        out
    }

    /// Sends a client's data and returns the responses as type, id and content of each record.
    async fn responses(sent: &[u8], body: &str) -> (io::Result<()>, Vec<(u8, u16, Vec<u8>)>) {
        let (mut client, server) = tokio::io::duplex(1 << 20);
        client.write_all(sent).await.unwrap();
        client.shutdown().await.unwrap();
        let done = serve(server, |page_request| PoolPageText {
            status: if page_request.path == "/none" { hyper::StatusCode::NOT_FOUND } else { hyper::StatusCode::OK },
            media_type: "text/plain",
            body: format!("{} {} {body}", page_request.path, page_request.query),
        })
        .await;
        let (mut bytes, mut records) = (Vec::new(), Vec::new());
        client.read_to_end(&mut bytes).await.unwrap();
        let mut rest = &bytes[..];
        while let Some(header) = rest.first_chunk::<HEADER>() {
            let header = Header::parse(header).unwrap();
            let (record, after) = rest.split_at(HEADER + usize::from(header.length));
            records.push((header.kind, header.id, record[HEADER..].to_vec()));
            rest = after;
        }
        (done, records)
    }

    #[tokio::test]
    async fn kept_connections_are_reused_and_long_pages_span_records() {
        let body = "x".repeat(200_000);
        let mut sent = request(1, KEEP_CONNECTION, "/a");
        record::write(&mut sent, kind::STDIN, 1, b"");
        let (done, records) = responses(&[sent, request(2, 0, "/none")].concat(), &body).await;
        done.unwrap();
        let of = |id: u16| {
            let mine = records.iter().filter(move |record| record.1 == id && record.0 == kind::STDOUT);
            String::from_utf8(mine.flat_map(|record| record.2.clone()).collect()).unwrap()
        };
        assert!(
            of(1).starts_with("Expires: ") && of(1).ends_with(&format!("\r\n\r\n/a json {body}")),
            "{}",
            of(1).len()
        );
        assert!(of(2).starts_with("Status: 404 Not Found\r\n"), "{}", &of(2)[..100]);
        assert_eq!(records.iter().filter(|record| record.0 == kind::END_REQUEST).count(), 2);
        assert!(records.len() > 8);
    }

    #[tokio::test]
    async fn malformed_bytes_and_too_many_variables_end_the_connection() {
        let mut many = request(1, 0, "/a");
        many.truncate(16);
        (0..3).for_each(|_| record::write(&mut many, kind::PARAMS, 1, &[0; 40_000]));
        for wrong in [many, vec![2; 8], vec![VERSION, 4], request(1, 0, "/a")[..40].to_vec()] {
            let (done, records) = responses(&wrong, "").await;
            assert!(done.is_err() && records.is_empty(), "{wrong:?}");
        }
    }
}
