//! The same requests through this crate, with as little of a server around it as it takes.

use crate::{Outcome, Request};
use howdah_htaccess::{Decision, Entry, ErrorDocument, Facts, Htaccess, Kind, Maker, Stamp, World};
use howdah_rules::auth::Asked;
use howdah_rules::outcome::{Access, Stop};
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Instant, SystemTime};

struct Disk;

impl World for Disk {
    fn look(&self, path: &[u8]) -> Option<Entry> {
        let meta = fs::metadata(OsStr::from_bytes(path)).ok()?;
        let kind = match (meta.is_file(), meta.is_dir()) {
            (true, _) => Kind::File,
            (_, true) => Kind::Directory,
            _ => Kind::Other,
        };
        let stamp = Stamp { file: (meta.dev(), meta.ino()), changed: (meta.mtime(), meta.mtime_nsec()) };
        Some(Entry { kind, size: meta.len(), executable: meta.mode() & 0o111 != 0, stamp })
    }

    fn is_link(&self, path: &[u8]) -> bool {
        fs::symlink_metadata(OsStr::from_bytes(path)).is_ok_and(|meta| meta.is_symlink())
    }

    fn read(&self, path: &[u8], _most: usize) -> std::io::Result<Vec<u8>> {
        fs::read(OsStr::from_bytes(path))
    }

    fn environment(&self, _name: &str) -> Option<String> {
        None
    }

    fn is_shared(&self) -> bool {
        false
    }
}

fn decoded(path: &str) -> Vec<u8> {
    let mut made = Vec::new();
    let mut bytes = path.bytes();
    while let Some(byte) = bytes.next() {
        if byte == b'%' {
            let digits = [bytes.next().unwrap(), bytes.next().unwrap()];
            made.push(u8::from_str_radix(std::str::from_utf8(&digits).unwrap(), 16).unwrap());
        } else {
            made.push(byte);
        }
    }
    made
}

pub(crate) fn ask(host: &str, port: u16, root: &Path, request: &Request, compare: &[String]) -> Outcome {
    let port = port.to_string();
    let mut headers = HeaderMap::new();
    headers.insert(header::HOST, HeaderValue::from_str(host).unwrap());
    for (name, value) in &request.headers {
        headers.append(name.parse::<HeaderName>().unwrap(), HeaderValue::from_str(value).unwrap());
    }
    let (path, query) = request.target.split_once('?').map_or((request.target.as_str(), None), |(p, q)| (p, Some(q)));
    let path = decoded(path);
    let facts = Facts {
        method: &request.method,
        target: request.target.as_bytes(),
        path: &path,
        query: query.map(str::as_bytes),
        protocol: "HTTP/1.1",
        https: false,
        host,
        server_addr: "127.0.0.1",
        server_port: &port,
        remote: Some([127, 0, 0, 1].into()),
        remote_port: "1",
        headers: &headers,
        root: root.as_os_str().as_bytes(),
        software: "Apache",
        time: SystemTime::now(),
    };
    let htaccess = Htaccess::new(".htaccess", true);
    let decision = htaccess.decide(&facts, &Disk, Instant::now()).unwrap();
    let mut made = Outcome::new();
    let (status, user) = settle(&decision, &facts);
    let mut shown = Shown { made: &mut made, root, compare, user };
    shown.show(&htaccess, &facts, &decision, status, request.target.as_str());
    made
}

/// The status, and who came in.
fn settle(decision: &Decision, facts: &Facts<'_>) -> (u16, Option<String>) {
    let mut user = None;
    for access in &decision.outcome.access {
        let Access::Auth(auth) = access else { continue };
        let name = match auth.ask(facts.headers.get(header::AUTHORIZATION), Instant::now()) {
            Asked::Refused => None,
            Asked::User(name) => Some(name),
            Asked::Verify(verification) => verification.run(),
        };
        match name {
            Some(name) => user = Some(name.to_string()),
            None => return (401, None),
        }
    }
    let status = match &decision.outcome.stop {
        Some(Stop::Status(status, _) | Stop::Redirect(status, _)) => status.as_u16(),
        Some(Stop::Failed(_)) => 500,
        Some(_) => 0,
        None => match decision.found {
            Some(Kind::File) if decision.response.path().rsplit(|b| *b == b'/').next().unwrap().starts_with(b".ht") => {
                403
            }
            Some(Kind::File) => 200,
            Some(_) => 403,
            None => 404,
        },
    };
    (status, user)
}

struct Shown<'a> {
    made: &'a mut Outcome,
    root: &'a Path,
    compare: &'a [String],
    user: Option<String>,
}

impl Shown<'_> {
    fn put(&mut self, name: &str, value: impl AsRef<[u8]>) {
        self.made.insert(name.to_owned(), String::from_utf8_lossy(value.as_ref()).into_owned());
    }

    fn show(&mut self, htaccess: &Htaccess, facts: &Facts<'_>, decision: &Decision, status: u16, uri: &str) {
        self.put("status", status.to_string());
        let mut headers = HeaderMap::new();
        let mut maker = Maker::Server;
        if let Some(Stop::Redirect(_, location)) = &decision.outcome.stop {
            headers.insert(header::LOCATION, location.clone());
        } else if status == 200 {
            maker = self.respond(decision, facts, &mut headers, uri, "");
        } else if let Some(document) = decision.error_document(status) {
            match document {
                ErrorDocument::Text(text) => self.put("body", text),
                ErrorDocument::Address(address) => {
                    self.put("status", "302");
                    headers.insert(header::LOCATION, HeaderValue::from_str(address).unwrap());
                }
                ErrorDocument::Path(page) => {
                    let now = Instant::now();
                    let error = htaccess.decide_error(facts, &Disk, now, page, &decision.response, status).unwrap();
                    if error.found == Some(Kind::File) && error.outcome.stop.is_none() {
                        let maker = self.respond(&error, facts, &mut headers, uri, &status.to_string());
                        self.finish(&error, facts, status, maker, headers);
                        return;
                    }
                }
                ErrorDocument::Usual => {}
            }
        }
        self.finish(decision, facts, status, maker, headers);
    }

    fn finish(&mut self, decision: &Decision, facts: &Facts<'_>, status: u16, maker: Maker, mut headers: HeaderMap) {
        decision.response.prepare(facts.time, status, maker, &mut headers);
        self.headers(&decision.response.apply(facts, &Disk, status, maker, &headers).unwrap());
    }

    fn headers(&mut self, headers: &HeaderMap) {
        let ok = self.made.get("status").is_some_and(|status| status == "200");
        for name in headers.keys().filter(|name| ok || **name != header::CONTENT_TYPE) {
            let text = name.as_str();
            if text == "location" || text.starts_with("x-") || self.compare.iter().any(|wanted| wanted == text) {
                let values: Vec<_> = headers.get_all(name).iter().map(HeaderValue::as_bytes).collect();
                self.put(text, values.join(&b", "[..]));
            }
        }
    }

    /// What a script or a file responds.
    fn respond(
        &mut self,
        decision: &Decision,
        facts: &Facts<'_>,
        headers: &mut HeaderMap,
        uri: &str,
        error: &str,
    ) -> Maker {
        let name = decision.response.path().to_vec();
        let php = decision.outcome.php.unwrap_or_else(|| name.ends_with(b".php") || contains(&name, b".php/"));
        let (script, info) = split_script(&name);
        if !php {
            let kinds = [
                (&b".html"[..], "text/html"),
                (b".txt", "text/plain"),
                (b".css", "text/css"),
                (b".js", "text/javascript"),
                (b".svg", "image/svg+xml"),
                (b".woff2", "font/woff2"),
            ];
            let kind = kinds.iter().find(|(ending, _)| contains(&name, ending)).map_or("", |(_, kind)| kind);
            if !kind.is_empty() {
                headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
            }
            headers.insert(header::LAST_MODIFIED, HeaderValue::from_str(&httpdate::fmt_http_date(facts.time)).unwrap());
            let content = fs::read(self.root.join(OsStr::from_bytes(&name[1..]))).unwrap_or_default();
            self.put("body", content.trim_ascii());
            return Maker::File;
        }
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=UTF-8"));
        self.put("script", script);
        self.put("info", info);
        let query = match &decision.outcome.query {
            Some(query) => query.clone().unwrap_or_default(),
            None => facts.query.unwrap_or_default().to_vec(),
        };
        self.put("query", query);
        self.put("uri", uri);
        let variables = &decision.outcome.variables;
        let status = variables.iter().find(|(name, _)| **name == *"REDIRECT_STATUS").map_or("", |(_, value)| value);
        self.put("redirect-status", if error.is_empty() { status } else { error });
        for (name, value) in variables {
            let plain = name.trim_start_matches("REDIRECT_");
            if plain.starts_with("E_") || plain.starts_with("HTTP_AUTH") {
                self.put(name, &**value);
            }
        }
        self.request_headers(decision, facts);
        if let Some(user) = self.user.clone() {
            self.put("REMOTE_USER", user);
        }
        self.settings(decision);
        Maker::Script
    }

    fn request_headers(&mut self, decision: &Decision, facts: &Facts<'_>) {
        let mut request = facts.headers.clone();
        for (name, value) in &decision.outcome.request_headers {
            request.remove(name);
            if let Some(value) = value {
                request.insert(name.clone(), value.clone());
            }
        }
        for name in request.keys().filter(|name| name.as_str().starts_with("x-")) {
            let values: Vec<_> = request.get_all(name).iter().map(HeaderValue::as_bytes).collect();
            let name = format!("HTTP_{}", name.as_str().to_ascii_uppercase().replace('-', "_"));
            self.put(&name, values.join(&b", "[..]));
        }
    }

    fn settings(&mut self, decision: &Decision) {
        let usual = [
            ("memory_limit", "128M"),
            ("arg_separator.output", "&"),
            ("display_errors", ""),
            ("auto_prepend_file", ""),
            ("max_input_vars", "1000"),
        ];
        for (name, usual) in usual {
            let values = decision.outcome.ini.iter().flat_map(|ini| ini.values.iter());
            let value = values.rev().find(|(known, _)| **known == *name).map_or(usual, |(_, value)| value);
            self.put(&format!("ini-{name}"), value);
        }
    }
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}

fn split_script(name: &[u8]) -> (&[u8], &[u8]) {
    let end = name.windows(5).position(|part| part == b".php/").map_or(name.len(), |at| at + 4);
    name.split_at(end)
}
