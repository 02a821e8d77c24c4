//! The listing of a directory without an index file, if a rule or `.htaccess` file allows it: names, sizes, times.
//!
//! Listings are made on separate threads and cached for a short time (`listings`).

use crate::listings::Page;
use crate::refusal::Refusal;
use crate::request_path::encode;
use crate::site::Site;
use crate::static_files::StaticFiles;
use bytes::Bytes;
use howdah_htaccess::Unlisted;
use howdah_protocol::{Body, Response};
use howdah_rules::Place;
use http::{HeaderValue, Method, StatusCode, header};
use std::fmt::Write as _;
use std::fs::{DirEntry, Metadata};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Instant, SystemTime};

/// Maximum number of entries of a directory that are read; further ones are omitted.
const MAX_NAMES: usize = 10_000;
/// Returns the listing of a directory that was requested as `path`, which may lie in the `place` that rules name.
pub(crate) async fn run(
    site: &Arc<Site>,
    place: Option<Arc<Place>>,
    directory: &Path,
    path: Vec<u8>,
    method: &Method,
    unlisted: Unlisted,
) -> Result<Response, Refusal> {
    if method != Method::GET && method != Method::HEAD {
        return Err(Refusal::new(StatusCode::METHOD_NOT_ALLOWED).allow("GET, HEAD"));
    }
    let changed = std::fs::metadata(directory).and_then(|meta| meta.modified());
    let changed = changed.map_err(|_| Refusal::new(StatusCode::NOT_FOUND))?;
    let key = (directory.to_owned(), path);
    let text = match site.listings.get(&key, changed) {
        Some(text) => text,
        None => {
            let own = site.clone();
            let made = site.blocking.run(move || {
                // Another request for the same listing may have been ahead of this one in the queue.
                if let Some(text) = own.listings.get(&key, changed) {
                    return Ok(text);
                }
                let text = Bytes::from(page(&own, place.as_deref(), &key.0, &key.1, &unlisted)?);
                own.listings.keep(Page { key, changed, made: Instant::now(), text: text.clone() });
                Ok::<_, io::Error>(text)
            });
            made.await?.map_err(|_| Refusal::new(StatusCode::NOT_FOUND))?
        }
    };
    let mut response = Response::new(Body::full(text));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    Ok(response)
}

fn page(site: &Site, place: Option<&Place>, directory: &Path, path: &[u8], unlisted: &Unlisted) -> io::Result<String> {
    let own = (&site.static_files, site.root.as_path());
    let of_place = place.filter(|_| !directory.starts_with(&site.root));
    let (files, root) = of_place.map_or(own, |place| (site.files_of(place), place.directory.as_path()));
    let real_root = root.canonicalize()?;
    let mut names: Vec<(bool, Vec<u8>, String)> = Vec::new();
    for entry in std::fs::read_dir(directory)?.flatten().take(MAX_NAMES) {
        let name = entry.file_name().as_bytes().to_vec();
        let hidden = name.starts_with(b".") && !site.settings.static_files.dotfiles;
        if hidden || site.withheld.by_name(&name) || unlisted.hides(&name) {
            continue;
        }
        let Some(meta) = metadata(&entry, files, root, &real_root).filter(|meta| meta.is_dir() || meta.is_file())
        else {
            continue;
        };
        let time = meta.modified().map(|time| httpdate::fmt_http_date(time.max(SystemTime::UNIX_EPOCH)));
        let size = if meta.is_dir() { String::new() } else { format!("{} bytes, ", meta.len()) };
        names.push((!meta.is_dir(), name, format!("{size}{}", time.unwrap_or_default())));
    }
    names.sort();
    let title = escape(path);
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title}</title></head>\n<body><h1>{title}</h1>\n<ul>\n"
    );
    if path != b"/" {
        page.push_str("<li><a href=\"../\">..</a></li>\n");
    }
    for (is_file, name, details) in names {
        let slash = if is_file { "" } else { "/" };
        // `./` keeps a name with a colon from being parsed as a URL.
        let _ = writeln!(
            page,
            "<li><a href=\"./{}{slash}\">{}{slash}</a> {details}</li>",
            encode(&name).replace('&', "&amp;").replace('\'', "%27"),
            escape(&name)
        );
    }
    page.push_str("</ul></body></html>\n");
    Ok(page)
}

/// Returns the metadata of an entry; for a link, that of its target if a request would follow the link.
fn metadata(entry: &DirEntry, files: &StaticFiles, root: &Path, real_root: &Path) -> Option<Metadata> {
    let meta = entry.metadata().ok()?;
    if !meta.is_symlink() {
        return Some(meta);
    }
    let path = entry.path();
    let (below, real) = (path.strip_prefix(root).ok()?, path.canonicalize().ok()?);
    if files.links().allow(real_root, below, &real) { std::fs::metadata(real).ok() } else { None }
}

/// Escapes text for HTML.
fn escape(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
