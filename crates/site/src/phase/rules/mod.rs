//! Phase "rules": evaluates the site's rules, after the limits and before the route. It enforces access control
//! (`access`) and returns the responses that rules give directly. Settings for files, scripts and the response are
//! stored in the exchange (`applied_rules`) for later phases. Once the destination is known, access is checked again
//! under its name (`served`). `response` changes the headers of the response.
//!
//! A request with a plain path that is no candidate for a rule costs one lookup in the index and does not allocate.

mod access;
pub(crate) mod listing;
pub(crate) mod response;
pub(crate) mod served;

use crate::applied_rules::{AppliedRules, Lookup, join};
use crate::exchange::Exchange;
use crate::explanation::ExplanationBuilder;
use crate::https;
use crate::path_parts;
use crate::phase::proxy;
use crate::refusal::Refusal;
use crate::request_path::{encode, encode_query, plain_path};
use crate::responder::{Context, Responder};
use crate::site::Site;
use crate::upstream::Upstream;
use bytes::Bytes;
use howdah_config::{HostRoom, normal_host};
use howdah_protocol::{Body, RequestBody, Response};
use howdah_rules::trace::{Lines, NoTrace, Trace};
use howdah_rules::{Attempt, Files, Kind, Outcome, Place, Request, Stop};
use http::{StatusCode, header};
use served::Served;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

/// The next step of a request.
enum Step {
    /// Continue with the next responder.
    On,
    /// End with this response.
    Done(Response),
    /// Forward to the proxy of this name, with this request target.
    Proxy(Arc<str>, Bytes),
}

/// Applies the site's rules.
pub(crate) struct Rules;

impl Responder for Rules {
    fn concerns(exchange: &Exchange) -> bool {
        !exchange.site.settings.rules.is_empty()
    }

    async fn respond<U: Upstream>(
        context: &Context<U>,
        exchange: &mut Exchange,
        body: &mut RequestBody,
    ) -> Result<Option<Response>, Refusal> {
        let site = exchange.site.clone();
        let Some(outcome) = evaluate(&site, exchange, &mut NoTrace) else { return Ok(None) };
        match act(&site, exchange, outcome).await? {
            Step::On => Ok(None),
            Step::Done(response) => Ok(Some(response)),
            Step::Proxy(name, target) => {
                // Names were checked when the settings were loaded.
                let mut proxies = site.server.settings.proxies.iter();
                let at = proxies.position(|proxy| *proxy.name == *name).unwrap_or(usize::MAX);
                exchange.count_by_rule();
                Box::pin(proxy::run(&*context.upstream, exchange, at, target, body.take())).await.map(Some)
            }
        }
    }

    fn explain(exchange: &mut Exchange, explaining: &mut ExplanationBuilder) {
        let site = exchange.site.clone();
        explaining.notes.add("root", site.root.display().to_string());
        let mut lines = Lines::default();
        let outcome = evaluate(&site, exchange, &mut lines);
        for line in lines.0 {
            explaining.notes.add("rule", line);
        }
        let Some(mut outcome) = outcome else { return };
        let stop = outcome.stop.take();
        exchange.ruled = Some(Box::new(AppliedRules { outcome, ..AppliedRules::default() }));
        if let Some(stop) = stop {
            explain_end(stop, explaining);
        } else if let Err(refusal) = choose_attempt(&site, exchange) {
            let status = refusal.status();
            explaining.respond(status, format!("{status}, from a rule (`try_files`)"));
        }
    }
}

/// Records for `howdah explain` how a rule ends the request.
pub(crate) fn explain_end(stop: Stop, explaining: &mut ExplanationBuilder) {
    match stop {
        Stop::Status(status, _) => explaining.respond(status, format!("{status}, from a rule")),
        Stop::Redirect(status, location) => {
            explaining.found.location = Some(String::from_utf8_lossy(location.as_bytes()).into_owned());
            explaining.respond(status, format!("{status}, from a rule"));
        }
        Stop::Maintenance(_) => {
            let status = StatusCode::SERVICE_UNAVAILABLE;
            explaining.respond(status, "503, from a rule (`maintenance`)");
        }
        Stop::Proxy(proxy) => {
            explaining.notes.add("response", format!("the response of the proxy \"{proxy}\""));
            explaining.found.proxy = Some(proxy.to_string());
        }
        Stop::Failed(failure) => {
            let why = format!("500: the rule {} cannot be applied: {}", failure.rule, failure.reason);
            explaining.respond(StatusCode::INTERNAL_SERVER_ERROR, why);
        }
    }
}

/// Evaluates the site's rules. Returns `None` if they have no effect, or if the path is invalid, which the route
/// refuses later.
fn evaluate(site: &Site, exchange: &Exchange, trace: &mut impl Trace) -> Option<Box<Outcome>> {
    let path = plain_path(exchange.head.target.path()).ok()?;
    with_request(site, exchange, &path, exchange.head.target.query(), |request| {
        site.settings.rules.evaluate(request, &SiteFiles(site), trace)
    })
}

/// Applies only the pool, the share of workers, the limits on time and body, and the access log setting of the rules to
/// a FastCGI request. The web server in front is responsible for the rest.
pub(crate) fn choose_pool(exchange: &mut Exchange) {
    let site = exchange.site.clone();
    if site.settings.rules.is_empty() {
        return;
    }
    let Some(outcome) = evaluate(&site, exchange, &mut NoTrace) else { return };
    let Outcome { pool, route, share, times, max_body, access_log, .. } = *outcome;
    let outcome = Box::new(Outcome { pool, route, share, times, max_body, access_log, ..Outcome::default() });
    exchange.ruled = Some(Box::new(AppliedRules { outcome, ..AppliedRules::default() }));
}

/// Calls `then` with a request as rules see it.
fn with_request<T>(
    site: &Site,
    exchange: &Exchange,
    path: &[u8],
    query: Option<&[u8]>,
    then: impl FnOnce(&Request<'_>) -> T,
) -> T {
    let mut room: HostRoom = [0; _];
    let own;
    let host = match exchange.host().and_then(|host| normal_host(host, &mut room)) {
        Some(host) => host,
        // HTTP/1.0 needs no `Host`. As in nginx: the site's own name, or the local address of the connection.
        None => {
            let address = || https::address(&exchange.connection.peer);
            own = site.settings.server_name.clone().or_else(address).unwrap_or_default();
            own.as_bytes()
        }
    };
    let (head, client) = (&exchange.head, &exchange.client);
    then(&Request {
        method: &head.method,
        https: client.https,
        host,
        path,
        query,
        headers: &head.headers,
        client: client.ip,
    })
}

/// Applies an outcome: a CORS preflight ends here; others pass access control, then get a response that ends the
/// request. The rest is stored for later phases.
async fn act(site: &Site, exchange: &mut Exchange, mut outcome: Box<Outcome>) -> Result<Step, Refusal> {
    let (asked, stop) = (std::mem::take(&mut outcome.access), outcome.stop.take());
    for (name, value) in std::mem::take(&mut outcome.request_headers) {
        match value {
            Some(value) => drop(exchange.head.headers.insert(name, value)),
            None => while exchange.head.headers.remove(&name).is_some() {},
        }
    }
    exchange.ruled = Some(Box::new(AppliedRules { outcome, ..AppliedRules::default() }));
    if let Some(response) = response::preflight(exchange) {
        return Ok(Step::Done(response));
    }
    for access in if exchange.asks_for_access() { asked } else { Vec::new() } {
        access::ask(site, exchange, access).await?;
    }
    match stop {
        None => {
            choose_attempt(site, exchange)?;
            Ok(Step::On)
        }
        Some(Stop::Proxy(proxy)) => {
            let path = exchange.ruled.as_ref().and_then(|ruled| ruled.outcome.path.clone());
            let served = Served { path: path.as_deref(), stands_in: false, route: None };
            if let Some(outcome) = served::judge(site, exchange, served, &mut NoTrace)
                && let Some(response) = served::act(site, exchange, outcome, None).await?
            {
                return Ok(Step::Done(response));
            }
            Ok(Step::Proxy(proxy, target(exchange)))
        }
        Some(stop) => end(exchange, stop).map(Step::Done),
    }
}

/// Returns the request target for an upstream server, with the path and query after rewrites.
pub(crate) fn target(exchange: &Exchange) -> Bytes {
    let path = exchange.ruled.as_ref().and_then(|ruled| ruled.outcome.path.as_deref());
    let changed = path.is_some() || exchange.query() != exchange.head.target.query();
    if !changed {
        return Bytes::copy_from_slice(exchange.head.target.as_bytes());
    }
    let mut target = path.map_or_else(|| exchange.head.target.path().to_vec(), |path| encode(path).into_bytes());
    if let Some(query) = exchange.query() {
        target.push(b'?');
        target.extend_from_slice(encode_query(query).as_bytes());
    }
    target.into()
}

/// Returns the response with which a rule ends the request.
fn end(exchange: &Exchange, stop: Stop) -> Result<Response, Refusal> {
    match stop {
        Stop::Status(status, None) if status.as_u16() >= 400 => Err(Refusal::new(status)),
        Stop::Status(status, body) => {
            let text = body.as_ref().map_or_else(Default::default, |body| body.text.clone());
            let mut response = Response::new(Body::full(text));
            *response.status_mut() = status;
            if let Some(body) = body {
                response.headers_mut().insert(header::CONTENT_TYPE, body.media_type.clone());
            }
            Ok(response)
        }
        Stop::Redirect(status, location) => {
            let mut response = Response::new(Body::empty());
            *response.status_mut() = status;
            response.headers_mut().insert(header::LOCATION, location);
            Ok(response)
        }
        Stop::Maintenance(maintenance) => {
            let seconds = u32::try_from(maintenance.retry_after.as_secs()).unwrap_or(u32::MAX);
            let refusal = Refusal::new(StatusCode::SERVICE_UNAVAILABLE).retry_after(seconds);
            Err(match &maintenance.page {
                Some(page) => refusal.with_page(page.clone()),
                None => refusal,
            })
        }
        Stop::Proxy(_) => Err(Refusal::new(StatusCode::BAD_GATEWAY)),
        Stop::Failed(failure) => {
            let target = String::from_utf8_lossy(exchange.head.target.as_bytes());
            let (id, rule) = (exchange.id, &*failure.rule);
            tracing::error!(target: "howdah::rules", request = %id, target = &*target, rule, "rule failed, responding with 500: {}", failure.reason);
            Err(Refusal::new(StatusCode::INTERNAL_SERVER_ERROR))
        }
    }
}

/// Chooses the first path of `try_files` that exists, else the last one.
fn choose_attempt(site: &Site, exchange: &mut Exchange) -> Result<(), Refusal> {
    let Some(ruled) = &mut exchange.ruled else { return Ok(()) };
    let Some(attempts) = ruled.outcome.try_files.take() else { return Ok(()) };
    let place = ruled.outcome.place.as_deref();
    let last = attempts.len().saturating_sub(1);
    for (at, attempt) in attempts.into_iter().enumerate() {
        match attempt {
            Attempt::Status(status) => return Err(Refusal::new(status)),
            Attempt::Path(path, query) => {
                let wanted = if path.ends_with(b"/") { Kind::Directory } else { Kind::File };
                if at == last || SiteFiles(site).kind(place, &path) == wanted {
                    ruled.outcome.path = Some(path);
                    ruled.tried = true;
                    if query.is_some() {
                        ruled.outcome.query = Some(query);
                    }
                    return Ok(());
                }
            }
        }
    }
    Ok(())
}

/// Returns the parameters of the file lookup, as set by rules.
pub(crate) fn lookup<'a>(site: &Site, exchange: &'a Exchange) -> Lookup<'a> {
    exchange.ruled.as_ref().map_or_else(Lookup::default, |ruled| Lookup::new(site, &ruled.outcome))
}

/// The files of a site, for rules.
struct SiteFiles<'a>(&'a Site);

impl Files for SiteFiles<'_> {
    fn kind(&self, place: Option<&Place>, path: &[u8]) -> Kind {
        let place = place.cloned().map(Arc::new);
        let lookup = Lookup { place: place.as_ref(), ..Lookup::default() };
        let look = |path: &[u8]| {
            let (base, rest) = lookup.base(self.0, path);
            std::fs::metadata(join(base, rest)).map(|meta| path_parts::Kind::from(&meta))
        };
        match look(path) {
            Ok(path_parts::Kind::File) => Kind::File,
            Ok(path_parts::Kind::Directory) => Kind::Directory,
            Ok(path_parts::Kind::Other) => Kind::No,
            Err(error) if error.kind() == ErrorKind::NotFound => Kind::No,
            // A path below a script (`PATH_INFO`) exists if the script's file does.
            Err(_) => match path_parts::script_end(path, path.len(), |name| look(name).ok()) {
                Some(_) => Kind::File,
                None => Kind::No,
            },
        }
    }

    fn is_there(&self, file: &Path) -> bool {
        file.exists()
    }
}
