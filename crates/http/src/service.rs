//! The request's way through the phases, in order.

use crate::body::Body;
use crate::conn::Conn;
use crate::contain;
use crate::exchange::Exchange;
use crate::phase::route::Route;
use crate::phase::{compress, limits, php, static_files};
use crate::received::Received;
use crate::refusal::Refusal;
use crate::shard::Shard;
use crate::upstream::Upstream;
use howdah_observe::Front;
use http::{HeaderValue, Method, Request, StatusCode, Version, header};
use http_body::Body as _;
use std::convert::Infallible;
use std::sync::{Arc, PoisonError};

/// An answer on its way out.
pub type Response = http::Response<Body>;

/// Answers a request; the exchange ends (and is logged) when the answer's body has ended.
pub(crate) async fn handle<U: Upstream>(
    shard: Arc<Shard<U>>,
    conn: Arc<Conn>,
    request: Request<impl Into<Received>>,
) -> Result<Response, Infallible> {
    let (parts, body) = request.into_parts();
    let body: Received = body.into();
    let has_body = !body.is_end_stream();
    let mut exchange = Exchange::begin(conn, parts);
    let made = contain::future(&shard.site.metrics, make(&shard, &mut exchange, body, has_body)).await;
    let mut response = made.unwrap_or_else(|| {
        exchange.front = Front::Error;
        exchange.coding = None;
        let mut response = Refusal::new(StatusCode::INTERNAL_SERVER_ERROR).into_response(&exchange.parts.headers);
        complete_head(&mut response, &exchange, has_body);
        response
    });
    exchange.status = response.status().as_u16();
    exchange.conn.state.on_answer();
    response.body_mut().carry(exchange);
    Ok(response)
}

/// The answer as it goes out.
async fn make<U: Upstream>(shard: &Shard<U>, exchange: &mut Exchange, body: Received, has_body: bool) -> Response {
    let (mut response, refused) = match answer(shard, exchange, body).await {
        Ok(response) => (response, false),
        Err(refusal) => {
            exchange.front = Front::Error;
            (refusal.into_response(&exchange.parts.headers), true)
        }
    };
    let site = &shard.site;
    let (method, headers) = (&exchange.parts.method, &exchange.parts.headers);
    (response, exchange.coding) = compress::apply(&site.compress, method, headers, response, exchange.conn.charge());
    if !response.body_mut().hold(&exchange.conn) {
        tracing::warn!(target: "howdah::request", id = %exchange.id, "not answered: no room for the answer in `http.memory`");
        (response, exchange.coding) = (Refusal::over_budget().into_response(headers), None);
        exchange.front = Front::Error;
    }
    complete_head(&mut response, exchange, refused && has_body);
    response
}

/// The phases that find the answer.
async fn answer<U: Upstream>(shard: &Shard<U>, exchange: &mut Exchange, body: Received) -> Result<Response, Refusal> {
    let site = &*shard.site;
    limits::check(&site.limits, &exchange.parts)?;
    let (method, path) = (&exchange.parts.method, exchange.parts.uri.path());
    if path == "*" && method == Method::OPTIONS {
        return Ok(server_options());
    }
    let routes = || shard.routes.lock().unwrap_or_else(PoisonError::into_inner);
    let mut route = routes().resolve(site, path, exchange.started);
    if let Route::File(file) = &*route {
        if let Some(response) = static_files::run(&site.static_files, file, &exchange.parts)? {
            exchange.front = Front::Static;
            return Ok(response);
        }
        // It was there a moment ago. What answers now that it is gone?
        let mut routes = routes();
        routes.forget(path);
        route = routes.resolve(site, path, exchange.started);
    }
    match &*route {
        Route::Script(script) => php::run(shard, exchange, script, body).await,
        Route::AddSlash(path) => Ok(redirect(method, path, exchange.parts.uri.query())),
        // A file that comes and goes within one request.
        Route::File(_) | Route::NotFound => Err(Refusal::new(StatusCode::NOT_FOUND)),
        Route::Forbidden => Err(Refusal::new(StatusCode::FORBIDDEN)),
        Route::Invalid(reason) => Err(Refusal::bad_request(reason)),
    }
}

/// Sends a directory's client to the same path with a slash. 301 may turn other methods into GET, 308 may not.
fn redirect(method: &Method, path: &str, query: Option<&str>) -> Response {
    let mut response = Response::new(Body::empty());
    let safe = method == Method::GET || method == Method::HEAD;
    *response.status_mut() = if safe { StatusCode::MOVED_PERMANENTLY } else { StatusCode::PERMANENT_REDIRECT };
    let location = query.map_or_else(|| path.to_owned(), |query| format!("{path}?{query}"));
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

/// Adds what every answer carries. After a refusal the rest of the request's body is not worth reading: `close` ends
/// the connection with the answer.
fn complete_head(response: &mut Response, exchange: &Exchange, close: bool) {
    let site = &exchange.conn.site;
    if let Some(server) = &site.server_header {
        response.headers_mut().entry(header::SERVER).or_insert_with(|| server.clone());
    }
    if let Some(name) = &site.request_id_header
        && let Ok(id) = HeaderValue::from_str(&exchange.id.to_string())
    {
        response.headers_mut().insert(name.clone(), id);
    }
    if close && exchange.parts.version < Version::HTTP_2 {
        exchange.conn.state.set_unread_body();
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
}
