//! HTTP to a collector. Each export opens its own connection, as there is at most one export at a time. The exporter
//! limits the time, this client the response's length.

use bytes::Bytes;
use howdah_config::TelemetrySettings;
use howdah_tls::client;
use http::{HeaderName, HeaderValue, Request, Response};
use http_body_util::Full;
use opentelemetry_http::HttpError;
use tokio_rustls::TlsConnector;

/// Maximum length of a response, which describes rejected spans.
const MAX_BODY_LEN: usize = 64 * 1024;

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
            true => Some(client::config(settings.ca_file.as_deref(), "OTEL_EXPORTER_OTLP_CERTIFICATE")?.into()),
            false => None,
        };
        let mut fields = Vec::new();
        for (name, value) in settings.headers.iter() {
            let wrong = || format!("`telemetry.headers`: {name} is no valid header");
            let field = HeaderName::from_bytes(name.as_bytes()).map_err(|_| wrong())?;
            let mut value = HeaderValue::from_str(value.expose()).map_err(|_| wrong())?;
            value.set_sensitive(true);
            fields.push((field, value));
        }
        Ok(Self { tls, fields })
    }

    async fn send(&self, mut request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        // The library would let the environment's fields override those of the settings.
        for (name, value) in &self.fields {
            request.headers_mut().insert(name, value.clone());
        }
        client::send(request.map(Full::new), self.tls.as_ref(), MAX_BODY_LEN).await
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
