//! The request's way through the phases, in order.

use crate::challenges;
use crate::exchange::Exchange;
use crate::forwarded::{self, named_host};
use crate::phase::route::{Route, RouteCache};
use crate::phase::{compress, limits, php, proxy};
use crate::refusal::Refusal;
use crate::request_path::redirect_to;
use crate::server::Server;
use crate::sites::Sites;
use crate::static_files;
use crate::upstream::Upstream;
use bytes::Bytes;
use howdah_config::UnknownHost;
use howdah_observe::Front;
use howdah_protocol::{Body, Handler, Head, Request, RequestBody, Response, panics};
use http::{HeaderValue, Method, StatusCode, Version, header};
use std::net::IpAddr;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};

/// What responds to the requests of one I/O thread.
#[derive(Debug)]
pub struct Service<U: Upstream> {
    /// The sites that requests may be for.
    pub sites: Arc<Sites>,
    upstream: Arc<U>,
    /// Outcomes of the route phase.
    routes: Mutex<RouteCache>,
}

impl<U: Upstream> Service<U> {
    /// A service for these sites.
    #[must_use]
    pub fn new(sites: Arc<Sites>, upstream: Arc<U>) -> Self {
        Self { sites, upstream, routes: Mutex::default() }
    }
}

impl<U: Upstream> Handler for Service<U> {
    /// The exchange ends (and is logged) when the response's body has ended.
    async fn handle(&self, request: Request) -> Response {
        let has_body = !request.body.is_none();
        let (mut exchange, body) = Exchange::begin(&self.sites, request);
        let made = {
            let making = pin!(self.make(&mut exchange, body, has_body));
            panics::future(&self.sites.server.metrics, making).await
        };
        let mut response = made.unwrap_or_else(|| {
            exchange.front = Front::Error;
            exchange.coding = None;
            let status = StatusCode::INTERNAL_SERVER_ERROR;
            let mut response = Refusal::new(status).into_response(&exchange.head.headers);
            complete_head(&mut response, &exchange, has_body);
            response
        });
        exchange.status = response.status().as_u16();
        response.body_mut().carry(exchange);
        response
    }

    fn trusts(&self, peer: Option<IpAddr>) -> bool {
        forwarded::trusts(&self.sites.server.settings.http.trusted_proxies, peer)
    }
}

impl<U: Upstream> Service<U> {
    /// The response as it goes out.
    async fn make(&self, exchange: &mut Exchange, body: RequestBody, has_body: bool) -> Response {
        let (mut response, refused) = match self.respond(exchange, body).await {
            Ok(response) => (response, false),
            Err(refusal) => {
                exchange.front = Front::Error;
                (refusal.into_response(&exchange.head.headers), true)
            }
        };
        let (site, method, headers) = (&*exchange.site, &exchange.head.method, &exchange.head.headers);
        let charge = exchange.connection.charge();
        (response, exchange.coding) =
            compress::apply(&site.compressor, &site.server.metrics, method, headers, response, charge);
        if !response.body_mut().hold(&exchange.connection) {
            tracing::warn!(target: "howdah::request", id = %exchange.id, "not answered: no room for the response in `http.memory`");
            (response, exchange.coding) = (Refusal::over_budget().into_response(headers), None);
            exchange.front = Front::Error;
        }
        complete_head(&mut response, exchange, refused && has_body);
        response
    }

    /// The phases that find the response.
    async fn respond(&self, exchange: &mut Exchange, body: RequestBody) -> Result<Response, Refusal> {
        let site = &*exchange.site;
        if let Some(challenges) = site.server.challenges()
            && let Some(response) =
                challenges::response(&**challenges, &exchange.head.method, exchange.head.target.path()).await
        {
            return Ok(response);
        }
        limits::check(&site.limits, &exchange.head)?;
        if exchange.misdirected {
            return Err(misdirected(&site.server, &exchange.head));
        }
        let (peer, http) = (&exchange.connection.peer, &site.server.settings.http);
        if let Some(response) = site.https.redirect(&exchange.head, peer, http, site.settings.server_name.as_deref()) {
            return Ok(response);
        }
        let (method, target) = (&exchange.head.method, &exchange.head.target);
        let path = target.path();
        if path == b"*" && method == Method::OPTIONS {
            return Ok(server_options());
        }
        let routes = || self.routes.lock().unwrap_or_else(PoisonError::into_inner);
        let mut route = routes().resolve(site, path, exchange.started);
        if let Route::File(file) = &*route {
            if let Some(response) = static_files::run(&site.static_files, &file.name, &file.path, &exchange.head)? {
                exchange.front = Front::Static;
                return Ok(response);
            }
            // It was there a moment ago. What responds now that it is gone?
            let mut routes = routes();
            routes.forget(site, path);
            route = routes.resolve(site, path, exchange.started);
        }
        match &*route {
            Route::Script(script) => php::run(&*self.upstream, exchange, script, body).await,
            Route::Proxy(proxy) => {
                let target = Bytes::copy_from_slice(target.as_bytes());
                proxy::run(&*self.upstream, exchange, *proxy, target, body).await
            }
            Route::AddSlash(path) => Ok(redirect(method, path, target.query())),
            // A file that comes and goes within one request.
            Route::File(_) | Route::NotFound => Err(Refusal::new(StatusCode::NOT_FOUND)),
            Route::Forbidden => Err(Refusal::new(StatusCode::FORBIDDEN)),
            Route::Invalid(reason) => Err(Refusal::bad_request(reason)),
        }
    }
}

/// The refusal of a request for a host that no site is for (RFC 9110 15.5.20).
fn misdirected(server: &Server, head: &Head) -> Refusal {
    let host = named_host(head).unwrap_or_default();
    server.note_unknown_host(&String::from_utf8_lossy(host));
    match server.settings.unknown_host {
        UnknownHost::Misdirected => {
            Refusal::new(StatusCode::MISDIRECTED_REQUEST).because("a host that this server has no site for")
        }
        UnknownHost::NotFound => Refusal::new(StatusCode::NOT_FOUND),
    }
}

/// Sends a directory's client to the same path with a slash. 301 may turn other methods into GET, 308 may not.
fn redirect(method: &Method, path: &str, query: Option<&[u8]>) -> Response {
    let mut response = Response::new(Body::empty());
    let safe = method == Method::GET || method == Method::HEAD;
    *response.status_mut() = if safe { StatusCode::MOVED_PERMANENTLY } else { StatusCode::PERMANENT_REDIRECT };
    if let Ok(location) = HeaderValue::from_str(&redirect_to(path, query)) {
        response.headers_mut().insert(header::LOCATION, location);
    }
    response
}

/// `OPTIONS *` asks about the server as a whole.
fn server_options() -> Response {
    let mut response = Response::new(Body::empty());
    let methods = HeaderValue::from_static("GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS");
    response.headers_mut().insert(header::ALLOW, methods);
    response
}

/// Adds what every response carries. After a refusal the rest of the request's body is not worth reading: `close` ends
/// the connection with the response.
fn complete_head(response: &mut Response, exchange: &Exchange, close: bool) {
    let site = &exchange.site;
    if let Some(server) = &site.server_header {
        response.headers_mut().entry(header::SERVER).or_insert_with(|| server.clone());
    }
    site.https.stay(&exchange.head, &exchange.connection.peer, &site.server.settings.http, response);
    if let Some(name) = &site.request_id_header
        && let Ok(id) = HeaderValue::from_str(&exchange.id.to_string())
    {
        response.headers_mut().insert(name.clone(), id);
    }
    if close && exchange.head.version < Version::HTTP_2 {
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
}
