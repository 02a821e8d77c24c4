//! HTTP to a collector. One connection for each export: there is at most one of them at a time, and a connection that
//! is not kept open cannot have been closed in between. The exporter limits the time, this file the response's length.

use bytes::Bytes;
use howdah_config::TelemetrySettings;
use http::header::HOST;
use http::{HeaderName, HeaderValue, Request, Response};
use http_body_util::{BodyExt, Full, Limited};
use hyper_util::rt::TokioIo;
use opentelemetry_http::HttpError;
use rustls::crypto::aws_lc_rs;
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, ServerName};
use std::path::Path;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// The longest response: what was wrong with some spans.
const LONGEST_BODY: usize = 64 * 1024;

/// An HTTP client for exports.
#[derive(Clone)]
pub(crate) struct HttpClient {
    tls: Option<TlsConnector>,
    fields: Vec<(HeaderName, HeaderValue)>,
}

impl std::fmt::Debug for HttpClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("HttpClient")
    }
}

impl HttpClient {
    pub(crate) fn new(settings: &TelemetrySettings) -> Result<Self, String> {
        let tls = match settings.address().starts_with("https://") {
            true => Some(tls(settings.ca_file.as_deref())?),
            false => None,
        };
        let mut fields = Vec::new();
        for (name, value) in settings.headers.iter() {
            let wrong = || format!("`telemetry.headers`: {name} cannot be sent");
            let field = HeaderName::from_bytes(name.as_bytes()).map_err(|_| wrong())?;
            let mut value = HeaderValue::from_str(value.expose()).map_err(|_| wrong())?;
            value.set_sensitive(true);
            fields.push((field, value));
        }
        Ok(Self { tls, fields })
    }

    async fn send(&self, mut request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        // The library would have the environment's fields win over those of the settings.
        for (name, value) in &self.fields {
            request.headers_mut().insert(name, value.clone());
        }
        let uri = request.uri().clone();
        let host = uri.host().unwrap_or_default();
        let bare = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        let port = uri.port_u16().unwrap_or(if self.tls.is_some() { 443 } else { 80 });
        let stream = TcpStream::connect((bare.as_str(), port)).await;
        let stream = stream.map_err(|error| format!("cannot connect to {host}:{port}: {error}"))?;
        let Some(tls) = &self.tls else { return over(stream, request).await };
        let stream = tls.connect(ServerName::try_from(bare)?, stream).await;
        let stream = stream.map_err(|error| format!("cannot speak TLS with {host}:{port}: {error}"))?;
        over(stream, request).await
    }
}

impl opentelemetry_http::HttpClient for HttpClient {
    fn send_bytes<'life0, 'async_trait>(
        &'life0 self,
        request: Request<Bytes>,
    ) -> std::pin::Pin<Box<dyn Future<Output = Result<Response<Bytes>, HttpError>> + Send + 'async_trait>>
    where
        'life0: 'async_trait,
        Self: 'async_trait,
    {
        Box::pin(self.send(request))
    }
}

/// Sends a request over a new connection.
async fn over<S>(stream: S, mut request: Request<Bytes>) -> Result<Response<Bytes>, HttpError>
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let uri = request.uri().clone();
    let authority = uri.authority().map(|authority| authority.as_str()).unwrap_or_default();
    request.headers_mut().insert(HOST, HeaderValue::from_str(authority)?);
    *request.uri_mut() = uri.path_and_query().map_or("/", |target| target.as_str()).parse()?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    let responding = async {
        let response = sender.send_request(request.map(Full::new)).await?;
        let (parts, body) = response.into_parts();
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

/// TLS that believes the system's authorities and those of a file.
fn tls(ca_file: Option<&Path>) -> Result<TlsConnector, String> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if let Some(path) = ca_file {
        let wrong =
            |why: &dyn std::fmt::Display| format!("`OTEL_EXPORTER_OTLP_CERTIFICATE`: {}: {why}", path.display());
        for certificate in CertificateDer::pem_file_iter(path).map_err(|error| wrong(&error))? {
            roots.add(certificate.map_err(|error| wrong(&error))?).map_err(|error| wrong(&error))?;
        }
    }
    if roots.is_empty() {
        return Err(
            "this system trusts no authority: install ca-certificates, or set `OTEL_EXPORTER_OTLP_CERTIFICATE`"
                .to_owned(),
        );
    }
    let config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()));
    let config = config.with_safe_default_protocol_versions().map_err(|error| error.to_string())?;
    Ok(TlsConnector::from(Arc::new(config.with_root_certificates(roots).with_no_client_auth())))
}
