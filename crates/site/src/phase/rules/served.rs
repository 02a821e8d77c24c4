//! **Access is judged on what will be served.** Rules were followed with the path that was asked for; what it leads to may
//! have another name: a script has the rest of the path behind it, a directory an index, a page a front controller, a
//! rewrite (of a rule, of `try_files`, of an `.htaccess` file) another path, a link another file. The rules that protect
//! are followed once more with these names (`Rules::judge`). Where the name is the path, that costs a comparison.
//!
//! Another server reads a path its own way: many (Java's) cut what follows `;` in each segment before they resolve `..`,
//! many take `/x/` for `/x`. So its rules are followed with the path read like that, too.
//!
//! A file that a script hands over (`X-Accel-Redirect`, `X-Sendfile`) is that script's decision, and is not judged.

use super::{SiteFiles, access, end, with_request};
use crate::exchange::Exchange;
use crate::refusal::Refusal;
use crate::request_path::plain_path;
use crate::route::{Route, Script};
use crate::ruled::{Lookup, Ruled};
use crate::site::Site;
use howdah_protocol::Response;
use howdah_rules::trace::Trace;
use howdah_rules::{Name, Outcome};
use http::StatusCode;
use std::os::unix::ffi::OsStrExt;

/// The destination of a request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Served<'a> {
    /// The path that its route was found for: decoded and normalised. None: the one that was asked for.
    pub path: Option<&'a [u8]>,
    /// The settings name it for every request of its kind (`try_files`, an error page).
    pub stands_in: bool,
    /// Its route; `None` for another server.
    pub route: Option<&'a Route>,
}

/// Applies rules to what will be served, if that has another name than the one they matched. Almost always there is
/// nothing to apply.
pub(crate) fn judge(
    site: &Site,
    exchange: &Exchange,
    served: Served<'_>,
    trace: &mut impl Trace,
) -> Option<Box<Outcome>> {
    // Rules that protect nothing by its path are the usual case.
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

/// Does what was said of a name: who may come in, then what ends the request, which is the response. The rest of what rules
/// have settled stays as it was.
pub(crate) async fn act(
    site: &Site,
    exchange: &mut Exchange,
    outcome: Box<Outcome>,
    route: Option<&Route>,
) -> Result<Option<Response>, Refusal> {
    let Outcome { access, php, stop, judged, .. } = *outcome;
    exchange.ruled.get_or_insert_with(|| Box::new(Ruled::default())).outcome.judged.extend(&judged);
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

/// Calls `then` with the names that rules have not been asked about, and the path that was asked for, if there are any.
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
    // Rules before a rewrite were asked about the path before it, and those behind it about the one after.
    let rewritten = first.is_some_and(|first| first.path.is_some()) || path != &*asked;
    let folded = served.route.is_none().then(|| folded(path)).flatten();
    if !rewritten && name == path && real.is_none() && folded.is_none() {
        return None;
    }
    let lookup = first.map_or_else(Lookup::default, |first| Lookup::new(site, first));
    let front = script.filter(|script| is_front_controller(site, &lookup, script));
    let beside = front.filter(|script| !script.path_info.is_empty()).map(beside);
    let stands_in = served.stands_in || front.is_some() || is_index(site, &lookup, name, &asked);
    let name_of = |path, elsewhere| Name { path, elsewhere, served: true };
    let names = [
        // A name that a rewrite has hidden from later rules, but that the application sees.
        rewritten.then_some(Name { path: &asked, elsewhere: false, served: false }),
        rewritten.then(|| name_of(path, !stands_in)),
        (name != path).then(|| name_of(name, false)),
        beside.as_deref().filter(|path| rewritten || *path != &*asked).map(|path| name_of(path, false)),
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

/// `true` if a script stands for all paths without a file.
fn is_front_controller(site: &Site, lookup: &Lookup<'_>, script: &Script) -> bool {
    let named = match lookup.front_controller {
        Some(named) => named.map(|name| &**name),
        None => site.settings.front_controller.as_deref(),
    };
    let named = named.is_some_and(|named| script.name[1..] == *named.trim_start_matches('/').as_bytes());
    let pool = site.server.settings.pools.get(script.pool);
    named || pool.and_then(|pool| pool.script.as_ref()).is_some_and(|own| own.as_os_str().as_bytes() == script.filename)
}

/// `true` if a name is the index of the requested directory, or of the root, as applications write it in their
/// `.htaccess` files.
fn is_index(site: &Site, lookup: &Lookup<'_>, name: &[u8], asked: &[u8]) -> bool {
    let indexes = lookup.index.map_or(&*site.settings.index, |index| index);
    let at = name.iter().rposition(|&b| b == b'/').map_or(0, |at| at + 1);
    let is_index = indexes.iter().any(|index| index.as_bytes() == &name[at..]);
    is_index && (at <= 1 || &name[..at] == asked)
}

/// The path that a front controller takes `/index.php/x` for: `/x`.
fn beside(script: &Script) -> Vec<u8> {
    let at = script.name.iter().rposition(|&b| b == b'/').unwrap_or(0);
    [&script.name[..at], &script.path_info].concat()
}

/// The path that servers take this one for which know parameters of segments and no slash at the end. None: the same.
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
