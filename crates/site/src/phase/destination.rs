//! Phase "destination": responds with the target of the path after rules: a file, a script's output, or a directory. It
//! is the last responder, and also serves error pages.

use crate::applied_rules::Lookup;
use crate::exchange::Exchange;
use crate::explanation::{ExplanationBuilder, ScriptRun};
use crate::phase::rules::served::{self, Served};
use crate::phase::{php, rules};
use crate::refusal::Refusal;
use crate::request_path::{decode, redirect_to};
use crate::responder::{Context, Responder};
use crate::route::{self, ResolvedFile, Route};
use crate::site::Site;
use crate::static_files::{self, StaticFiles};
use crate::upstream::Upstream;
use howdah_htaccess::Unlisted;
use howdah_observe::Front;
use howdah_protocol::{Body, RequestBody, Response};
use howdah_rules::trace::{Lines, NoTrace};
use http::{HeaderValue, Method, StatusCode, header};
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

/// Serves the target of the path.
pub(crate) struct Destination;

impl Responder for Destination {
    async fn respond<U: Upstream>(
        context: &Context<U>,
        exchange: &mut Exchange,
        body: &mut RequestBody,
    ) -> Result<Option<Response>, Refusal> {
        serve(context, exchange, body.take(), None).await.map(Some)
    }

    fn explain(exchange: &mut Exchange, explaining: &mut ExplanationBuilder) {
        let site = &*exchange.site.clone();
        let lookup = rules::lookup(site, exchange);
        let route = route::explain(site, exchange.head.target.path(), &lookup, &explaining.notes);
        let ruled = exchange.ruled.as_ref();
        let path = ruled.and_then(|ruled| ruled.outcome.path.as_deref());
        let served = Served { path, stands_in: ruled.is_some_and(|ruled| ruled.tried), route: Some(&route) };
        if may_be_served(site, exchange, served, explaining) {
            explain_route(exchange, route, &lookup, explaining);
        }
    }
}

/// Records for `howdah explain` what a route leads to.
pub(crate) fn explain_route(
    exchange: &Exchange,
    route: Route,
    lookup: &Lookup<'_>,
    explaining: &mut ExplanationBuilder,
) {
    let (site, head) = (&*exchange.site, &exchange.head);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let why_there = if lookup.pool.is_some() { ", by a rule" } else { ", the site's own" };
    let status = match route {
        Route::Script(script) => {
            let pools = &site.server.settings.pools;
            let shown = |at: usize| pools.get(at).map(|pool| (pool.name.clone(), pool.mode)).unwrap_or_default();
            let (mut pool, mode) = shown(script.pool);
            let preferred = site.preferred.as_ref().filter(|preferred| exchange.is_for(preferred));
            match preferred.and_then(|preferred| preferred.for_script(script.pool, &script.filename)).map(shown) {
                Some((booted, in_mode)) => {
                    explaining.notes.add("pool", format!("\"{booted}\", mode \"{in_mode}\": the recipe boots this script; while it cannot serve, \"{pool}\", mode \"{mode}\""));
                    pool = booted;
                }
                None => explaining.notes.add("pool", format!("\"{pool}\", mode \"{mode}\"{why_there}")),
            }
            explaining.notes.add("response", "the script's output");
            explaining.found.script = Some(ScriptRun {
                filename: text(&script.filename),
                name: text(&script.name),
                path_info: text(&script.path_info),
                pool,
            });
            return;
        }
        Route::File(file) => {
            let (files, name) = files_for(site, lookup, &file.name);
            let sent = static_files::run(files, name, &file.path, head);
            explaining.found.file = Some(file.path.display().to_string());
            match sent {
                Ok(Some(response)) => response.status(),
                Ok(None) => StatusCode::NOT_FOUND,
                Err(refusal) => refusal.status(),
            }
        }
        Route::AddSlash(path) => {
            explaining.found.location = Some(redirect_to(&path, head.target.query()));
            let safe = head.method == Method::GET || head.method == Method::HEAD;
            if safe { StatusCode::MOVED_PERMANENTLY } else { StatusCode::PERMANENT_REDIRECT }
        }
        Route::Listing(_) => {
            explaining.notes.add("route", "a directory listing");
            StatusCode::OK
        }
        Route::NotFound => StatusCode::NOT_FOUND,
        Route::Unknown => StatusCode::SERVICE_UNAVAILABLE,
        Route::Forbidden => StatusCode::FORBIDDEN,
        Route::Invalid(_) => StatusCode::BAD_REQUEST,
    };
    explaining.respond(status, status.to_string());
}

/// Responds with the target of the request's path, or of the error page `page`.
pub(crate) async fn serve<U: Upstream>(
    context: &Context<U>,
    exchange: &mut Exchange,
    body: RequestBody,
    page: Option<&[u8]>,
) -> Result<Response, Refusal> {
    let site = exchange.site.clone();
    let mut route = route_of(context, &site, exchange, page);
    for looked_again in [false, true] {
        if let Some(response) = judged(&site, exchange, &route, page).await? {
            return Ok(response);
        }
        let Route::File(file) = &*route else { break };
        let own = rules::lookup(&site, exchange);
        let lookup = page.map_or(own, |page| own.at(page));
        if let Some(response) = file_response(&site, exchange, &lookup, file, page.is_some())? {
            exchange.front = Front::Static;
            return Ok(response);
        }
        if !looked_again {
            // The cached route is stale: the file no longer exists. Resolve the path again.
            context.routes().forget(&site, exchange.head.target.path(), &lookup);
            route = route_of(context, &site, exchange, page);
        }
    }
    let (method, target) = (&exchange.head.method, &exchange.head.target);
    match &*route {
        Route::Script(script) => php::run(&*context.upstream, exchange, script, body).await,
        Route::AddSlash(path) => Ok(redirect(method, path, target.query())),
        Route::Listing(directory) => {
            exchange.front = Front::Static;
            let path = decode(target.path()).unwrap_or_default();
            let place = rules::lookup(&site, exchange).place.cloned();
            Box::pin(rules::listing::run(&site, place, directory, path, method, Unlisted::default())).await
        }
        // The file disappeared twice within one request.
        Route::File(_) | Route::NotFound => Err(Refusal::new(StatusCode::NOT_FOUND)),
        Route::Unknown => Err(Refusal::over_budget()),
        Route::Forbidden => Err(Refusal::new(StatusCode::FORBIDDEN)),
        Route::Invalid(reason) => Err(Refusal::bad_request(reason)),
    }
}

/// Finds the target of the request's path, or of an error page's.
fn route_of<U>(context: &Context<U>, site: &Site, exchange: &Exchange, page: Option<&[u8]>) -> Arc<Route> {
    let own = rules::lookup(site, exchange);
    let lookup = page.map_or(own, |page| own.at(page));
    context.routes().resolve(site, exchange.head.target.path(), &lookup, exchange.started)
}

/// Returns the response with a file; `None` if the file no longer exists.
fn file_response(
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

/// Evaluates rules for the destination, if its name differs from the request's. A returned response ends the request. A
/// protected error page is refused.
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
        served::judge(site, exchange, Served { path, stands_in, route: Some(route) }, &mut NoTrace)
    };
    match outcome {
        None => Ok(None),
        Some(_) if page.is_some() => Err(Refusal::new(StatusCode::FORBIDDEN)),
        Some(outcome) => Box::pin(served::act(site, exchange, outcome, Some(route))).await,
    }
}

/// Returns the set of static files that contains a name, and the name's path within it.
fn files_for<'a>(site: &'a Site, lookup: &Lookup<'a>, name: &'a [u8]) -> (&'a StaticFiles, &'a [u8]) {
    let Some(place) = lookup.place else { return (&site.static_files, name) };
    let Some(rest) = name.strip_prefix(place.mount.as_bytes()).filter(|rest| rest.is_empty() || rest.starts_with(b"/"))
    else {
        return (&site.static_files, name);
    };
    // An alias of a single file: use the root that contains the file.
    if rest.is_empty() {
        (site.files_of(place), place.directory.file_name().unwrap_or_default().as_bytes())
    } else {
        (site.files_of(place), rest)
    }
}

/// Redirects to the directory with a trailing slash. Clients may turn other methods into GET after 301, but not after
/// 308.
fn redirect(method: &Method, path: &str, query: Option<&[u8]>) -> Response {
    let mut response = Response::new(Body::empty());
    let safe = method == Method::GET || method == Method::HEAD;
    *response.status_mut() = if safe { StatusCode::MOVED_PERMANENTLY } else { StatusCode::PERMANENT_REDIRECT };
    if let Ok(location) = HeaderValue::from_str(&redirect_to(path, query)) {
        response.headers_mut().insert(header::LOCATION, location);
    }
    response
}

/// Returns `false` if rules end the request because of the name of the served file or script.
pub(crate) fn may_be_served(
    site: &Site,
    exchange: &Exchange,
    served: Served<'_>,
    explaining: &mut ExplanationBuilder,
) -> bool {
    let mut lines = Lines::default();
    let is_script = matches!(served.route, Some(Route::Script(_)));
    let judged = served::judge(site, exchange, served, &mut lines);
    for line in lines.0 {
        explaining.notes.add("rule", format!("for the served file or script: {line}"));
    }
    let Some(judged) = judged else { return true };
    if let Some(stop) = judged.stop {
        rules::explain_end(stop, explaining);
    } else if judged.php == Some(false) && is_script {
        explaining.respond(StatusCode::FORBIDDEN, "403: a rule has `php = false`");
    }
    !explaining.is_settled()
}
