//! What an authority asks for on a plain port to see that a name is ours (RFC 8555 section 8.3). It is looked at before
//! everything else: no rule, redirect or application may stand in the way of a certificate.

use bytes::Bytes;
use howdah_protocol::{Body, Response};
use http::{HeaderValue, Method, header};
use std::fmt::Debug;
use std::pin::Pin;

/// What comes before the token in the path.
pub(crate) const PREFIX: &[u8] = b"/.well-known/acme-challenge/";

/// Who knows the tokens; `cli` brings it.
pub trait Challenges: Debug + Send + Sync {
    /// What is to be found under a token.
    fn find<'a>(&'a self, token: &'a str) -> Pin<Box<dyn Future<Output = Option<Bytes>> + Send + 'a>>;
}

/// The response, if this is a path of a challenge that is under way. All else goes its way: an application may have an ACME
/// client of its own.
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
