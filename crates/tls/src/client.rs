//! The client side: TLS to servers that the settings name, and single HTTP requests. Each request has its own
//! connection, because a kept-alive connection may have been closed in the meantime.

use crate::provider::provider;
use bytes::Bytes;
use http::header::HOST;
use http::{HeaderValue, Request, Response};
use http_body_util::{BodyExt, Limited};
use hyper::body::Body;
use hyper_util::rt::TokioIo;
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, ServerName};
use std::path::Path;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// Reason why a request has no response.
pub type Failed = Box<dyn std::error::Error + Send + Sync>;

/// TLS that trusts the system's authorities and those of a file, which `setting` names. Reads both from disk, so call
/// it where blocking is allowed.
///
/// # Errors
/// The file cannot be used, or there is no trusted authority.
pub fn config(ca_file: Option<&Path>, setting: &str) -> Result<Arc<ClientConfig>, String> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if let Some(path) = ca_file {
        let wrong = |why: &dyn std::fmt::Display| format!("`{setting}`: {}: {why}", path.display());
        let before = roots.len();
        for certificate in CertificateDer::pem_file_iter(path).map_err(|error| wrong(&error))? {
            roots.add(certificate.map_err(|error| wrong(&error))?).map_err(|error| wrong(&error))?;
        }
        if roots.len() == before {
            return Err(wrong(&"no certificate in it"));
        }
    }
    if roots.is_empty() {
        return Err(format!("this system trusts no authority: install ca-certificates, or set `{setting}`"));
    }
    let config = ClientConfig::builder_with_provider(provider()).with_safe_default_protocol_versions();
    let config = config.map_err(|error| error.to_string())?;
    Ok(Arc::new(config.with_root_certificates(roots).with_no_client_auth()))
}

/// Sends a request to the server of its URI and returns the response, whose body has at most `longest` bytes. The
/// caller limits the time. `tls` is required for `https` URIs.
///
/// # Errors
/// I/O errors, and errors of the protocols.
pub async fn send<B>(request: Request<B>, tls: Option<&TlsConnector>, longest: usize) -> Result<Response<Bytes>, Failed>
where
    B: Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<Failed>,
{
    let uri = request.uri();
    let tls = tls.filter(|_| uri.scheme_str() == Some("https"));
    let host = uri.host().unwrap_or_default().to_owned();
    let bare = host.trim_start_matches('[').trim_end_matches(']').to_owned();
    let port = uri.port_u16().unwrap_or(if tls.is_some() { 443 } else { 80 });
    let stream = TcpStream::connect((bare.as_str(), port)).await;
    let stream = stream.map_err(|error| format!("cannot connect to {host}:{port}: {error}"))?;
    let Some(tls) = tls else { return over(stream, request, longest).await };
    let stream = tls.connect(ServerName::try_from(bare)?, stream).await;
    let stream = stream.map_err(|error| format!("TLS handshake with {host}:{port} failed: {error}"))?;
    over(stream, request, longest).await
}

/// Sends a request over a new connection.
async fn over<S, B>(stream: S, mut request: Request<B>, longest: usize) -> Result<Response<Bytes>, Failed>
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    B: Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<Failed>,
{
    let uri = request.uri().clone();
    let authority = uri.authority().map(|authority| authority.as_str()).unwrap_or_default();
    request.headers_mut().insert(HOST, HeaderValue::from_str(authority)?);
    *request.uri_mut() = uri.path_and_query().map_or("/", |target| target.as_str()).parse()?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    let responding = async {
        let response = sender.send_request(request).await?;
        let (parts, body) = response.into_parts();
        if body.size_hint().lower() > longest as u64 {
            return Err(Failed::from("the response is too long"));
        }
        let body = Limited::new(body, longest).collect().await?.to_bytes();
        Ok(Response::from_parts(parts, body))
    };
    // The connection makes progress only while it is polled. Its end does not matter once the response has arrived.
    let (mut responding, mut connection) = (std::pin::pin!(responding), std::pin::pin!(connection));
    tokio::select! {
        biased;
        response = &mut responding => return response,
        ended = &mut connection => ended?,
    }
    responding.await
}
