//! Parses heads of messages, and formats them for the next connection without the fields about a connection (RFC 9110,
//! section 7.6.1).

use super::framing::Framing;
use anyhow::{Context, Result, bail};
use std::net::IpAddr;

/// Maximum length of a head, in bytes, and number of its fields.
pub(super) const MAX_HEAD: usize = 64 << 10;
const MAX_FIELDS: usize = 200;

/// Fields about one connection, even if `Connection` does not list them.
const HOP_BY_HOP: &[&str] = &["connection", "keep-alive", "proxy-connection", "te", "upgrade"];

/// The protocol that would hide later requests from the comparison: HTTP/2 without TLS.
const HTTP2: &str = "h2c";

/// A request that is not passed on.
#[derive(Debug)]
pub(super) struct Refusal {
    pub(super) status: u16,
    pub(super) why: String,
}

/// Fields in their order, with names and values as sent.
#[derive(Debug, Default)]
pub(super) struct Fields(Vec<(String, Vec<u8>)>);

impl Fields {
    fn of(parsed: &[httparse::Header<'_>]) -> Self {
        Self(parsed.iter().map(|field| (field.name.to_owned(), field.value.to_vec())).collect())
    }

    pub(super) fn all(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_slice()))
    }

    fn values(&self, name: &str) -> impl Iterator<Item = &[u8]> {
        self.all().filter(move |(own, _)| own.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.values(name).next().is_some()
    }

    pub(super) fn first(&self, name: &str) -> Option<&str> {
        self.values(name).find_map(|value| std::str::from_utf8(value).ok())
    }

    /// Elements of a comma-separated field, in lower case.
    fn elements(&self, name: &str) -> Vec<String> {
        let texts = self.values(name).map(|value| String::from_utf8_lossy(value).to_ascii_lowercase());
        let elements: Vec<String> = texts
            .flat_map(|text| text.split(',').map(|element| element.trim().to_owned()).collect::<Vec<_>>())
            .collect();
        elements.into_iter().filter(|element| !element.is_empty()).collect()
    }

    fn asks_to_close(&self) -> bool {
        self.elements("connection").iter().any(|option| option == "close")
    }

    /// Fields for the next connection.
    pub(super) fn end_to_end(&self) -> impl Iterator<Item = (&str, &[u8])> {
        let listed = self.elements("connection");
        self.all().filter(move |(name, _)| {
            let name = name.to_ascii_lowercase();
            let is_framing = name == "transfer-encoding" || name == "content-length";
            is_framing || !HOP_BY_HOP.contains(&name.as_str()) && !listed.contains(&name)
        })
    }

    /// Framing of a body by these fields; `None` if there are none.
    fn framing(&self) -> Result<Option<Framing>> {
        let codings = self.elements("transfer-encoding");
        let lengths = self.elements("content-length");
        if let Some(coding) = codings.first() {
            if codings.len() > 1 || coding != "chunked" {
                bail!("Transfer-Encoding: {}", codings.join(", "));
            }
            if !lengths.is_empty() {
                bail!("both Transfer-Encoding and Content-Length");
            }
            return Ok(Some(Framing::Chunked));
        }
        let Some(length) = lengths.first() else { return Ok(None) };
        let is_number = !length.is_empty() && length.bytes().all(|byte| byte.is_ascii_digit());
        if !is_number || lengths.iter().any(|other| other != length) {
            bail!("Content-Length: {}", lengths.join(", "));
        }
        Ok(Some(Framing::Length(length.parse().with_context(|| format!("Content-Length: {length}"))?)))
    }
}

#[derive(Debug)]
pub(super) struct RequestHead {
    pub(super) method: String,
    pub(super) target: String,
    /// 0 for HTTP/1.0, 1 for HTTP/1.1.
    minor: u8,
    pub(super) fields: Fields,
    pub(super) framing: Framing,
}

impl RequestHead {
    /// Parses a head and returns it with its length; `None` if more bytes are needed.
    ///
    /// # Errors
    /// The request cannot be passed on.
    pub(super) fn parse(bytes: &[u8]) -> Result<Option<(Self, usize)>, Refusal> {
        let refused = |status, why: &str| Err(Refusal { status, why: why.to_owned() });
        let mut parsed = [httparse::EMPTY_HEADER; MAX_FIELDS];
        let mut request = httparse::Request::new(&mut parsed);
        let length = match request.parse(bytes) {
            Ok(httparse::Status::Complete(length)) => length,
            Ok(httparse::Status::Partial) if bytes.len() < MAX_HEAD => return Ok(None),
            Ok(httparse::Status::Partial) | Err(httparse::Error::TooManyHeaders) => {
                return refused(431, "the head of the request is too large");
            }
            Err(httparse::Error::Version) => return refused(505, "not HTTP/1.0 or HTTP/1.1"),
            Err(error) => return refused(400, &format!("malformed request: {error}")),
        };
        let (method, target) = (request.method.unwrap_or_default(), request.path.unwrap_or_default());
        let (minor, fields) = (request.version.unwrap_or_default(), Fields::of(request.headers));
        if method == "CONNECT" {
            return refused(501, "CONNECT is not supported");
        }
        let framing = match fields.framing() {
            Ok(Some(Framing::Chunked)) if minor == 0 => return refused(400, "Transfer-Encoding in HTTP/1.0"),
            Ok(framing) => framing.unwrap_or(Framing::Length(0)),
            Err(error) => return refused(400, &format!("malformed request: {error:#}")),
        };
        let (method, target) = (method.to_owned(), target.to_owned());
        Ok(Some((Self { method, target, minor, fields, framing }, length)))
    }

    /// `true` if the client may send another request on its connection.
    pub(super) fn keeps_connection(&self) -> bool {
        self.minor == 1 && !self.fields.asks_to_close()
    }

    /// `true` if the client accepts responses before the final one.
    pub(super) const fn takes_interim(&self) -> bool {
        self.minor == 1
    }

    /// `true` if the request may arrive twice, so that it may use a kept connection, which the server may be closing.
    pub(super) fn may_be_repeated(&self) -> bool {
        matches!(self.method.as_str(), "GET" | "HEAD" | "OPTIONS" | "TRACE") && self.has_no_body()
    }

    pub(super) fn has_no_body(&self) -> bool {
        self.framing == Framing::Length(0)
    }

    /// The protocols that the client would change to.
    fn upgrade(&self) -> Option<&str> {
        let is_asked = self.minor == 1 && self.fields.elements("connection").iter().any(|option| option == "upgrade");
        let has_other = self.fields.elements("upgrade").iter().any(|protocol| protocol != HTTP2);
        self.fields.first("upgrade").filter(|_| is_asked && has_other)
    }

    pub(super) fn is_upgrade(&self) -> bool {
        self.upgrade().is_some()
    }

    /// Fields for the old server and for copies: without those about the connection, with the client's address.
    pub(super) fn forwarded_fields(&self, client: IpAddr) -> Vec<(&str, Vec<u8>)> {
        const NAME: &str = "X-Forwarded-For";
        let mut fields: Vec<(&str, Vec<u8>)> = self
            .fields
            .end_to_end()
            .filter(|(name, _)| !name.eq_ignore_ascii_case(NAME))
            .map(|(name, value)| (name, value.to_vec()))
            .collect();
        let client = client.to_canonical().to_string();
        let earlier = self.fields.values(NAME).filter(|value| !value.is_empty());
        fields.push((NAME, earlier.chain([client.as_bytes()]).collect::<Vec<_>>().join(&b", "[..])));
        fields
    }

    /// The head for the old server.
    pub(super) fn forwarded(&self, client: IpAddr) -> Vec<u8> {
        let mut head = format!("{} {} HTTP/1.{}\r\n", self.method, self.target, self.minor).into_bytes();
        self.forwarded_fields(client).iter().for_each(|(name, value)| push(&mut head, name, value));
        let mut options = Vec::new();
        if let Some(protocols) = self.upgrade() {
            push(&mut head, "Upgrade", protocols.as_bytes());
            options.push("Upgrade");
        }
        // Trailers of a response pass through.
        if self.fields.elements("te").iter().any(|coding| coding == "trailers") {
            push(&mut head, "TE", b"trailers");
            options.push("TE");
        }
        if self.fields.asks_to_close() {
            options.push("close");
        }
        finish(head, &options)
    }
}

#[derive(Debug)]
pub(super) struct ResponseHead {
    pub(super) status: u16,
    reason: String,
    minor: u8,
    pub(super) fields: Fields,
    pub(super) framing: Framing,
}

impl ResponseHead {
    /// Parses the head of the response to a request of this method, and returns it with its length; `None` if more bytes
    /// are needed.
    ///
    /// # Errors
    /// It is no response.
    pub(super) fn parse(bytes: &[u8], method: &str) -> Result<Option<(Self, usize)>> {
        let mut parsed = [httparse::EMPTY_HEADER; MAX_FIELDS];
        let mut response = httparse::Response::new(&mut parsed);
        let mut parser = httparse::ParserConfig::default();
        parser.allow_obsolete_multiline_headers_in_responses(true).allow_spaces_after_header_name_in_responses(true);
        let length = match parser.parse_response(&mut response, bytes).context("malformed response")? {
            httparse::Status::Complete(length) => length,
            httparse::Status::Partial if bytes.len() < MAX_HEAD => return Ok(None),
            httparse::Status::Partial => bail!("the head of the response has more than {MAX_HEAD} bytes"),
        };
        let (status, minor) = (response.code.unwrap_or_default(), response.version.unwrap_or_default());
        let fields = Fields::of(response.headers);
        let is_empty = method == "HEAD" || status < 200 || status == 204 || status == 304;
        // Clients ignore a length next to a transfer coding.
        let framing = match fields.elements("transfer-encoding").last() {
            _ if is_empty => Framing::Length(0),
            Some(coding) if coding == "chunked" => Framing::Chunked,
            Some(_) => Framing::UntilClose,
            None => fields.framing().context("malformed response")?.unwrap_or(Framing::UntilClose),
        };
        let reason = response.reason.unwrap_or_default().to_owned();
        Ok(Some((Self { status, reason, minor, fields, framing }, length)))
    }

    /// `true` for a response before the final one. A change of protocol is final.
    pub(super) const fn is_interim(&self) -> bool {
        self.status < 200 && self.status != 101
    }

    /// `true` if the old server takes another request on its connection.
    pub(super) fn keeps_connection(&self) -> bool {
        let options = self.fields.elements("connection");
        let is_asked = options.iter().any(|option| option == "keep-alive");
        let is_kept = if self.minor == 1 { !self.fields.asks_to_close() } else { is_asked };
        is_kept && self.framing != Framing::UntilClose
    }

    /// The head for the client; `closes` if its connection ends after the response.
    pub(super) fn forwarded(&self, closes: bool) -> Vec<u8> {
        let mut head = format!("HTTP/1.1 {:03} {}\r\n", self.status, self.reason).into_bytes();
        let has_two_framings = self.fields.has("transfer-encoding");
        let fields = self.fields.end_to_end();
        fields
            .filter(|(name, _)| !(has_two_framings && name.eq_ignore_ascii_case("content-length")))
            .for_each(|(name, value)| push(&mut head, name, value));
        let mut options = Vec::new();
        if self.status == 101 {
            self.fields.values("upgrade").for_each(|protocols| push(&mut head, "Upgrade", protocols));
            options.push("Upgrade");
        } else if closes && !self.is_interim() {
            options.push("close");
        }
        finish(head, &options)
    }
}

/// A response of the proxy itself, after which the connection ends.
pub(super) fn own_response(status: u16, why: &str) -> Vec<u8> {
    let reason = match status {
        400 => "Bad Request",
        431 => "Request Header Fields Too Large",
        501 => "Not Implemented",
        502 => "Bad Gateway",
        504 => "Gateway Timeout",
        _ => "HTTP Version Not Supported",
    };
    let text = format!("howdah doctor: {why}\n");
    let length = text.len();
    format!(
        "HTTP/1.1 {status} {reason}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {length}\r\n\
         Connection: close\r\n\r\n{text}"
    )
    .into_bytes()
}

fn push(head: &mut Vec<u8>, name: &str, value: &[u8]) {
    head.extend_from_slice(name.as_bytes());
    head.extend_from_slice(b": ");
    head.extend_from_slice(value);
    head.extend_from_slice(b"\r\n");
}

fn finish(mut head: Vec<u8>, options: &[&str]) -> Vec<u8> {
    if !options.is_empty() {
        push(&mut head, "Connection", options.join(", ").as_bytes());
    }
    head.extend_from_slice(b"\r\n");
    head
}

#[cfg(test)]
#[path = "head_tests.rs"]
mod tests;
