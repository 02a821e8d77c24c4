//! **Access is checked on the destination.** The rules were evaluated with the requested path, but the destination
//! may have another name: a script without its `PATH_INFO`, a directory's index, a front controller, the path after a
//! rewrite (by a rule, `try_files` or `.htaccess`), or the target of a link. The rules that protect paths are evaluated
//! again with these names (`Rules::judge`). If the name equals the requested path, that costs one comparison.
//!
//! An upstream server may interpret a path differently: many, Java's for example, strip everything after `;` in each
//! segment before they resolve `..`, and many treat `/x/` as `/x`. So rules are also evaluated with the path in that
//! form.
//!
//! A file that a script hands over (`X-Accel-Redirect`, `X-Sendfile`) is the script's decision and is not checked.

use super::{SiteFiles, access, end, with_request};
use crate::applied_rules::{AppliedRules, Lookup};
use crate::exchange::Exchange;
use crate::refusal::Refusal;
use crate::request_path::plain_path;
use crate::route::{Route, Script};
use crate::site::Site;
use howdah_protocol::Response;
use howdah_rules::trace::Trace;
use howdah_rules::{Name, Outcome};
use http::StatusCode;
use std::os::unix::ffi::OsStrExt;

/// The destination of a request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Served<'a> {
    /// The decoded and normalised path that the route was found for; `None` for the requested path.
    pub path: Option<&'a [u8]>,
    /// `true` if the settings chose the path, not the client (`try_files`, an error page).
    pub stands_in: bool,
    /// Its route; `None` for an upstream server.
    pub route: Option<&'a Route>,
}

/// Evaluates the rules for the destination, if its name differs from the requested path. Usually returns `None`.
pub(crate) fn judge(
    site: &Site,
    exchange: &Exchange,
    served: Served<'_>,
    trace: &mut impl Trace,
) -> Option<Box<Outcome>> {
    // Usually no rule protects a path.
    if !site.settings.rules.protect() {
        return None;
    }
    let first = exchange.ruled.as_ref().map(|ruled| &*ruled.outcome);
    with_names(site, exchange.head.target.path(), first, served, |names, path| {
        with_request(site, exchange, path, exchange.query(), |request| {
            site.settings.rules.judge(request, names, first, &SiteFiles(site), trace)
        })
    })
}

/// Applies the outcome for the destination: access control first, then a response that ends the request. The other
/// settings of the first evaluation stay unchanged.
pub(crate) async fn act(
    site: &Site,
    exchange: &mut Exchange,
    outcome: Box<Outcome>,
    route: Option<&Route>,
) -> Result<Option<Response>, Refusal> {
    let Outcome { access, php, stop, judged, .. } = *outcome;
    exchange.ruled.get_or_insert_with(|| Box::new(AppliedRules::default())).outcome.judged.extend(&judged);
    for asked in if exchange.asks_for_access() { access } else { Vec::new() } {
        access::ask(site, exchange, asked).await?;
    }
    match stop {
        Some(stop) => end(exchange, stop).map(Some),
        None if php == Some(false) && matches!(route, Some(Route::Script(_))) => {
            Err(Refusal::new(StatusCode::FORBIDDEN))
        }
        None => Ok(None),
    }
}

/// Calls `then` with the requested path and the names that the rules have not seen yet, if there are any.
fn with_names<T>(
    site: &Site,
    raw: &[u8],
    first: Option<&Outcome>,
    served: Served<'_>,
    then: impl FnOnce(&[Name<'_>], &[u8]) -> Option<T>,
) -> Option<T> {
    let asked = plain_path(raw).ok()?;
    let path = served.path.unwrap_or(&asked);
    let (name, real, script) = match served.route {
        Some(Route::Script(script)) => (&*script.name, script.real.as_deref(), Some(script)),
        Some(Route::File(file)) => (&*file.name, file.real.as_deref(), None),
        Some(Route::Listing(_)) | None => (path, None, None),
        Some(Route::AddSlash(_) | Route::NotFound | Route::Unknown | Route::Forbidden | Route::Invalid(_)) => {
            return None;
        }
    };
    // Rules before a rewrite have seen the path before it; rules after a rewrite, the path after it.
    let rewritten = first.is_some_and(|first| first.path.is_some()) || path != &*asked;
    let folded = served.route.is_none().then(|| folded(path)).flatten();
    if !rewritten && name == path && real.is_none() && folded.is_none() {
        return None;
    }
    let lookup = first.map_or_else(Lookup::default, |first| Lookup::new(site, first));
    let front = script.filter(|script| is_front_controller(site, &lookup, script));
    let seen_path = front.filter(|script| !script.path_info.is_empty()).map(seen_path);
    let stands_in = served.stands_in || front.is_some() || is_index(site, &lookup, name, &asked);
    let name_of = |path, elsewhere| Name { path, elsewhere, served: true };
    let names = [
        // The application sees the requested path, but rules after the rewrite have not.
        rewritten.then_some(Name { path: &asked, elsewhere: false, served: false }),
        rewritten.then(|| name_of(path, !stands_in)),
        (name != path).then(|| name_of(name, false)),
        seen_path.as_deref().filter(|path| rewritten || *path != &*asked).map(|path| name_of(path, false)),
        real.map(|path| name_of(path, front.is_none())),
        folded.as_deref().map(|path| name_of(path, false)),
    ];
    let mut found = [name_of(path, false); 6];
    let mut count = 0;
    for (place, name) in found.iter_mut().zip(names.into_iter().flatten()) {
        *place = name;
        count += 1;
    }
    then(&found[..count], &asked)
}

/// `true` if a script handles all paths that name no file.
fn is_front_controller(site: &Site, lookup: &Lookup<'_>, script: &Script) -> bool {
    let named = match lookup.front_controller {
        Some(named) => named.map(|name| &**name),
        None => site.settings.front_controller.as_deref(),
    };
    let named = named.is_some_and(|named| script.name[1..] == *named.trim_start_matches('/').as_bytes());
    let pool = site.server.settings.pools.get(script.pool);
    named || pool.and_then(|pool| pool.script.as_ref()).is_some_and(|own| own.as_os_str().as_bytes() == script.filename)
}

/// `true` if a name is the index of the requested directory, or of the root as in applications' `.htaccess` files.
fn is_index(site: &Site, lookup: &Lookup<'_>, name: &[u8], asked: &[u8]) -> bool {
    let indexes = lookup.index.map_or(&*site.settings.index, |index| index);
    let at = name.iter().rposition(|&b| b == b'/').map_or(0, |at| at + 1);
    let is_index = indexes.iter().any(|index| index.as_bytes() == &name[at..]);
    is_index && (at <= 1 || &name[..at] == asked)
}

/// Returns the path that a front controller sees for `/index.php/x`: `/x`.
fn seen_path(script: &Script) -> Vec<u8> {
    let at = script.name.iter().rposition(|&b| b == b'/').unwrap_or(0);
    [&script.name[..at], &script.path_info].concat()
}

/// Returns the path as seen by servers that strip segment parameters (`;x`) and trailing slashes; `None` if unchanged.
fn folded(path: &[u8]) -> Option<Vec<u8>> {
    if !path.contains(&b';') && (path.len() < 2 || !path.ends_with(b"/")) {
        return None;
    }
    let mut segments = Vec::new();
    for segment in path.split(|&b| b == b'/') {
        match segment.split(|&b| b == b';').next().unwrap_or_default() {
            b"" | b"." => {}
            b".." => drop(segments.pop()),
            named => segments.push(named),
        }
    }
    let folded = [b"/", &*segments.join(&b'/')].concat();
    (folded != path).then_some(folded)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_folded_as_servers_with_parameters_read_it() {
        for (path, expected) in [
            ("/a/b", None),
            ("/", None),
            ("/a/", Some("/a")),
            ("/a;x/b", Some("/a/b")),
            ("/x/..;/a", Some("/a")),
            ("/;/a;b=c;d/", Some("/a")),
            ("/x/;a/..;x=/y", Some("/y")),
            ("/..;/..;/a", Some("/a")),
            (";", Some("/")),
        ] {
            assert_eq!(folded(path.as_bytes()).as_deref(), expected.map(str::as_bytes), "{path}");
        }
    }
}
