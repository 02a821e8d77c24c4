//! A response as read by the client, with helpers for assertions.

use serde_json::Value;
use std::io::Read;

#[derive(Debug, Clone, Default)]
pub struct Response {
    /// `HTTP/1.1` or `HTTP/1.0`.
    pub version: String,
    pub status: u16,
    pub reason: String,
    /// Header lines in order.
    pub headers: Vec<(String, String)>,
    /// The body, with transfer coding removed.
    pub body: Vec<u8>,
    /// The 1xx responses that came before.
    pub interim: Vec<Response>,
}

impl Response {
    /// The value of the first header with this name.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, v)| v.as_str())
    }

    /// All values of the headers with this name, in order.
    pub fn all(&self, name: &str) -> Vec<&str> {
        self.headers.iter().filter(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, v)| v.as_str()).collect()
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|e| panic!("not JSON ({e}): {} {:?}", self.status, self.text()))
    }

    /// Fails unless the status is this one.
    #[must_use]
    pub fn expect(self, status: u16) -> Self {
        assert_eq!(self.status, status, "headers {:?}, body {:?}", self.headers, clip(&self.text()));
        self
    }

    /// The body with its content coding removed.
    pub fn decoded(&self) -> Vec<u8> {
        let mut plain = Vec::new();
        let done = match self.header("content-encoding") {
            None => return self.body.clone(),
            Some("gzip") => flate2::read::MultiGzDecoder::new(&self.body[..]).read_to_end(&mut plain),
            Some("br") => brotli::Decompressor::new(&self.body[..], 4096).read_to_end(&mut plain),
            Some("zstd") => {
                zstd::stream::read::Decoder::new(&self.body[..]).and_then(|mut d| d.read_to_end(&mut plain))
            }
            Some(other) => panic!("unknown Content-Encoding {other:?}"),
        };
        done.unwrap_or_else(|e| panic!("cannot decode {:?}: {e}", self.header("content-encoding")));
        plain
    }

    /// True if `Vary` names this header.
    pub fn varies_on(&self, name: &str) -> bool {
        self.all("vary").iter().flat_map(|v| v.split(',')).any(|v| v.trim().eq_ignore_ascii_case(name))
    }
}

/// The beginning of a long text, for messages.
pub fn clip(text: &str) -> &str {
    match text.char_indices().nth(600) {
        Some((end, _)) => &text[..end],
        None => text,
    }
}
