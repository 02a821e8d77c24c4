//! HTTP requests to an authority, and to the application that allows names on demand. Each request has its own
//! connection, as an order has only about ten. Time and length are bounded everywhere.

use crate::acme::failure::chain;
use crate::client::{self, Failed};
use bytes::Bytes;
use http::header::RETRY_AFTER;
use http::{HeaderValue, Request, Response, Uri};
use instant_acme::{BodyWrapper, BytesResponse, Error, HttpClient};
use parking_lot::Mutex;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio_rustls::TlsConnector;

/// Maximum time for a request and its response.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum length of a response: a chain of certificates has a few kilobytes.
const MAX_BODY_LEN: usize = 256 * 1024;

/// An HTTP client. Clones share its state.
#[derive(Clone)]
pub(super) struct Client {
    tls: TlsConnector,
    /// `Retry-After` of the last refusal, which the ACME library drops.
    retry_after: Arc<Mutex<Option<SystemTime>>>,
}

impl Client {
    /// Creates a client that trusts the system's authorities and those of a file. Reads both from disk, so call it
    /// where blocking is allowed.
    pub(super) fn new(ca_file: Option<&Path>) -> Result<Self, String> {
        let tls = client::config(ca_file, "acme.ca_file")?;
        Ok(Self { tls: TlsConnector::from(tls), retry_after: Arc::default() })
    }

    /// Takes the retry time of the last refusal; the next call returns `None`.
    pub(super) fn take_retry_after(&self) -> Option<SystemTime> {
        self.retry_after.lock().take()
    }

    /// Sends a GET request and returns the status.
    pub(super) async fn status_of(&self, url: &Uri) -> Result<u16, String> {
        let request = Request::get(url.clone()).body(BodyWrapper::default()).map_err(|error| error.to_string())?;
        let response = self.send(request, true).await.map_err(|error| chain(&*error))?;
        Ok(response.status().as_u16())
    }

    async fn send(&self, request: Request<BodyWrapper<Bytes>>, plain_allowed: bool) -> Result<Response<Bytes>, Failed> {
        let uri = request.uri();
        let scheme = uri.scheme_str();
        if scheme != Some("https") && !(plain_allowed && scheme == Some("http")) {
            return Err(format!("{uri} is not an https:// address").into());
        }
        match tokio::time::timeout(RESPONSE_TIMEOUT, client::send(request, Some(&self.tls), MAX_BODY_LEN)).await {
            Ok(result) => result,
            Err(_) => Err(format!("no response within {RESPONSE_TIMEOUT:?}").into()),
        }
    }
}

impl HttpClient for Client {
    fn request(
        &self,
        request: Request<BodyWrapper<Bytes>>,
    ) -> Pin<Box<dyn Future<Output = Result<BytesResponse, Error>> + Send>> {
        let client = self.clone();
        Box::pin(async move {
            let response = client.send(request, false).await.map_err(Error::Other)?;
            if response.status().is_client_error() || response.status().is_server_error() {
                *client.retry_after.lock() = response.headers().get(RETRY_AFTER).and_then(retry_after);
            }
            let (parts, body) = response.into_parts();
            Ok(BytesResponse { parts, body: Box::new(body) })
        })
    }
}

/// Parses `Retry-After`: seconds, or a date (RFC 9110 section 10.2.3).
fn retry_after(value: &HeaderValue) -> Option<SystemTime> {
    let text = value.to_str().ok()?.trim();
    match text.parse::<u32>() {
        Ok(seconds) => Some(SystemTime::now() + Duration::from_secs(seconds.into())),
        Err(_) => httpdate::parse_http_date(text).ok(),
    }
}
