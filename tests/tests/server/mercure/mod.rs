//! The Mercure hub as clients see it. Another program (`tokens.py`) creates the tokens.

mod authorization;
mod delivery;
mod key_sets;
mod matchers;
mod protocol;
mod restarts;
mod scripts;
mod sites;
mod symfony;

use howdah_tests::{Conn, Request, Response, Setup, Site, Target};
use serde_json::{Value, json};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

pub(super) const HUB: &str = "/.well-known/mercure";
const SECRET: &str = "a secret of publishers, 32 bytes or more";
const SUBSCRIBERS: &str = "another secret, which subscribers have";

/// A site whose hub has two keys and accepts subscribers without a token.
pub(super) fn hub(setup: Setup) -> Setup {
    closed(setup).setting("mercure.anonymous", "true")
}

/// As `hub`, only for clients with a token.
pub(super) fn closed(setup: Setup) -> Setup {
    setup
        .setting("mercure.publisher_key", &format!("\"{SECRET}\""))
        .setting("mercure.subscriber_key", &format!("\"{SUBSCRIBERS}\""))
}

/// Creates tokens with these keys, algorithms, heads and claims.
fn tokens(wanted: &[(&str, &str, Value, Value)]) -> Vec<String> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/server/mercure/tokens.py");
    let mut python = Command::new("/usr/bin/python3");
    let mut python = python.arg(script).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let lines: Vec<String> = wanted
        .iter()
        .map(|(key, alg, head, claims)| json!({ "key": key, "alg": alg, "head": head, "claims": claims }).to_string())
        .collect();
    python.stdin.take().unwrap().write_all(lines.join("\n").as_bytes()).unwrap();
    let output = python.wait_with_output().unwrap();
    assert!(output.status.success());
    let found: Vec<String> = String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect();
    assert_eq!(found.len(), wanted.len());
    found
}

/// A token with this signature, head and claims.
fn token_with(key: &str, alg: &str, head: Value, claims: Value) -> String {
    tokens(&[(key, alg, head, claims)]).remove(0)
}

/// A token with these claims for Mercure.
fn token(key: &str, mercure: Value) -> String {
    token_with(key, "HS256", json!({ "alg": "HS256", "typ": "JWT" }), json!({ "mercure": mercure }))
}

fn openssl(arguments: &[&str]) -> Vec<u8> {
    let output = Command::new("openssl").args(arguments).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

/// A token that may publish everything.
pub(super) fn publisher() -> String {
    token(SECRET, json!({ "publish": ["*"] }))
}

pub(super) fn subscriber_token(mercure: Value) -> String {
    token(SUBSCRIBERS, mercure)
}

pub(super) fn bearer(request: Request, token: &str) -> Request {
    request.header("Authorization", &format!("Bearer {token}"))
}

fn publish(site: &Site, token: &str, form: &str) -> Response {
    site.send(&bearer(Request::form(HUB, form), token))
}

/// Publishes an update, which must succeed; returns its id.
pub(super) fn published(site: &Site, token: &str, form: &str) -> String {
    publish(site, token, form).expect(200).text()
}

/// A subscriber whose event stream has begun.
pub(super) struct Subscriber {
    conn: Conn,
    head: Response,
    seen: String,
}

impl Subscriber {
    pub(super) fn open(target: &Target, request: &Request) -> Self {
        let mut conn = Conn::open(target);
        conn.send(request.bytes());
        let head = conn.head("GET");
        assert_eq!(head.status, 200, "{head:?}");
        assert_eq!(head.header("content-type"), Some("text/event-stream"));
        let mut subscriber = Self { conn, head, seen: String::new() };
        subscriber.until(":\n");
        subscriber
    }

    /// Subscribes without a token, with these parameters.
    pub(super) fn anonymous(site: &Site, query: &str) -> Self {
        Self::open(site.target(), &Request::get(&format!("{HUB}?{query}")))
    }

    /// Reads up to and including this text.
    fn until(&mut self, text: &str) -> String {
        loop {
            if let Some(at) = self.seen.find(text) {
                let rest = self.seen.split_off(at + text.len());
                return std::mem::replace(&mut self.seen, rest);
            }
            let piece = self.conn.read_some();
            let piece = piece.unwrap_or_else(|| panic!("ended before {text:?}: {:?}", self.seen));
            self.seen.push_str(std::str::from_utf8(&piece).unwrap());
        }
    }

    /// Reads the next event, without comments.
    pub(super) fn event(&mut self) -> String {
        loop {
            let event = self.until("\n\n");
            let event = event.trim_start_matches(":\n");
            if !event.trim().is_empty() {
                return event.to_owned();
            }
        }
    }

    /// Reads everything until the server ends the stream.
    fn rest(mut self) -> String {
        let rest = self.conn.read_rest();
        self.seen + std::str::from_utf8(&rest).unwrap()
    }
}
