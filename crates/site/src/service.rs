//! Runs a request through the responders of its site and completes the response. To add a responder, write it in a
//! separate file (see `responder`) and add it to the list below. `howdah explain` walks the same list.

use crate::applied_rules::AppliedRules;
use crate::exchange::Exchange;
use crate::explanation::ExplanationBuilder;
use crate::forwarded;
use crate::phase::access_log_fpm;
use crate::phase::compress;
use crate::phase::destination::{self, Destination};
use crate::phase::htaccess::HtaccessFiles;
use crate::phase::limits::{self, BodyLimit, HeadLimits, KnownHost};
use crate::phase::mercure::MercureHub;
use crate::phase::own_responses::{Challenge, HttpsRedirect, PoolPage, Probe, ServerOptions};
use crate::phase::page_reload::{self, PageReload};
use crate::phase::pusher::PusherFront;
use crate::phase::rules::{self, Rules};
use crate::phase::web_server::FromWebServer;
use crate::phase::websocket::WebSocket;
use crate::refusal::Refusal;
use crate::responder::{Context, Responder};
use crate::sites::Sites;
use crate::upstream::Upstream;
use howdah_observe::Front;
use howdah_protocol::{Handler, Rejected, Request, RequestBody, Response, panics};
use http::{HeaderValue, StatusCode, Version, header};
use std::net::IpAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Instant;

/// Generates two functions that walk a list of responders: `respond` for requests, a single future without a box per
/// responder, and `explain`.
macro_rules! chain {
    ($($responder:ty),* $(,)?) => {
        /// Returns the response of the first responder that has one.
        async fn respond<U: Upstream>(
            context: &Context<U>,
            exchange: &mut Exchange,
            mut body: RequestBody,
        ) -> Result<Response, Refusal> {
            $(
                if <$responder>::concerns(exchange)
                    && let Some(response) = <$responder>::respond(context, exchange, &mut body).await?
                {
                    return Ok(response);
                }
            )*
            Err(Refusal::new(StatusCode::NOT_FOUND))
        }

        /// Records what each responder would do, and stops at the first that would respond.
        pub(crate) fn explain(exchange: &mut Exchange, explaining: &mut ExplanationBuilder) {
            $(
                <$responder>::explain(exchange, explaining);
                if explaining.is_settled() {
                    return;
                }
            )*
        }
    };
}

chain![
    // First, because a web server in front (FastCGI) has already done the work of the other responders.
    FromWebServer,
    // Before the checks: they must not block ACME challenges, and probes do not name a host of a site.
    Challenge,
    Probe,
    HeadLimits,
    KnownHost,
    HttpsRedirect,
    ServerOptions,
    PageReload, // under `howdah dev`
    Rules,      // also forwards to proxies
    WebSocket,
    PoolPage,
    MercureHub,  // in sites with a hub; enforces its own body limit
    PusherFront, // in sites with a Pusher application; enforces its own body limit
    BodyLimit,
    HtaccessFiles, // in sites that use `.htaccess`, for all remaining requests
    Destination,   // file, script or directory
];

/// Completes a response of any responder; over FastCGI, only charges it. `close` closes an HTTP/1 connection after it.
fn completed(exchange: &mut Exchange, mut response: Response, close: bool) -> Response {
    if exchange.variables.is_some() {
        hold(exchange, &mut response);
        return response;
    }
    rules::response::apply(exchange, &mut response);
    page_reload::inject(exchange, &mut response);
    compress::apply(exchange, &mut response);
    hold(exchange, &mut response);
    complete_head(exchange, &mut response, close);
    response
}

/// Responds to the requests of one I/O thread, or to the server's own.
#[derive(Debug)]
pub struct Service<U: Upstream> {
    /// The sites that requests may be for.
    pub sites: Arc<Sites>,
    context: Context<U>,
}

impl<U: Upstream> Service<U> {
    /// A service for these sites.
    pub fn new(sites: Arc<Sites>, upstream: Arc<U>) -> Self {
        Self { sites, context: Context::new(upstream) }
    }
}

impl<U: Upstream> Handler for Service<U> {
    fn handle(&self, request: Request) -> impl Future<Output = Response> + Send {
        let (exchange, body) = self.begin(request);
        self.complete(exchange, body)
    }

    fn trusts(&self, peer: Option<IpAddr>) -> bool {
        forwarded::trusts(&self.sites.server.settings.http.trusted_proxies, peer)
    }

    fn rejected(&self, rejected: &Rejected<'_>) {
        self.sites.server.note_rejected(rejected);
    }
}

impl<U: Upstream> Service<U> {
    /// Begins the exchange of a request. Not part of a future, whose arguments are copied twice.
    #[must_use]
    pub fn begin(&self, request: Request) -> (Box<Exchange>, RequestBody) {
        Exchange::begin(&self.sites, request)
    }

    /// Returns the response to a new exchange. The response body owns the exchange from then on: it ends, and is
    /// logged, after the last byte.
    pub async fn complete(&self, mut exchange: Box<Exchange>, body: RequestBody) -> Response {
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
            complete_head(&exchange, &mut response, has_body);
            response
        });
        exchange.status = response.status().as_u16();
        access_log_fpm::note_head(&mut exchange, response.headers());
        if let Some(trace) = &mut exchange.trace {
            trace.responded = Some(Instant::now());
        }
        response.body_mut().carry(exchange);
        response
    }

    /// Returns the completed response, or the completed error page of a refusal.
    async fn make(&self, exchange: &mut Exchange, body: RequestBody, has_body: bool) -> Response {
        let refusal = match self.respond(exchange, body).await {
            Ok(response) => match limits::check_response(exchange, &response) {
                Ok(()) => return completed(exchange, response, false),
                Err(refusal) => refusal,
            },
            Err(refusal) => refusal,
        };
        let page = self.refuse(exchange, refusal).await;
        completed(exchange, page, has_body)
    }

    /// Returns the response of the first responder that has one, before it is completed.
    pub(crate) async fn respond(&self, exchange: &mut Exchange, body: RequestBody) -> Result<Response, Refusal> {
        respond(&self.context, exchange, body).await
    }

    /// Returns the response to a refusal, with the error page that rules configure for its status.
    async fn refuse(&self, exchange: &mut Exchange, refusal: Refusal) -> Response {
        exchange.front = Front::Error;
        let status = refusal.status();
        let ruled: Option<&AppliedRules> = exchange.ruled.as_deref();
        let named = ruled.and_then(|ruled| ruled.outcome.error_page(status.as_u16())).map(str::to_owned);
        let page = refusal.page().map(|page| page.to_string()).or(named);
        let plain = refusal.into_response(&exchange.head.headers);
        let Some(page) = page else { return plain };
        exchange.error_status = Some(status.as_u16());
        let made =
            Box::pin(destination::serve(&self.context, exchange, RequestBody::none(), Some(page.as_bytes()))).await;
        exchange.front = Front::Error;
        let Ok(mut response) = made else {
            tracing::warn!(target: "howdah::rules", request = %exchange.id, page, "no error page for status {}", status.as_u16());
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

/// Charges a body held in memory to its budget, unless it is small. Replaces the response with 503 if the budget is
/// exhausted.
fn hold(exchange: &mut Exchange, response: &mut Response) {
    if response.body_mut().hold(&exchange.connection) {
        return;
    }
    tracing::warn!(target: "howdah::request", request = %exchange.id, "request failed: no room for the response in `http.memory`");
    (exchange.coding, exchange.front) = (None, Front::Error);
    *response = Refusal::over_budget().into_response(&exchange.head.headers);
}

/// Adds the header fields that every response carries, except over FastCGI. `close` closes an HTTP/1 connection after
/// the response; refusals of requests with a body set it because the rest of the body is not read.
fn complete_head(exchange: &Exchange, response: &mut Response, close: bool) {
    let site = &exchange.site;
    if let Some(server) = &site.server_header {
        response.headers_mut().entry(header::SERVER).or_insert_with(|| server.clone());
    }
    site.https.advertise_http3(&exchange.head, &exchange.connection.peer, response);
    if let Some(name) = &site.request_id_header
        && let Ok(id) = HeaderValue::from_str(&exchange.id.to_string())
    {
        response.headers_mut().insert(name.clone(), id);
    }
    if close && exchange.head.version < Version::HTTP_2 {
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
}
