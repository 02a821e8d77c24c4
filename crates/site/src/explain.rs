//! `howdah explain`: which site, file, script and pool a request comes to, and why, found by the code that serves
//! requests, from the settings and the file system alone.

use crate::exchange::Exchange;
use crate::forwarded;
use crate::notes::{Note, Notes};
use crate::phase::limits;
use crate::phase::route::{self, Route};
use crate::phase::rules;
use crate::phase::rules::served::{self, Served};
use crate::request_path::redirect_to;
use crate::ruled::Ruled;
use crate::server_request::{self, Purpose};
use crate::service::files_for;
use crate::site::Site;
use crate::sites::Sites;
use crate::static_files;
use bytes::Bytes;
use howdah_config::{HostPattern, HostRoom, ListenAddr, Origin, normal_host};
use howdah_protocol::{Head, Peer, Target};
use howdah_rules::Stop;
use howdah_rules::trace::Lines;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Version, header};
use std::net::{IpAddr, SocketAddr};

/// The request that is asked about.
#[derive(Debug, Clone)]
pub struct Question {
    /// Its method.
    pub method: String,
    /// `http://host/path?query`, or only the path.
    pub url: String,
    /// Its fields, beside `Host`.
    pub headers: Vec<(String, String)>,
    /// Where it comes from.
    pub client: IpAddr,
}

/// What becomes of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Explanation {
    /// Each step, in order.
    pub notes: Vec<Note>,
    /// The name of the site.
    pub site: Option<String>,
    /// The status, unless a script or another server decides.
    pub status: Option<u16>,
    /// The file that is sent.
    pub file: Option<String>,
    /// Where a redirect leads.
    pub location: Option<String>,
    /// The proxy that it is handed on to.
    pub proxy: Option<String>,
    /// The script that runs.
    pub script: Option<ScriptRun>,
}

/// A script that runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScriptRun {
    /// `SCRIPT_FILENAME`.
    pub filename: String,
    /// `SCRIPT_NAME`.
    pub name: String,
    /// `PATH_INFO`.
    pub path_info: String,
    /// Its pool.
    pub pool: String,
}

/// Explains a request.
///
/// # Errors
/// What is wrong with the question.
pub fn explain(sites: &Sites, question: &Question) -> Result<Explanation, String> {
    let head = head(question)?;
    let (notes, mut found) = (Notes::default(), Explanation::default());
    let peer = listener(sites, question, &head, &notes);
    let mut exchange = server_request::begin(sites, Purpose::Explain, head, peer);
    name_client(&exchange, &notes);
    name_site(sites, &exchange, &notes);
    if !exchange.misdirected {
        found.site = Some(exchange.site.settings.name.clone());
    }
    let refused = match limits::check(&exchange.site.limits, &exchange.head) {
        Err(refusal) => refusal.status(),
        Ok(()) if exchange.misdirected => {
            let status: u16 = sites.server.settings.unknown_host.word().parse().unwrap_or(421);
            StatusCode::from_u16(status).unwrap_or(StatusCode::MISDIRECTED_REQUEST)
        }
        Ok(()) => {
            respond(&mut exchange, &notes, &mut found);
            found.notes = notes.into_inner();
            return Ok(found);
        }
    };
    found.status = Some(refused.as_u16());
    notes.add("response", format!("{refused}, before a path is looked at"));
    found.notes = notes.into_inner();
    Ok(found)
}

fn head(question: &Question) -> Result<Head, String> {
    let target = Target::parse(Bytes::copy_from_slice(question.url.as_bytes()))
        .map_err(|_| format!("{:?} is no address: write http://HOST/PATH, with %20 for a space", question.url))?;
    let method =
        Method::from_bytes(question.method.as_bytes()).map_err(|_| format!("{:?} is no method", question.method))?;
    let mut headers = HeaderMap::new();
    for (name, value) in &question.headers {
        let name: HeaderName = name.parse().map_err(|_| format!("{name:?} is no name of a header"))?;
        let value = HeaderValue::from_str(value).map_err(|_| format!("{value:?} cannot be the value of a header"))?;
        headers.append(name, value);
    }
    let version = if headers.contains_key(header::HOST) || target.authority().is_some() {
        Version::HTTP_11
    } else {
        // Nobody else may leave the host out.
        Version::HTTP_10
    };
    if let Some(authority) = target.authority().filter(|_| !headers.contains_key(header::HOST)) {
        let host =
            HeaderValue::from_bytes(authority).map_err(|_| "the host has letters that no host has".to_owned())?;
        headers.insert(header::HOST, host);
    }
    Ok(Head { method, target, version, headers })
}

/// Which address the request comes to, and from whom.
fn listener(sites: &Sites, question: &Question, head: &Head, notes: &Notes) -> Peer {
    let named = forwarded::named_host(head).map(String::from_utf8_lossy).unwrap_or_default();
    let port = forwarded::split_port(&named).1.and_then(|port| port.parse().ok());
    let port: u16 = port.unwrap_or(if head.target.is_https() { 443 } else { 80 });
    let https = head.target.is_https();
    let of_scheme = |addr: &ListenAddr| match addr {
        ListenAddr::Tcp(addr) => Some(*addr).filter(|_| !https),
        ListenAddr::Https(addr) => Some(*addr).filter(|_| https),
        ListenAddr::Unix(_) => None,
    };
    let settings = &sites.server.settings;
    let fits = settings.listen.iter().filter_map(of_scheme).find(|addr| addr.port() == port);
    let scheme = if https { "https" } else { "http" };
    match fits {
        Some(addr) => notes.add("listener", format!("{addr} with {scheme}, which `listen` names")),
        None => notes.add("listener", format!("no address of `listen` has port {port} for {scheme}; as if one had")),
    }
    let local = SocketAddr::new(fits.map_or(IpAddr::from([127, 0, 0, 1]), |addr| addr.ip()), port);
    let proxies = &settings.http.trusted_proxies;
    let mut peer = Peer::tcp(SocketAddr::new(question.client, 0), local, |peer| forwarded::trusts(proxies, peer));
    peer.https = https;
    peer
}

fn name_client(exchange: &Exchange, notes: &Notes) {
    let peer = &exchange.connection.peer;
    let (shown, client) = (&*peer.addr_text, exchange.client.addr(peer));
    let trusted = if peer.trusted { ", a trusted proxy" } else { "" };
    let by_proxy = if client == shown { String::new() } else { format!(", for {client}") };
    notes.add("client", format!("{shown}{trusted}{by_proxy}"));
}

/// Follows the site's rules, rule by rule; what ends the request there is noted as its response.
fn follow_rules(site: &Site, exchange: &mut Exchange, notes: &Notes, found: &mut Explanation) {
    let mut lines = Lines::default();
    let outcome = rules::evaluate(site, exchange, &mut lines);
    for line in lines.0 {
        notes.add("rule", line);
    }
    let Some(mut outcome) = outcome else { return };
    let stop = outcome.stop.take();
    exchange.ruled = Some(Box::new(Ruled { outcome, ..Ruled::default() }));
    if let Some(stop) = stop {
        ended(stop, notes, found);
    } else if let Err(refusal) = rules::choose_attempt(site, exchange) {
        notes.add("response", format!("{}, from a rule (`try_files`)", refusal.status()));
        found.status = Some(refusal.status().as_u16());
    }
}

/// What a rule ends the request with, as its response.
fn ended(stop: Stop, notes: &Notes, found: &mut Explanation) {
    match stop {
        Stop::Status(status, _) => {
            notes.add("response", format!("{status}, from a rule"));
            found.status = Some(status.as_u16());
        }
        Stop::Redirect(status, location) => {
            notes.add("response", format!("{status}, from a rule"));
            found.status = Some(status.as_u16());
            found.location = Some(String::from_utf8_lossy(location.as_bytes()).into_owned());
        }
        Stop::Maintenance(_) => {
            notes.add("response", "503: a rule says that this is under maintenance");
            found.status = Some(503);
        }
        Stop::Proxy(proxy) => {
            notes.add("response", format!("what the other server says, \"{proxy}\""));
            found.proxy = Some(proxy.to_string());
        }
        Stop::Failed(failure) => {
            notes.add("response", format!("500: the rule {} cannot be followed: {}", failure.rule, failure.reason));
            found.status = Some(500);
        }
    }
}

/// Returns `false` if rules end the request because of the name of what will be served.
fn may_be_served(site: &Site, exchange: &Exchange, route: &Route, notes: &Notes, found: &mut Explanation) -> bool {
    let mut lines = Lines::default();
    let ruled = exchange.ruled.as_ref();
    let path = ruled.and_then(|ruled| ruled.outcome.path.as_deref());
    let stands_in = ruled.is_some_and(|ruled| ruled.tried);
    let judged = served::judge(site, exchange, Served { path, stands_in, route }, &mut lines);
    for line in lines.0 {
        notes.add("rule", format!("for what is served: {line}"));
    }
    let Some(judged) = judged else { return true };
    if let Some(stop) = judged.stop {
        ended(stop, notes, found);
    } else if judged.php == Some(false) && matches!(route, Route::Script(_)) {
        notes.add("response", "403: a rule runs no PHP there");
        found.status = Some(403);
    }
    found.status.is_none()
}

fn name_site(sites: &Sites, exchange: &Exchange, notes: &Notes) {
    let (site, host) = (&exchange.site, exchange.host());
    if exchange.misdirected {
        let shown = host.map(String::from_utf8_lossy);
        let host = shown.map_or_else(|| "a request without a host".to_owned(), |host| format!("\"{host}\""));
        notes.add("site", format!("none: no site is for {host}, and none for \"default\""));
    } else if sites.only().is_some() {
        notes.add("site", format!("\"{}\", the only one, for every host", site.settings.name));
    } else {
        let mut room: HostRoom = [0; _];
        let host = host.and_then(|host| normal_host(host, &mut room)).map(String::from_utf8_lossy).unwrap_or_default();
        let fits = |pattern: &&HostPattern| pattern.fits(&host);
        // A name counts before a star, and the longest first.
        let why = site.settings.hosts.iter().filter(fits).max_by_key(|pattern| match pattern {
            HostPattern::Exact(_) => usize::MAX,
            HostPattern::Below(name) => name.len() + 1,
            HostPattern::Any => 0,
        });
        let why = why.map(ToString::to_string).unwrap_or_default();
        let place = &site.settings.origin;
        let place = if *place == Origin::Default { String::new() } else { format!(", {place}") };
        notes.add("site", format!("\"{}\", whose hosts have \"{why}\"{place}", site.settings.name));
    }
}

fn respond(exchange: &mut Exchange, notes: &Notes, found: &mut Explanation) {
    let site = &*exchange.site.clone();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let pinned = site.settings.server_name.as_deref();
    match site.https.redirect(&exchange.head, &exchange.connection.peer, &exchange.client, pinned) {
        Ok(None) => {}
        Ok(Some(response)) => {
            notes.add("response", "a redirect to TLS (`tls.redirect`)");
            found.status = Some(response.status().as_u16());
            let location = response.headers().get(header::LOCATION);
            found.location = location.map(|location| String::from_utf8_lossy(location.as_bytes()).into_owned());
            return;
        }
        Err(refusal) => {
            notes.add("response", format!("{}: no host, which a redirect to HTTPS needs", refusal.status()));
            found.status = Some(refusal.status().as_u16());
            return;
        }
    }
    notes.add("root", site.root.display().to_string());
    if exchange.head.target.path() == b"*" && exchange.head.method == Method::OPTIONS {
        notes.add("response", "200: OPTIONS * is about the server as a whole");
        found.status = Some(200);
        return;
    }
    follow_rules(site, exchange, notes, found);
    if found.status.is_some() || found.proxy.is_some() {
        return;
    }
    let (head, path) = (&exchange.head, exchange.head.target.path());
    let lookup = rules::lookup(site, exchange);
    let route = route::explain(site, path, &lookup, notes);
    if !may_be_served(site, exchange, &route, notes, found) {
        return;
    }
    let status = match route {
        Route::Script(script) => {
            let pools = &site.server.settings.pools;
            let shown = |at: usize| pools.get(at).map(|pool| (pool.name.clone(), pool.mode)).unwrap_or_default();
            let (mut pool, mode) = shown(script.pool);
            let ahead = site
                .ahead
                .as_ref()
                .filter(|ahead| ahead.includes(head.method.as_str().as_bytes(), head.target.as_bytes(), known(head)));
            match ahead.and_then(|ahead| ahead.for_script(script.pool, &script.filename)).map(shown) {
                Some((booted, in_mode)) => {
                    notes.add("pool", format!("\"{booted}\", mode \"{in_mode}\": the recipe has booted this script; while it does not serve, \"{pool}\", mode \"{mode}\""));
                    pool = booted;
                }
                None => notes.add("pool", format!("\"{pool}\", mode \"{mode}\"{}", why_there(site, path))),
            }
            notes.add("response", "what the script prints");
            found.script = Some(ScriptRun {
                filename: text(&script.filename),
                name: text(&script.name),
                path_info: text(&script.path_info),
                pool,
            });
            return;
        }
        Route::File(file) => {
            let (files, name) = files_for(site, &lookup, &file.name);
            let sent = static_files::run(files, name, &file.path, head);
            found.file = Some(file.path.display().to_string());
            match sent {
                Ok(Some(response)) => response.status(),
                Ok(None) => StatusCode::NOT_FOUND,
                Err(refusal) => refusal.status(),
            }
        }
        Route::Proxy(to) => {
            let proxy = site.server.settings.proxies.get(to.proxy).map(|proxy| proxy.name.clone()).unwrap_or_default();
            notes.add("proxy", format!("\"{proxy}\"{}", why_there(site, path)));
            notes.add("response", "what that server says");
            found.proxy = Some(proxy);
            return;
        }
        Route::AddSlash(path) => {
            found.location = Some(redirect_to(&path, head.target.query()));
            let safe = head.method == Method::GET || head.method == Method::HEAD;
            if safe { StatusCode::MOVED_PERMANENTLY } else { StatusCode::PERMANENT_REDIRECT }
        }
        Route::Listing(_) => {
            notes.add("route", "its list, as a rule says (`listing`)");
            StatusCode::OK
        }
        Route::NotFound => StatusCode::NOT_FOUND,
        Route::Unknown => StatusCode::SERVICE_UNAVAILABLE,
        Route::Forbidden => StatusCode::FORBIDDEN,
        Route::Invalid(_) => StatusCode::BAD_REQUEST,
    };
    notes.add("response", status.to_string());
    found.status = Some(status.as_u16());
}

/// What a request says of who has sent it, as variables of CGI.
fn known(head: &Head) -> impl Iterator<Item = (&[u8], &[u8])> {
    let named = [(header::COOKIE, "HTTP_COOKIE"), (header::AUTHORIZATION, "HTTP_AUTHORIZATION")];
    named.into_iter().flat_map(|(field, name)| {
        head.headers.get_all(field).iter().map(move |value| (name.as_bytes(), value.as_bytes()))
    })
}

/// Why a path goes to its pool or proxy.
fn why_there(site: &Site, path: &[u8]) -> String {
    let path = crate::request_path::decode(path).and_then(|plain| crate::request_path::normalise(&plain));
    let path = path.unwrap_or_default();
    match site.settings.routes.iter().find(|route| route.pattern.matches(&path)) {
        Some(route) => format!(", by the route for \"{}\"", route.pattern.as_str()),
        None => ", the site's own".to_owned(),
    }
}
