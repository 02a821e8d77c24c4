//! Compares the variables that a script sees under Howdah with those under the reference, key by key.

use crate::client::Conn;
use crate::modes::{Backend, Mode};
use crate::request::Request;
use crate::setup::Setup;
use crate::site::Site;
use serde_json::{Map, Value};

/// Keys that differ by nature: the server's own name, times, the process environment, Howdah's request id, and keys
/// that FrankenPHP has and nginx lacks.
const OWN: &[&str] = &[
    "SERVER_SOFTWARE",
    "REQUEST_TIME",
    "REQUEST_TIME_FLOAT",
    "FCGI_ROLE",
    "USER",
    "HOME",
    "PATH",
    "TMPDIR",
    "HOWDAH_TEST_MARK",
    "REQUEST_ID",
    "REMOTE_HOST",
];

/// Those of [`OWN`] that nginx sends or PHP-FPM adds: they are equal with Howdah behind the same nginx.
const OF_NGINX: &[&str] = &["SERVER_SOFTWARE", "FCGI_ROLE", "REMOTE_HOST", "REQUEST_ID"];

/// PHP-FPM sets it depending on which side splits the path. CGI defines it (RFC 3875, 4.1.6), and a separate test
/// covers it.
const OPTIONAL: &str = "PATH_TRANSLATED";

/// Keys that Debian's nginx sets even if they are empty. Scripts use `isset` on them too, and upstream's fastcgi_params
/// lacks them, so absent counts as empty.
const EMPTY_OR_ABSENT: &[&str] = &["REMOTE_USER"];

/// Sends each request to Howdah with one setup and to the reference with the other, and returns every difference
/// between the scripts' responses (JSON objects).
pub fn differences(ours: &Setup, theirs: &Setup, requests: &[(&str, Vec<u8>)]) -> Vec<String> {
    let setup = ours;
    let ours = Site::start(Mode::Classic, setup);
    let theirs = Site::start(Backend::Reference, theirs);
    let mut found = Vec::new();
    for (name, bytes) in requests {
        let mine = dump(&ours, bytes, setup.behind_nginx);
        let truth = dump(&theirs, bytes, setup.behind_nginx);
        for key in truth.keys().chain(mine.keys().filter(|k| !truth.contains_key(*k))) {
            let (expected, got) = (truth.get(key), mine.get(key));
            if expected != got {
                found.push(format!("{name}: {key}: expected {}, got {}", show(expected), show(got)));
            }
        }
    }
    theirs.finish();
    ours.finish();
    found
}

fn show(value: Option<&Value>) -> String {
    value.map_or_else(|| "nothing".to_owned(), Value::to_string)
}

/// The script's response, with words in place of the parts that must differ.
fn dump(site: &Site, bytes: &[u8], whole: bool) -> Map<String, Value> {
    let port = site.port().to_string();
    let text = String::from_utf8_lossy(bytes).replace("@PORT@", &port).into_bytes();
    let mut conn = Conn::open(site.target());
    let client_port = conn.local_port().to_string();
    conn.send(&text);
    let method = String::from_utf8_lossy(bytes).split(' ').next().unwrap_or("GET").to_owned();
    let response = conn.response(&method);
    let mut map = match serde_json::from_slice(&response.body) {
        Ok(Value::Object(map)) => map,
        _ => Map::from_iter([("(no dump)".to_owned(), Value::String(response.text()))]),
    };
    map.insert("(status)".to_owned(), response.status.into());
    map.retain(|key, value| {
        let empty = EMPTY_OR_ABSENT.contains(&key.as_str()) && *value == "";
        if whole {
            return !OWN.contains(&key.as_str()) || OF_NGINX.contains(&key.as_str());
        }
        !OWN.contains(&key.as_str()) && key != OPTIONAL && !empty
    });
    let top = site.place().top.display().to_string();
    for (key, value) in &mut map {
        if let Value::String(text) = value {
            *text = text.replace(&top, "TOP");
            match key.as_str() {
                "REMOTE_PORT" if *text == client_port => *text = "CLIENT_PORT".to_owned(),
                "SERVER_PORT" | "HTTP_HOST" => *text = text.replace(&port, "SERVER_PORT"),
                _ => {}
            }
        }
    }
    map
}

/// A request's bytes with its name for messages.
pub fn named(name: &'static str, request: &Request) -> (&'static str, Vec<u8>) {
    (name, request.clone().close().bytes())
}
