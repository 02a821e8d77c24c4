//! Responses that the server generates itself, without a file or a script.

use crate::challenges;
use crate::exchange::Exchange;
use crate::explanation::ExplanationBuilder;
use crate::refusal::Refusal;
use crate::responder::{Context, Responder};
use crate::server;
use crate::site::Site;
use crate::upstream::Upstream;
use bytes::Bytes;
use howdah_protocol::{Body, RequestBody, Response};
use http::{HeaderName, HeaderValue, Method, StatusCode, header};

/// Responds to ACME challenges. Unknown ones go on to the site: an application may have its own ACME client.
pub(crate) struct Challenge;

impl Responder for Challenge {
    fn concerns(exchange: &Exchange) -> bool {
        exchange.site.server.challenges().is_some()
    }

    async fn respond<U: Upstream>(
        _: &Context<U>,
        exchange: &mut Exchange,
        _: &mut RequestBody,
    ) -> Result<Option<Response>, Refusal> {
        let (head, server) = (&exchange.head, &exchange.site.server);
        let Some(challenges) = server.challenges() else { return Ok(None) };
        Ok(challenges::response(&**challenges, &head.method, head.target.path()).await)
    }
}

/// Responds to health probes for any host.
pub(crate) struct Probe;

impl Probe {
    fn of(exchange: &Exchange) -> Option<server::Probe> {
        let head = &exchange.head;
        let probe = exchange.site.server.probe(head.target.path())?;
        matches!(head.method, Method::GET | Method::HEAD).then_some(probe)
    }
}

impl Responder for Probe {
    async fn respond<U: Upstream>(
        context: &Context<U>,
        exchange: &mut Exchange,
        _: &mut RequestBody,
    ) -> Result<Option<Response>, Refusal> {
        let Some(probe) = Self::of(exchange) else { return Ok(None) };
        let ready = if probe == server::Probe::Ready { context.upstream.ready() } else { Ok(()) };
        let (status, text) = match ready {
            Ok(()) => (StatusCode::OK, Bytes::from_static(b"ok\n")),
            Err(why) => (StatusCode::SERVICE_UNAVAILABLE, Bytes::from(format!("{why}\n"))),
        };
        let fields = [(header::CONTENT_TYPE, "text/plain;charset=UTF-8"), (header::CACHE_CONTROL, "no-store")];
        Ok(Some(page(status, text, &fields)))
    }

    fn explain(exchange: &mut Exchange, explaining: &mut ExplanationBuilder) {
        if Self::of(exchange).is_some() {
            explaining.respond(StatusCode::OK, "200: a probe (`http.probes`), unless the server is not ready");
        }
    }
}

/// Redirects clients without TLS to HTTPS.
pub(crate) struct HttpsRedirect;

impl HttpsRedirect {
    fn redirect(exchange: &Exchange) -> Result<Option<Response>, Refusal> {
        let (site, peer) = (&exchange.site, &exchange.connection.peer);
        site.https.redirect(&exchange.head, peer, &exchange.client, site.settings.server_name.as_deref())
    }
}

impl Responder for HttpsRedirect {
    async fn respond<U: Upstream>(
        _: &Context<U>,
        exchange: &mut Exchange,
        _: &mut RequestBody,
    ) -> Result<Option<Response>, Refusal> {
        Self::redirect(exchange)
    }

    fn explain(exchange: &mut Exchange, explaining: &mut ExplanationBuilder) {
        match Self::redirect(exchange) {
            Ok(None) => {}
            Ok(Some(response)) => {
                let location = response.headers().get(header::LOCATION);
                explaining.found.location =
                    location.map(|location| String::from_utf8_lossy(location.as_bytes()).into_owned());
                explaining.respond(response.status(), "a redirect to TLS (`tls.redirect`)");
            }
            Err(refusal) => {
                let status = refusal.status();
                explaining.respond(status, format!("{status}: no host, which a redirect to HTTPS needs"));
            }
        }
    }
}

/// Responds to `OPTIONS *`, which asks about the server as a whole.
pub(crate) struct ServerOptions;

impl ServerOptions {
    fn is_asked(exchange: &Exchange) -> bool {
        exchange.head.target.path() == b"*" && exchange.head.method == Method::OPTIONS
    }
}

impl Responder for ServerOptions {
    async fn respond<U: Upstream>(
        _: &Context<U>,
        exchange: &mut Exchange,
        _: &mut RequestBody,
    ) -> Result<Option<Response>, Refusal> {
        let methods = [(header::ALLOW, "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS")];
        Ok(Self::is_asked(exchange).then(|| page(StatusCode::OK, Bytes::new(), &methods)))
    }

    fn explain(exchange: &mut Exchange, explaining: &mut ExplanationBuilder) {
        if Self::is_asked(exchange) {
            explaining.respond(StatusCode::OK, "200: OPTIONS * is about the server as a whole");
        }
    }
}

/// Responds with the state of one of the site's pools.
pub(crate) struct PoolPage;

impl Responder for PoolPage {
    async fn respond<U: Upstream>(
        context: &Context<U>,
        exchange: &mut Exchange,
        _: &mut RequestBody,
    ) -> Result<Option<Response>, Refusal> {
        let target = &exchange.head.target;
        Ok(pool_page(context, &exchange.site, target.path(), target.query().unwrap_or_default()))
    }

    fn explain(exchange: &mut Exchange, explaining: &mut ExplanationBuilder) {
        if exchange.site.pool_page(exchange.head.target.path()).is_some() {
            explaining.respond(StatusCode::OK, "200: the state of a pool (`status_path`)");
        }
    }
}

/// Returns the status or ping page at this path, if there is one.
pub(super) fn pool_page<U: Upstream>(context: &Context<U>, site: &Site, path: &[u8], query: &[u8]) -> Option<Response> {
    if let Some(ping) = fpm_ping(context, site, path) {
        return Some(ping);
    }
    let found = context.upstream.pool_page(site.pool_page(path)?, query)?;
    Some(uncached_page(found.status, Bytes::from(found.body), found.media_type))
}

/// Returns PHP-FPM's ping page, if the pool comes from a PHP-FPM configuration with `ping.path`.
fn fpm_ping<U: Upstream>(context: &Context<U>, site: &Site, path: &[u8]) -> Option<Response> {
    let fpm = site.server.settings.pools.get(site.pool)?.fpm.as_ref()?;
    if fpm.ping_path.as_ref()?.as_bytes() != path {
        return None;
    }
    let (status, text) = match context.upstream.ready() {
        Ok(()) => (StatusCode::OK, fpm.ping_response.clone()),
        Err(why) => (StatusCode::SERVICE_UNAVAILABLE, format!("{why}\n")),
    };
    Some(uncached_page(status, Bytes::from(text), "text/plain;charset=UTF-8"))
}

/// Returns a page that must not be cached, with the same header fields as PHP-FPM.
fn uncached_page(status: StatusCode, text: Bytes, media_type: &'static str) -> Response {
    let fields = [
        (header::CONTENT_TYPE, media_type),
        (header::EXPIRES, "Thu, 01 Jan 1970 00:00:00 GMT"),
        (header::CACHE_CONTROL, "no-cache, no-store, must-revalidate, max-age=0"),
    ];
    page(status, text, &fields)
}

fn page(status: StatusCode, text: Bytes, fields: &[(HeaderName, &'static str)]) -> Response {
    let mut response = Response::new(Body::full(text));
    *response.status_mut() = status;
    for (name, value) in fields {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}
