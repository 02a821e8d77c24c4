//! Phase "htaccess": evaluates the `.htaccess` files for a request and acts on the decision, in sites that enable them.
//! It replaces the phase "destination": the files choose the destination, without the configured front controller.

mod explain;

use crate::applied_rules::Lookup;
use crate::exchange::{Changes, Exchange, Purpose};
use crate::explanation::ExplanationBuilder;
use crate::forwarded::split_port;
use crate::phase::rules::served::{self, Served};
use crate::phase::{php, rules};
use crate::refusal::Refusal;
use crate::request_path::plain_path;
use crate::responder::{Context, Responder};
use crate::route::{Route, resolve_settled};
use crate::site::Site;
use crate::static_files;
use crate::upstream::Upstream;
use bytes::Bytes;
use howdah_htaccess::{
    Decision, Entry, ErrorDocument, Facts, Htaccess, Kind, OwnedFacts, ResponseSource, Stamp, System, TooExpensive,
};
use howdah_observe::Front;
use howdah_protocol::{Body, RequestBody, Response};
use howdah_rules::auth::AuthResult;
use howdah_rules::outcome::{Access, Stop};
use howdah_rules::trace::NoTrace;
use http::{HeaderValue, Method, StatusCode, Version, header};
use rustix::fs::{FileType, Mode, OFlags};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{Error, ErrorKind, Read};
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

/// Maximum number of error pages that are tried for one request, each because rules refused the page before it.
const ERROR_DOCUMENTS: usize = 10;

/// The file system and environment that `.htaccess` files may see.
struct Machine<'a> {
    site: &'a Site,
    /// `true` on an I/O thread, which must not block on expensive work.
    shared: bool,
}

impl System for Machine<'_> {
    fn stat(&self, path: &[u8]) -> Option<Entry> {
        let stat = rustix::fs::stat(path).ok()?;
        let kind = match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => Kind::File,
            FileType::Directory => Kind::Directory,
            _ => Kind::Other,
        };
        let stamp = Stamp { file: (stat.st_dev, stat.st_ino), changed: (stat.st_ctime, stat.st_ctime_nsec as i64) };
        let executable = stat.st_mode & 0o111 != 0;
        Some(Entry { kind, size: u64::try_from(stat.st_size).unwrap_or(0), executable, stamp })
    }

    fn is_link(&self, path: &[u8]) -> bool {
        rustix::fs::lstat(path).is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Symlink)
    }

    fn read(&self, path: &[u8], most: usize) -> std::io::Result<Vec<u8>> {
        // A file that became a pipe since it was checked must not block the thread.
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
        if !file.metadata()?.is_file() {
            return Err(Error::new(ErrorKind::InvalidInput, "not a regular file"));
        }
        let mut text = Vec::new();
        file.take(most as u64 + 1).read_to_end(&mut text)?;
        Ok(text)
    }

    fn environment(&self, name: &str) -> Option<String> {
        self.site.environment.get(OsStr::new(name)).and_then(|value| value.to_str()).map(str::to_owned)
    }

    fn is_shared(&self) -> bool {
        self.shared
    }
}

/// Evaluates `question` with the `.htaccess` files of the site. Expensive work, such as reading a file, is repeated on
/// a separate thread.
async fn ask<T: Send + 'static>(
    exchange: &Exchange,
    path: &[u8],
    question: impl Fn(&Htaccess, &Facts<'_>, &Machine<'_>) -> Result<T, TooExpensive> + Send + 'static,
) -> Result<T, Refusal> {
    let site = exchange.site.clone();
    let Some(htaccess) = &site.htaccess else { return Err(Refusal::new(StatusCode::NOT_FOUND)) };
    // Warm-up requests are resolved on a thread without clients, so they may block it.
    let here = Machine { site: &site, shared: exchange.purpose != Some(Purpose::WarmUp) };
    let asked = with_facts(exchange, path, |facts| {
        question(htaccess, facts, &here).map_err(|TooExpensive| Box::new(OwnedFacts::from(facts)))
    });
    let facts = match asked {
        Ok(done) => return Ok(done),
        Err(facts) => facts,
    };
    let own = site.clone();
    let done = site.blocking.run(move || {
        let htaccess = own.htaccess.as_ref().ok_or(TooExpensive)?;
        question(htaccess, &facts.facts(), &Machine { site: &own, shared: false })
    });
    done.await?.map_err(|TooExpensive| Refusal::new(StatusCode::INTERNAL_SERVER_ERROR))
}

/// Serves the destination that the `.htaccess` files of a site choose.
pub(crate) struct HtaccessFiles;

impl Responder for HtaccessFiles {
    fn concerns(exchange: &Exchange) -> bool {
        exchange.site.htaccess.is_some()
    }

    async fn respond<U: Upstream>(
        context: &Context<U>,
        exchange: &mut Exchange,
        body: &mut RequestBody,
    ) -> Result<Option<Response>, Refusal> {
        Box::pin(run(context, exchange, body.take())).await.map(Some)
    }

    fn explain(exchange: &mut Exchange, explaining: &mut ExplanationBuilder) {
        explain::explain(exchange, explaining);
    }
}

async fn run<U: Upstream>(
    context: &Context<U>,
    exchange: &mut Exchange,
    body: RequestBody,
) -> Result<Response, Refusal> {
    let path = plain_path(exchange.head.target.path()).map_err(Refusal::bad_request)?.into_owned();
    // The `.htaccess` files decide the destination from the requested path; the query of a rewrite by rules is dropped.
    if let Some(ruled) = &mut exchange.ruled {
        ruled.outcome.query = None;
    }
    let has_body = !body.is_none();
    let now = exchange.started;
    let decision = ask(exchange, &path, move |htaccess, facts, machine| htaccess.decide(facts, machine, now)).await?;
    let decision = Arc::new(decision);
    let served = serve(context, exchange, &decision, body).await;
    let (response, maker) = match served {
        Ok(served) => served,
        Err(response) => (response, ResponseSource::Server),
    };
    // An error page is another file, with its own directives.
    let mut last = decision.clone();
    let (response, maker, decision) = if maker == ResponseSource::Server && response.status().as_u16() >= 400 {
        error_document(context, exchange, &path, &mut last, response).await
    } else {
        (response, maker, decision)
    };
    let mut response = finished(exchange, &path, decision, &last, response, maker).await;
    if maker == ResponseSource::Server {
        exchange.front = Front::Error;
        // The rest of the request body is not read.
        if has_body && exchange.head.version < Version::HTTP_2 {
            response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
    }
    Ok(response)
}

/// Serves the decision. `Err` holds an error response made by the server.
async fn serve<U: Upstream>(
    context: &Context<U>,
    exchange: &mut Exchange,
    decision: &Decision,
    body: RequestBody,
) -> Result<(Response, ResponseSource), Response> {
    let user = enter(exchange, decision).await.map_err(|response| *response)?;
    let refused = |exchange: &Exchange, status| Refusal::new(status).into_response(&exchange.head.headers);
    match &decision.outcome.stop {
        None => {}
        Some(Stop::Redirect(status, location)) => {
            return Ok((redirect(*status, location), ResponseSource::Server));
        }
        Some(Stop::Status(status, _)) => return Err(refused(exchange, *status)),
        Some(Stop::Failed(failure)) => {
            let (id, reason) = (exchange.id, failure.reason);
            let target = String::from_utf8_lossy(exchange.head.target.as_bytes());
            tracing::error!(target: "howdah::htaccess", request = %id, target = &*target, "{reason}: the response is 500");
            return Err(refused(exchange, StatusCode::INTERNAL_SERVER_ERROR));
        }
        Some(_) => return Err(refused(exchange, StatusCode::INTERNAL_SERVER_ERROR)),
    }
    if let Some(most) = decision.outcome.max_body
        && declared_length(exchange) > most
    {
        return Err(refused(exchange, StatusCode::PAYLOAD_TOO_LARGE));
    }
    change(exchange, decision, user);
    let made = target(context, exchange, decision, body, false).await;
    made.map_err(|refusal| refusal.into_response(&exchange.head.headers))
}

fn redirect(status: StatusCode, location: &HeaderValue) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    response.headers_mut().insert(header::LOCATION, location.clone());
    response
}

fn declared_length(exchange: &Exchange) -> u64 {
    let length = exchange.head.headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok());
    length.and_then(|text| text.parse().ok()).unwrap_or(0)
}

/// The lookup of the decision's file, after `Some(true)` if it runs as a script or `Some(false)` if it must not.
fn lookup_of<'a>(site: &'a Site, exchange: &Exchange, decision: &Decision) -> (Option<bool>, Lookup<'a>) {
    // A rule in the settings that forbids PHP here holds even if a `.htaccess` file, perhaps an upload, allows it.
    let forbidden = exchange.ruled.as_ref().is_some_and(|ruled| ruled.outcome.php == Some(false));
    let php = if forbidden { Some(false) } else { decision.outcome.php };
    let pool = exchange.ruled.as_ref().and_then(|ruled| Lookup::new(site, &ruled.outcome).pool);
    let listing = decision.outcome.listing == Some(true);
    (php, Lookup { pool, listing, ..Lookup::default() })
}

/// Responds with the file or script that the decision leads to. `as_page` is set for error pages.
async fn target<U: Upstream>(
    context: &Context<U>,
    exchange: &mut Exchange,
    decision: &Decision,
    body: RequestBody,
    as_page: bool,
) -> Result<(Response, ResponseSource), Refusal> {
    let site = exchange.site.clone();
    let path = decision.response.path();
    let (php, lookup) = lookup_of(&site, exchange, decision);
    // Only routes of existing files are cached, so a file that a script has just written is found at once.
    let route = match decision.found {
        Some(Kind::File) => context.routes().settled(&site, path, php, &lookup, exchange.started),
        _ => Arc::new(resolve_settled(&site, path, php, &lookup)),
    };
    // A `.htaccess` file cannot bypass other rules that protect the destination either.
    let served = Served { path: Some(path), stands_in: as_page, route: Some(&route) };
    if let Some(outcome) = served::judge(&site, exchange, served, &mut NoTrace) {
        if as_page {
            return Err(Refusal::new(StatusCode::FORBIDDEN));
        }
        if let Some(response) = served::act(&site, exchange, outcome, Some(&route)).await? {
            return Ok((response, ResponseSource::Server));
        }
    }
    match &*route {
        Route::Script(script) => {
            Ok((php::run(&*context.upstream, exchange, script, body).await?, ResponseSource::Script))
        }
        Route::File(file) => {
            let found = static_files::run(&site.static_files, &file.name, &file.path, &exchange.head)?;
            exchange.front = Front::Static;
            let mut found = found.ok_or_else(|| Refusal::new(StatusCode::NOT_FOUND))?;
            let refused = [StatusCode::METHOD_NOT_ALLOWED, StatusCode::RANGE_NOT_SATISFIABLE].contains(&found.status());
            let maker = if refused { ResponseSource::Server } else { ResponseSource::File };
            // Directives by media type apply to a 304 too, which has no `Content-Type`.
            if found.status() == StatusCode::NOT_MODIFIED
                && let Some(media_type) = static_files::media_type(&site.static_files, &file.name)
            {
                found.headers_mut().insert(header::CONTENT_TYPE, media_type);
            }
            Ok((found, maker))
        }
        Route::Unknown => Err(Refusal::over_budget()),
        Route::Forbidden => Err(Refusal::new(StatusCode::FORBIDDEN)),
        Route::Listing(directory) => {
            exchange.front = Front::Static;
            let unlisted = decision.response.unlisted();
            let method = &exchange.head.method;
            let list = rules::listing::run(&site, None, directory, path.to_vec(), method, unlisted).await?;
            Ok((list, ResponseSource::Script))
        }
        // The decision has already handled missing slashes.
        Route::NotFound | Route::AddSlash(_) => Err(Refusal::new(StatusCode::NOT_FOUND)),
        Route::Invalid(reason) => Err(Refusal::bad_request(reason)),
    }
}

/// Applies the decision's changes to the request: header fields, query, variables and PHP settings.
fn change(exchange: &mut Exchange, decision: &Decision, user: Option<Arc<str>>) {
    let outcome = &decision.outcome;
    for (name, value) in &outcome.request_headers {
        exchange.head.headers.remove(name);
        if let Some(value) = value {
            exchange.head.headers.insert(name.clone(), value.clone());
        }
    }
    // Keeps what an event has set earlier.
    let Changes { mut variables, stream, .. } = exchange.changes.take().map_or_else(Changes::default, |own| *own);
    variables.extend_from_slice(&outcome.variables);
    exchange.changes = Some(Box::new(Changes {
        query: outcome.query.clone(),
        variables,
        ini: outcome.ini.clone(),
        max_body: outcome.max_body,
        user,
        stream,
    }));
}

/// Returns the authenticated user, if one is required. An error is the 401 response that asks for credentials, or that
/// of a verification that could not run.
async fn enter(exchange: &Exchange, decision: &Decision) -> Result<Option<Arc<str>>, Box<Response>> {
    let mut user = None;
    if !exchange.asks_for_access() {
        return Ok(user);
    }
    for access in &decision.outcome.access {
        let Access::Auth(auth) = access else { continue };
        let known = match auth.ask(exchange.head.headers.get(header::AUTHORIZATION), exchange.started) {
            AuthResult::Refused => None,
            AuthResult::User(user) => Some(user),
            AuthResult::Verify(verification) => {
                let verified =
                    exchange.site.server.passwords.verify(exchange.id, exchange.client.ip, verification).await;
                verified.map_err(|refusal| Box::new(refusal.into_response(&exchange.head.headers)))?
            }
        };
        let Some(known) = known else {
            let mut response = Refusal::new(StatusCode::UNAUTHORIZED).into_response(&exchange.head.headers);
            response.headers_mut().insert(header::WWW_AUTHENTICATE, auth.challenge().clone());
            return Err(Box::new(response));
        };
        user = Some(known);
    }
    Ok(user)
}

/// Returns the error page that `.htaccess` files configure and its decision, or the original response. `last` is set to
/// the decision about the last page that was tried.
async fn error_document<U: Upstream>(
    context: &Context<U>,
    exchange: &mut Exchange,
    path: &[u8],
    last: &mut Arc<Decision>,
    original: Response,
) -> (Response, ResponseSource, Arc<Decision>) {
    let first = last.clone();
    let (mut decision, mut refused) = (first.clone(), None::<Response>);
    for _ in 0..ERROR_DOCUMENTS {
        let status = refused.as_ref().unwrap_or(&original).status();
        let page = match decision.error_document(status.as_u16()) {
            Some(ErrorDocument::Path(page)) => page.clone(),
            other => {
                let response = without_page(refused.unwrap_or(original), other);
                return (response, ResponseSource::Server, decision);
            }
        };
        let (now, before, code) = (exchange.started, decision.clone(), status.as_u16());
        let error = ask(exchange, path, move |htaccess, facts, machine| {
            htaccess.decide_error(facts, machine, now, &page, &before.response, code)
        });
        let Ok(error) = error.await.map(Arc::new) else { break };
        *last = error.clone();
        // Rules that end the request for the page end that request itself (mod_rewrite.c, hook_fixup).
        if error.by_rules {
            let response = match &error.outcome.stop {
                Some(Stop::Redirect(status, location)) => {
                    return (redirect(*status, location), ResponseSource::Server, error);
                }
                Some(Stop::Status(status, _)) => Refusal::new(*status).into_response(&exchange.head.headers),
                _ => return (refused.unwrap_or(original), ResponseSource::Server, error),
            };
            (refused, decision) = (Some(response), error);
            continue;
        }
        // An error page that is refused too must not lead to another one.
        if error.outcome.stop.is_some() || !error.outcome.access.is_empty() {
            return (refused.unwrap_or(original), ResponseSource::Server, decision);
        }
        let Some((mut made, maker)) = page_of_error(context, exchange, &error, status).await else {
            return (refused.unwrap_or(original), ResponseSource::Server, decision);
        };
        for name in [header::WWW_AUTHENTICATE, header::ALLOW, header::RETRY_AFTER] {
            if let Some(value) = refused.as_ref().unwrap_or(&original).headers().get(&name) {
                made.headers_mut().insert(name, value.clone());
            }
        }
        return (made, maker, error);
    }
    // The error pages form a loop, or the last one could not be evaluated: respond with the first error.
    (original, ResponseSource::Server, first)
}

/// Returns the response to an error without a local page: a text, a redirect to a URL, or the response unchanged.
fn without_page(mut response: Response, document: Option<&ErrorDocument>) -> Response {
    match document {
        Some(ErrorDocument::Text(text)) => {
            *response.body_mut() = Body::full(Bytes::copy_from_slice(text));
            let utf8 = std::str::from_utf8(text).is_ok();
            let kind = if utf8 { "text/html; charset=utf-8" } else { "text/html; charset=iso-8859-1" };
            response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
        }
        // Unauthenticated clients must be asked for a password, not redirected.
        Some(ErrorDocument::Address(address)) if response.status() != StatusCode::UNAUTHORIZED => {
            if let Ok(location) = HeaderValue::from_bytes(address) {
                response = redirect(StatusCode::FOUND, &location);
            }
        }
        _ => {}
    }
    response
}

/// Returns the response of an error page, with the status of the error.
async fn page_of_error<U: Upstream>(
    context: &Context<U>,
    exchange: &mut Exchange,
    error: &Decision,
    status: StatusCode,
) -> Option<(Response, ResponseSource)> {
    change(exchange, error, None);
    let head = Box::new(static_files::page_head(&exchange.head, Method::GET));
    let asked = std::mem::replace(&mut exchange.head, head);
    let made = target(context, exchange, error, RequestBody::none(), true).await;
    exchange.head = asked;
    let (mut made, maker) = made.ok()?;
    if made.status() == StatusCode::OK {
        *made.status_mut() = status;
    }
    Some((made, maker))
}

/// Applies the header directives of `.htaccess` files to the response.
async fn finished(
    exchange: &Exchange,
    path: &[u8],
    decision: Arc<Decision>,
    last: &Decision,
    response: Response,
    maker: ResponseSource,
) -> Response {
    let (mut head, body) = response.into_parts();
    let status = head.status.as_u16();
    decision.response.prepare(&last.response, exchange.time, status, maker, &mut head.headers);
    let made = if decision.response.has_lines() {
        let headers = std::mem::take(&mut head.headers);
        let question = move |_: &Htaccess, facts: &Facts<'_>, machine: &Machine<'_>| {
            decision.response.apply(facts, machine, status, maker, &headers)
        };
        ask(exchange, path, question).await
    } else {
        Ok(std::mem::take(&mut head.headers))
    };
    match made {
        Ok(mut headers) => {
            if status == StatusCode::NOT_MODIFIED {
                headers.remove(header::CONTENT_TYPE);
                headers.remove(header::CONTENT_ENCODING);
            }
            head.headers = headers;
            Response::from_parts(head, body)
        }
        Err(refusal) => {
            tracing::error!(target: "howdah::htaccess", request = %exchange.id, "a Header directive exceeded the pattern limit: the response is 500");
            refusal.into_response(&exchange.head.headers)
        }
    }
}

/// Calls `ask` with the facts about the request that `.htaccess` files may test.
fn with_facts<T>(exchange: &Exchange, path: &[u8], ask: impl FnOnce(&Facts<'_>) -> T) -> T {
    let (site, head, peer): (&Site, _, _) = (&exchange.site, &exchange.head, &exchange.connection.peer);
    let (client, host) = (&exchange.client, exchange.host_text());
    // The port in the `Host` field takes precedence over the connection's.
    let server_port = split_port(host).1.unwrap_or_else(|| client.server_port(peer));
    let facts = Facts {
        method: head.method.as_str(),
        target: head.target.as_bytes(),
        path,
        query: head.target.query(),
        protocol: crate::phase::access_log::protocol(head.version),
        https: client.https,
        host,
        server_addr: &peer.server_addr,
        server_port,
        remote: client.ip,
        remote_port: client.port(peer),
        headers: &head.headers,
        root: site.root.as_os_str().as_bytes(),
        software: &site.server.software,
        time: exchange.time,
    };
    ask(&facts)
}
