//! `howdah explain`: which site, file, script and pool a request comes to, and why, found by the code that serves
//! requests, from the settings and the file system alone.

use crate::forwarded;
use crate::notes::{Note, Notes};
use crate::phase::limits;
use crate::phase::route::{self, Route};
use crate::phase::rules;
use crate::phase::rules::served::{self, Served};
use crate::refusal::Refusal;
use crate::request_path::redirect_to;
use crate::ruled::Lookup;
use crate::service::files_for;
use crate::site::Site;
use crate::sites::{Found, Sites};
use crate::static_files;
use bytes::Bytes;
use howdah_config::{HostPattern, HostRoom, ListenAddr, Origin, normal_host};
use howdah_protocol::{Head, Peer, Target};
use howdah_rules::trace::Lines;
use howdah_rules::{Outcome, Stop};
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
    let site = site(sites, &head, &peer, &notes);
    let refused = match site {
        Found::Nobody(site) => limits::check(&site.limits, &head).err().unwrap_or_else(|| {
            let status: u16 = sites.server.settings.unknown_host.word().parse().unwrap_or(421);
            Refusal::new(StatusCode::from_u16(status).unwrap_or(StatusCode::MISDIRECTED_REQUEST))
        }),
        Found::Site(site) => {
            found.site = Some(site.settings.name.clone());
            match limits::check(&site.limits, &head) {
                Ok(()) => {
                    respond(site, &head, &peer, &notes, &mut found);
                    found.notes = notes.into_inner();
                    return Ok(found);
                }
                Err(refusal) => refusal,
            }
        }
    };
    found.status = Some(refused.status().as_u16());
    notes.add("response", format!("{}, before a path is looked at", refused.status()));
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
    let client = forwarded::client(&peer, &head.headers, &settings.http);
    let trusted = if peer.trusted { ", a trusted proxy" } else { "" };
    let by_proxy = if *client.addr == *peer.addr_text { String::new() } else { format!(", for {}", client.addr) };
    notes.add("client", format!("{}{trusted}{by_proxy}", peer.addr_text));
    peer
}

/// What the site's rules say, rule by rule; what ends the request there is noted as its response.
fn ruled(site: &Site, head: &Head, peer: &Peer, notes: &Notes, found: &mut Explanation) -> Option<Box<Outcome>> {
    let mut lines = Lines::default();
    let mut outcome = rules::explain(site, head, peer, &mut lines);
    for line in lines.0 {
        notes.add("rule", line);
    }
    if let Some(stop) = outcome.as_mut().and_then(|outcome| outcome.stop.take()) {
        ended(stop, notes, found);
    }
    outcome
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

/// What rules say of what will be served, where that has another name than the path; false if the request ends there.
fn named(
    site: &Site,
    head: &Head,
    peer: &Peer,
    outcome: Option<&Outcome>,
    route: &Route,
    notes: &Notes,
    found: &mut Explanation,
) -> bool {
    let mut lines = Lines::default();
    let path = outcome.and_then(|outcome| outcome.path.as_deref());
    let judged = served::explain(site, head, peer, outcome, Served { path, stands_in: false, route }, &mut lines);
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

fn site<'a>(sites: &'a Sites, head: &Head, peer: &Peer, notes: &Notes) -> Found<'a> {
    let client = forwarded::client(peer, &head.headers, &sites.server.settings.http);
    let host = forwarded::host(head, &client);
    let shown = host.map(String::from_utf8_lossy);
    let found = sites.only().map_or_else(|| sites.find(host), Found::Site);
    match found {
        Found::Nobody(_) => {
            let host = shown.map_or_else(|| "a request without a host".to_owned(), |host| format!("\"{host}\""));
            notes.add("site", format!("none: no site is for {host}, and none for \"default\""));
        }
        Found::Site(site) if sites.only().is_some() => {
            notes.add("site", format!("\"{}\", the only one, for every host", site.settings.name));
        }
        Found::Site(site) => {
            let mut room: HostRoom = [0; _];
            let host =
                host.and_then(|host| normal_host(host, &mut room)).map(String::from_utf8_lossy).unwrap_or_default();
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
    found
}

fn respond(site: &Site, head: &Head, peer: &Peer, notes: &Notes, found: &mut Explanation) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let pinned = site.settings.server_name.as_deref();
    match site.https.redirect(head, peer, &site.server.settings.http, pinned) {
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
    let path = head.target.path();
    if path == b"*" && head.method == Method::OPTIONS {
        notes.add("response", "200: OPTIONS * is about the server as a whole");
        found.status = Some(200);
        return;
    }
    let outcome = ruled(site, head, peer, notes, found);
    if found.status.is_some() || found.proxy.is_some() {
        return;
    }
    let lookup = outcome.as_deref().map_or_else(Lookup::default, |outcome| Lookup::new(site, outcome));
    let route = route::explain(site, path, &lookup, notes);
    if !named(site, head, peer, outcome.as_deref(), &route, notes, found) {
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
