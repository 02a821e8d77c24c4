//! The request's way through the phases, in order.

use crate::challenges;
use crate::exchange::Exchange;
use crate::forwarded::{self, named_host};
use crate::phase::route::{ResolvedFile, Route, RouteCache};
use crate::phase::rules::served::{self, Served};
use crate::phase::rules::{self, Step};
use crate::phase::{compress, htaccess, limits, php, proxy};
use crate::refusal::Refusal;
use crate::request_path::{decode, redirect_to};
use crate::ruled::{Lookup, Ruled};
use crate::server::{Probe, Server};
use crate::site::Site;
use crate::sites::Sites;
use crate::static_files::{self, StaticFiles};
use crate::upstream::Upstream;
use bytes::Bytes;
use howdah_config::UnknownHost;
use howdah_observe::Front;
use howdah_protocol::{Body, Handler, Head, Rejected, Request, RequestBody, Response, panics};
use howdah_rules::trace::NoTrace;
use http::{HeaderValue, Method, StatusCode, Version, header};
use std::net::IpAddr;
use std::os::unix::ffi::OsStrExt;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

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
        let (exchange, body) = Exchange::begin(&self.sites, request);
        self.complete(exchange, body).await
    }

    fn trusts(&self, peer: Option<IpAddr>) -> bool {
        forwarded::trusts(&self.sites.server.settings.http.trusted_proxies, peer)
    }

    fn rejected(&self, rejected: &Rejected<'_>) {
        self.sites.server.note_rejected(rejected);
    }
}

impl<U: Upstream> Service<U> {
    /// Returns the response to an exchange that begins. The response carries the exchange.
    pub(crate) async fn complete(&self, mut exchange: Box<Exchange>, body: RequestBody) -> Response {
        let has_body = !body.is_none();
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
        if let Some(trace) = &mut exchange.trace {
            trace.responded = Some(Instant::now());
        }
        response.body_mut().carry(exchange);
        response
    }

    /// The response as it goes out.
    async fn make(&self, exchange: &mut Exchange, body: RequestBody, has_body: bool) -> Response {
        let made = self.respond(exchange, body).await;
        let (mut response, refused) = match made.and_then(|response| limits::check_response(exchange, response)) {
            Ok(response) => (response, false),
            Err(refusal) => (self.refuse(exchange, refusal).await, true),
        };
        rules::response::apply(exchange, &mut response);
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

    /// The phases that find the response. What most requests do not go through is boxed: each connection's task has room for
    /// the largest of its futures, and memory that is not touched together is what a crowd of connections costs.
    pub(crate) async fn respond(&self, exchange: &mut Exchange, body: RequestBody) -> Result<Response, Refusal> {
        let site = exchange.site.clone();
        if let Some(challenges) = site.server.challenges()
            && let Some(response) =
                challenges::response(&**challenges, &exchange.head.method, exchange.head.target.path()).await
        {
            return Ok(response);
        }
        if let Some(response) = self.health(&site, &exchange.head) {
            return Ok(response);
        }
        limits::check(&site.limits, &exchange.head)?;
        if exchange.misdirected {
            return Err(misdirected(&site.server, &exchange.head));
        }
        let (peer, pinned) = (&exchange.connection.peer, site.settings.server_name.as_deref());
        if let Some(response) = site.https.redirect(&exchange.head, peer, &exchange.client, pinned)? {
            return Ok(response);
        }
        let (method, target) = (&exchange.head.method, &exchange.head.target);
        let path = target.path();
        if path == b"*" && method == Method::OPTIONS {
            return Ok(server_options());
        }
        match rules::run(&site, exchange).await? {
            Step::On => {}
            Step::Done(response) => return Ok(response),
            Step::Proxy(name, target) => {
                limits::check_body(exchange.max_body(), &exchange.head)?;
                // Names were checked when the settings were loaded.
                let mut proxies = site.server.settings.proxies.iter();
                let at = proxies.position(|proxy| *proxy.name == *name).unwrap_or(usize::MAX);
                return Box::pin(proxy::run(&*self.upstream, exchange, at, target, body)).await;
            }
        }
        if let Some(response) = self.pool_page(&site, exchange) {
            return Ok(response);
        }
        limits::check_body(exchange.max_body(), &exchange.head)?;
        if site.htaccess.is_some() {
            return Box::pin(htaccess::run(&*self.upstream, exchange, body)).await;
        }
        self.serve(exchange, body, None).await
    }

    /// The answer to a probe. Whoever probes names no site, so this comes before the look at the host.
    fn health(&self, site: &Site, head: &Head) -> Option<Response> {
        let probe = site.server.probe(head.target.path())?;
        if !matches!(head.method, Method::GET | Method::HEAD) {
            return None;
        }
        let ready = if probe == Probe::Ready { self.upstream.ready() } else { Ok(()) };
        let mut response = Response::new(Body::full(match &ready {
            Ok(()) => Bytes::from_static(b"ok\n"),
            Err(why) => Bytes::from(format!("{why}\n")),
        }));
        if ready.is_err() {
            *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
        }
        for (name, value) in [(header::CONTENT_TYPE, "text/plain;charset=UTF-8"), (header::CACHE_CONTROL, "no-store")] {
            response.headers_mut().insert(name, HeaderValue::from_static(value));
        }
        Some(response)
    }

    /// What the server says itself about one of the site's pools.
    fn pool_page(&self, site: &Site, exchange: &Exchange) -> Option<Response> {
        let target = &exchange.head.target;
        let (page, pool) = site.pool_page(target.path())?;
        let found = self.upstream.pool_page(pool, page, target.query().unwrap_or_default())?;
        let mut response = Response::new(Body::full(Bytes::from(found.body)));
        *response.status_mut() = found.status;
        let fields = [
            (header::CONTENT_TYPE, found.media_type),
            (header::EXPIRES, "Thu, 01 Jan 1970 00:00:00 GMT"),
            (header::CACHE_CONTROL, "no-cache, no-store, must-revalidate, max-age=0"),
        ];
        for (name, value) in fields {
            response.headers_mut().insert(name, HeaderValue::from_static(value));
        }
        Some(response)
    }

    /// What the route leads to: that of the request, or of an error page's path.
    async fn serve(
        &self,
        exchange: &mut Exchange,
        body: RequestBody,
        page: Option<&[u8]>,
    ) -> Result<Response, Refusal> {
        let site = exchange.site.clone();
        let mut route = self.route(&site, exchange, page);
        for looked_again in [false, true] {
            if let Some(response) = judged(&site, exchange, &route, page).await? {
                return Ok(response);
            }
            let Route::File(file) = &*route else { break };
            let own = rules::lookup(&site, exchange);
            let lookup = page.map_or(own, |page| own.at(page));
            if let Some(response) = self.file(&site, exchange, &lookup, file, page.is_some())? {
                exchange.front = Front::Static;
                return Ok(response);
            }
            if !looked_again {
                // It was there a moment ago. What responds now that it is gone?
                self.routes().forget(&site, exchange.head.target.path(), &lookup);
                route = self.route(&site, exchange, page);
            }
        }
        let (method, target) = (&exchange.head.method, &exchange.head.target);
        match &*route {
            Route::Script(script) => php::run(&*self.upstream, exchange, script, body).await,
            Route::Proxy(found) => {
                exchange.route = found.route;
                let target = rules::target(exchange);
                Box::pin(proxy::run(&*self.upstream, exchange, found.proxy, target, body)).await
            }
            Route::AddSlash(path) => Ok(redirect(method, path, target.query())),
            Route::Listing(directory) => {
                exchange.front = Front::Static;
                let path = decode(target.path()).unwrap_or_default();
                let place = rules::lookup(&site, exchange).place.cloned();
                Box::pin(rules::listing::run(&site, place, directory, path, method)).await
            }
            // A file that comes and goes within one request.
            Route::File(_) | Route::NotFound => Err(Refusal::new(StatusCode::NOT_FOUND)),
            Route::Unknown => Err(Refusal::over_budget()),
            Route::Forbidden => Err(Refusal::new(StatusCode::FORBIDDEN)),
            Route::Invalid(reason) => Err(Refusal::bad_request(reason)),
        }
    }

    /// What the request's path leads to, or the path of a page.
    fn route(&self, site: &Site, exchange: &Exchange, page: Option<&[u8]>) -> Arc<Route> {
        let own = rules::lookup(site, exchange);
        let lookup = page.map_or(own, |page| own.at(page));
        self.routes().resolve(site, exchange.head.target.path(), &lookup, exchange.started)
    }

    fn routes(&self) -> MutexGuard<'_, RouteCache> {
        self.routes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The response with a file; none if it is gone.
    fn file(
        &self,
        site: &Site,
        exchange: &Exchange,
        lookup: &Lookup<'_>,
        file: &ResolvedFile,
        as_page: bool,
    ) -> Result<Option<Response>, Refusal> {
        let (files, name) = files_for(site, lookup, &file.name);
        let mut response = if as_page {
            let method = if exchange.head.method == Method::HEAD { Method::HEAD } else { Method::GET };
            let head = static_files::page_head(&exchange.head, method);
            static_files::run(files, name, &file.path, &head)?
        } else {
            static_files::run(files, name, &file.path, &exchange.head)?
        };
        let media = exchange.ruled.as_ref().and_then(|ruled| ruled.outcome.media_type(&file.name));
        if let (Some(response), Some(media)) = (&mut response, media)
            && response.headers().contains_key(header::CONTENT_TYPE)
            && response.status().is_success()
        {
            response.headers_mut().insert(header::CONTENT_TYPE, media.clone());
        }
        Ok(response)
    }

    /// A refusal, with the page that rules name for it.
    async fn refuse(&self, exchange: &mut Exchange, refusal: Refusal) -> Response {
        exchange.front = Front::Error;
        let status = refusal.status();
        let ruled: Option<&Ruled> = exchange.ruled.as_deref();
        let named = ruled.and_then(|ruled| ruled.outcome.error_page(status.as_u16())).map(str::to_owned);
        let page = refusal.page().map(|page| page.to_string()).or(named);
        let plain = refusal.into_response(&exchange.head.headers);
        let Some(page) = page else { return plain };
        exchange.error_status = Some(status.as_u16());
        let made = Box::pin(self.serve(exchange, RequestBody::none(), Some(page.as_bytes()))).await;
        exchange.front = Front::Error;
        let Ok(mut response) = made else {
            tracing::warn!(target: "howdah::rules", id = %exchange.id, page, "no page for the status {}", status.as_u16());
            return plain;
        };
        if response.status() == StatusCode::OK {
            *response.status_mut() = status;
        }
        for name in [header::ETAG, header::LAST_MODIFIED, header::ACCEPT_RANGES, header::CACHE_CONTROL] {
            response.headers_mut().remove(name);
        }
        for name in [header::RETRY_AFTER, header::WWW_AUTHENTICATE, header::ALLOW] {
            if let Some(value) = plain.headers().get(&name) {
                response.headers_mut().insert(name, value.clone());
            }
        }
        response
    }
}

/// What rules say of what will be served, where that has another name than the request: a response ends it. A page for an
/// error that not everybody may have is none.
async fn judged(
    site: &Site,
    exchange: &mut Exchange,
    route: &Route,
    page: Option<&[u8]>,
) -> Result<Option<Response>, Refusal> {
    let outcome = {
        let ruled = exchange.ruled.as_ref();
        let path = page.or_else(|| ruled.and_then(|ruled| ruled.outcome.path.as_deref()));
        let stands_in = page.is_some() || ruled.is_some_and(|ruled| ruled.tried);
        served::judge(site, exchange, Served { path, stands_in, route }, &mut NoTrace)
    };
    match outcome {
        None => Ok(None),
        Some(_) if page.is_some() => Err(Refusal::new(StatusCode::FORBIDDEN)),
        Some(outcome) => Box::pin(served::act(site, exchange, outcome, route)).await,
    }
}

/// The files that a name is among, and what it is called there.
pub(crate) fn files_for<'a>(site: &'a Site, lookup: &Lookup<'a>, name: &'a [u8]) -> (&'a StaticFiles, &'a [u8]) {
    let Some(place) = lookup.place else { return (&site.static_files, name) };
    let Some(rest) = name.strip_prefix(place.mount.as_bytes()).filter(|rest| rest.is_empty() || rest.starts_with(b"/"))
    else {
        return (&site.static_files, name);
    };
    // An alias of one file: it is among those beside it.
    if rest.is_empty() {
        (site.files_of(place), place.directory.file_name().unwrap_or_default().as_bytes())
    } else {
        (site.files_of(place), rest)
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
    site.https.stay(&exchange.head, &exchange.connection.peer, &exchange.client, response);
    if let Some(name) = &site.request_id_header
        && let Ok(id) = HeaderValue::from_str(&exchange.id.to_string())
    {
        response.headers_mut().insert(name.clone(), id);
    }
    if close && exchange.head.version < Version::HTTP_2 {
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
}
