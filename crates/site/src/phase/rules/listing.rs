//! The page of a directory without an index, where a rule allows it: names, sizes and times of what could be asked for.

use crate::refusal::Refusal;
use crate::request_path::encode;
use crate::site::Site;
use howdah_protocol::{Body, Response};
use http::{HeaderValue, Method, StatusCode, header};
use std::fmt::Write as _;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::SystemTime;

/// Names on a page; further ones are left out.
const MOST_NAMES: usize = 10_000;

/// The page of a directory that is asked for by `path`.
pub(crate) fn run(site: &Site, directory: &Path, path: &[u8], method: &Method) -> Result<Response, Refusal> {
    if method != Method::GET && method != Method::HEAD {
        return Err(Refusal::new(StatusCode::METHOD_NOT_ALLOWED).allow("GET, HEAD"));
    }
    let entries = std::fs::read_dir(directory).map_err(|_| Refusal::new(StatusCode::NOT_FOUND))?;
    let mut names: Vec<(bool, Vec<u8>, String)> = Vec::new();
    for entry in entries.flatten().take(MOST_NAMES) {
        let name = entry.file_name().as_bytes().to_vec();
        let hidden = name.starts_with(b".") && !site.settings.static_files.dotfiles;
        // Links are followed or not as the settings say; what is withheld is not named.
        let Ok(meta) = std::fs::metadata(entry.path()) else { continue };
        if hidden || site.withheld.by_name(&name) || !(meta.is_dir() || meta.is_file()) {
            continue;
        }
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
        // `./` keeps a name with a colon from being taken for an address of its own.
        let _ = writeln!(
            page,
            "<li><a href=\"./{}{slash}\">{}{slash}</a> {details}</li>",
            encode(&name).replace('&', "&amp;").replace('\'', "%27"),
            escape(&name)
        );
    }
    page.push_str("</ul></body></html>\n");
    let mut response = Response::new(Body::full(page.into()));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    Ok(response)
}

/// Text for HTML.
fn escape(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
