//! HTTP requests to an authority, and to the application that decides about names on demand. One connection for each:
//! an order has some ten, and and a connection that is not kept open cannot have been closed in between. Time and
//! length of everything are bounded.

use crate::acme::failure::chain;
use crate::provider::provider;
use bytes::Bytes;
use http::header::{HOST, RETRY_AFTER};
use http::{HeaderValue, Request, Response, Uri};
use http_body_util::{BodyExt, Limited};
use hyper::body::Body;
use hyper_util::rt::TokioIo;
use instant_acme::{BodyWrapper, BytesResponse, Error, HttpClient};
use parking_lot::Mutex;
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, ServerName};
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// For a request and its response.
const PATIENCE: Duration = Duration::from_secs(30);
/// The longest response: a chain of certificates has some kilobytes.
const LONGEST_BODY: usize = 256 * 1024;

/// An HTTP client. Clones share its state.
#[derive(Clone)]
pub(super) struct Client {
    tls: TlsConnector,
    /// `Retry-After` of the last refusal, which the protocol's library drops.
    retry_after: Arc<Mutex<Option<SystemTime>>>,
}

type Failed = Box<dyn std::error::Error + Send + Sync>;

impl Client {
    /// A client that believes the system's authorities and those of a file. Reads both, so it is made where that may take
    /// its time.
    pub(super) fn new(ca_file: Option<&Path>) -> Result<Self, String> {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        if let Some(path) = ca_file {
            let wrong = |why: &dyn std::fmt::Display| format!("`acme.ca_file`: {}: {why}", path.display());
            let before = roots.len();
            for certificate in CertificateDer::pem_file_iter(path).map_err(|error| wrong(&error))? {
                roots.add(certificate.map_err(|error| wrong(&error))?).map_err(|error| wrong(&error))?;
            }
            if roots.len() == before {
                return Err(wrong(&"no certificate in it"));
            }
        }
        if roots.is_empty() {
            return Err("this system trusts no authority: install ca-certificates, or set `acme.ca_file`".to_owned());
        }
        let config = ClientConfig::builder_with_provider(provider()).with_safe_default_protocol_versions();
        let config = config.map_err(|error| error.to_string())?;
        let config = config.with_root_certificates(roots).with_no_client_auth();
        Ok(Self { tls: TlsConnector::from(Arc::new(config)), retry_after: Arc::default() })
    }

    /// When to come again, as the last refusal said; forgotten by being asked for.
    pub(super) fn take_retry_after(&self) -> Option<SystemTime> {
        self.retry_after.lock().take()
    }

    /// The status of what a GET finds.
    pub(super) async fn status_of(&self, url: &Uri) -> Result<u16, String> {
        let request = Request::get(url.clone()).body(BodyWrapper::default()).map_err(|error| error.to_string())?;
        let response = self.send(request, true).await.map_err(|error| chain(&*error))?;
        Ok(response.status().as_u16())
    }

    async fn send(&self, request: Request<BodyWrapper<Bytes>>, plain_allowed: bool) -> Result<Response<Bytes>, Failed> {
        match tokio::time::timeout(PATIENCE, self.exchange(request, plain_allowed)).await {
            Ok(result) => result,
            Err(_) => Err(format!("no response within {PATIENCE:?}").into()),
        }
    }

    async fn exchange(
        &self,
        request: Request<BodyWrapper<Bytes>>,
        plain_allowed: bool,
    ) -> Result<Response<Bytes>, Failed> {
        let uri = request.uri();
        let encrypted = match uri.scheme_str() {
            Some("https") => true,
            Some("http") if plain_allowed => false,
            _ => return Err(format!("{uri} is no address of the kind https://…").into()),
        };
        let host = uri.host().unwrap_or_default().to_owned();
        let bare = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        let port = uri.port_u16().unwrap_or(if encrypted { 443 } else { 80 });
        let stream = TcpStream::connect((bare.as_str(), port)).await;
        let stream = stream.map_err(|error| format!("cannot connect to {host}:{port}: {error}"))?;
        if !encrypted {
            return over(stream, request).await;
        }
        let name = ServerName::try_from(bare)?;
        let stream = self.tls.connect(name, stream).await;
        let stream = stream.map_err(|error| format!("cannot speak TLS with {host}:{port}: {error}"))?;
        over(stream, request).await
    }
}

/// Sends a request over a new connection.
async fn over<S>(stream: S, mut request: Request<BodyWrapper<Bytes>>) -> Result<Response<Bytes>, Failed>
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let uri = request.uri().clone();
    let authority = uri.authority().map(|authority| authority.as_str()).unwrap_or_default();
    request.headers_mut().insert(HOST, HeaderValue::from_str(authority)?);
    let target = uri.path_and_query().map_or("/", |target| target.as_str());
    *request.uri_mut() = target.parse()?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    let responding = async {
        let response = sender.send_request(request).await?;
        let (parts, body) = response.into_parts();
        if body.size_hint().lower() > LONGEST_BODY as u64 {
            return Err(Failed::from("the response is too long"));
        }
        let body = Limited::new(body, LONGEST_BODY).collect().await?.to_bytes();
        Ok(Response::from_parts(parts, body))
    };
    // The connection moves only while it is polled. Its own end is no news once the response is there.
    let (mut responding, mut connection) = (std::pin::pin!(responding), std::pin::pin!(connection));
    tokio::select! {
        biased;
        response = &mut responding => return response,
        ended = &mut connection => ended?,
    }
    responding.await
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

/// Seconds, or a date (RFC 9110 section 10.2.3).
fn retry_after(value: &HeaderValue) -> Option<SystemTime> {
    let text = value.to_str().ok()?.trim();
    match text.parse::<u32>() {
        Ok(seconds) => Some(SystemTime::now() + Duration::from_secs(seconds.into())),
        Err(_) => httpdate::parse_http_date(text).ok(),
    }
}
