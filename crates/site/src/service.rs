//! The request's way through the phases, in order.

use crate::exchange::Exchange;
use crate::forwarded;
use crate::phase::request_path::encode_query;
use crate::phase::route::{Route, RouteCache};
use crate::phase::{compress, limits, php, proxy, static_files};
use crate::refusal::Refusal;
use crate::site::Site;
use crate::upstream::Upstream;
use bytes::Bytes;
use howdah_observe::Front;
use howdah_protocol::{Body, Handler, Request, RequestBody, Response, panics};
use http::{HeaderValue, Method, StatusCode, Version, header};
use std::net::IpAddr;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};

/// What answers the requests of one I/O thread.
#[derive(Debug)]
pub struct Service<U: Upstream> {
    /// What all requests share.
    pub site: Arc<Site>,
    upstream: Arc<U>,
    /// Outcomes of the route phase.
    routes: Mutex<RouteCache>,
}

impl<U: Upstream> Service<U> {
    /// A service for a site.
    #[must_use]
    pub fn new(site: Arc<Site>, upstream: Arc<U>) -> Self {
        Self { site, upstream, routes: Mutex::default() }
    }
}

impl<U: Upstream> Handler for Service<U> {
    /// The exchange ends (and is logged) when the response's body has ended.
    async fn handle(&self, request: Request) -> Response {
        let has_body = !request.body.is_none();
        let (mut exchange, body) = Exchange::begin(&self.site, request);
        let made = {
            let making = pin!(self.make(&mut exchange, body, has_body));
            panics::future(&self.site.metrics, making).await
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
        forwarded::trusts(&self.site.settings.http.trusted_proxies, peer)
    }
}

impl<U: Upstream> Service<U> {
    /// The response as it goes out.
    async fn make(&self, exchange: &mut Exchange, body: RequestBody, has_body: bool) -> Response {
        let (mut response, refused) = match self.answer(exchange, body).await {
            Ok(response) => (response, false),
            Err(refusal) => {
                exchange.front = Front::Error;
                (refusal.into_response(&exchange.head.headers), true)
            }
        };
        let (method, headers) = (&exchange.head.method, &exchange.head.headers);
        let charge = exchange.connection.charge();
        (response, exchange.coding) = compress::apply(&self.site.compress, method, headers, response, charge);
        if !response.body_mut().hold(&exchange.connection) {
            tracing::warn!(target: "howdah::request", id = %exchange.id, "not answered: no room for the answer in `http.memory`");
            (response, exchange.coding) = (Refusal::over_budget().into_response(headers), None);
            exchange.front = Front::Error;
        }
        complete_head(&mut response, exchange, refused && has_body);
        response
    }

    /// The phases that find the response.
    async fn answer(&self, exchange: &mut Exchange, body: RequestBody) -> Result<Response, Refusal> {
        let site = &*self.site;
        limits::check(&site.limits, &exchange.head)?;
        let (method, target) = (&exchange.head.method, &exchange.head.target);
        let path = target.path();
        if path == b"*" && method == Method::OPTIONS {
            return Ok(server_options());
        }
        let routes = || self.routes.lock().unwrap_or_else(PoisonError::into_inner);
        let mut route = routes().resolve(site, path, exchange.started);
        if let Route::File(file) = &*route {
            if let Some(response) = static_files::run(&site.static_files, file, &exchange.head)? {
                exchange.front = Front::Static;
                return Ok(response);
            }
            // It was there a moment ago. What answers now that it is gone?
            let mut routes = routes();
            routes.forget(path);
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

/// Sends a directory's client to the same path with a slash. 301 may turn other methods into GET, 308 may not.
fn redirect(method: &Method, path: &str, query: Option<&[u8]>) -> Response {
    let mut response = Response::new(Body::empty());
    let safe = method == Method::GET || method == Method::HEAD;
    *response.status_mut() = if safe { StatusCode::MOVED_PERMANENTLY } else { StatusCode::PERMANENT_REDIRECT };
    let location = query.map_or_else(|| path.to_owned(), |query| format!("{path}?{}", encode_query(query)));
    if let Ok(location) = HeaderValue::from_str(&location) {
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
    if let Some(name) = &site.request_id_header
        && let Ok(id) = HeaderValue::from_str(&exchange.id.to_string())
    {
        response.headers_mut().insert(name.clone(), id);
    }
    if close && exchange.head.version < Version::HTTP_2 {
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
}
