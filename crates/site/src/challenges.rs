//! Responses to ACME challenges (RFC 8555 section 8.3). Except over FastCGI they come before everything else, so that
//! no rule, redirect or application can prevent the issue of a certificate.

use bytes::Bytes;
use howdah_protocol::{Body, Response};
use http::{HeaderValue, Method, header};
use std::fmt::Debug;
use std::pin::Pin;

/// Prefix of the token in the path.
pub(crate) const PREFIX: &[u8] = b"/.well-known/acme-challenge/";

/// The source of tokens; `cli` provides it.
pub trait Challenges: Debug + Send + Sync {
    /// The response for a token.
    fn find<'a>(&'a self, token: &'a str) -> Pin<Box<dyn Future<Output = Option<Bytes>> + Send + 'a>>;
}

/// Returns the response if this is the path of a pending challenge. Others go on to the site: an application may have
/// its own ACME client.
pub(crate) async fn response(challenges: &dyn Challenges, method: &Method, path: &[u8]) -> Option<Response> {
    let token = path.strip_prefix(PREFIX).and_then(|token| std::str::from_utf8(token).ok())?;
    if method != Method::GET && method != Method::HEAD {
        return None;
    }
    let content = challenges.find(token).await?;
    let mut response = Response::new(Body::full(content));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
    Some(response)
}
