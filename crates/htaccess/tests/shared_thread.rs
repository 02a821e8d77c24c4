//! A thread on which other connections depend reads no file and stops early; another thread completes the same
//! evaluation.

#![allow(clippy::unwrap_used)]

use howdah_htaccess::{Decision, Entry, Facts, Htaccess, Kind, ResponseSource, Stamp, System, TooExpensive};
use http::{HeaderMap, HeaderValue};
use std::cell::Cell;
use std::time::{Instant, SystemTime};

/// A root with one file.
struct OneFile {
    file: String,
    shared: Cell<bool>,
    reads: Cell<usize>,
}

impl System for OneFile {
    fn stat(&self, path: &[u8]) -> Option<Entry> {
        let kind = if path.ends_with(b"/") { Kind::Directory } else { Kind::File };
        let stamp = Stamp::default();
        (path.ends_with(b"/") || path.ends_with(b"/.htaccess")).then_some(Entry {
            kind,
            size: 1,
            executable: false,
            stamp,
        })
    }

    fn is_link(&self, _path: &[u8]) -> bool {
        false
    }

    fn read(&self, _path: &[u8], _most: usize) -> std::io::Result<Vec<u8>> {
        self.reads.set(self.reads.get() + 1);
        Ok(self.file.clone().into_bytes())
    }

    fn environment(&self, _name: &str) -> Option<String> {
        None
    }

    fn is_shared(&self) -> bool {
        self.shared.get()
    }
}

/// The decisions about a request on a shared thread and then on another one.
struct Asked {
    system: OneFile,
    htaccess: Htaccess,
    headers: HeaderMap,
}

impl Asked {
    fn new(file: String) -> Self {
        let system = OneFile { file, shared: Cell::new(true), reads: Cell::new(0) };
        let mut headers = HeaderMap::new();
        headers.insert("x-long", HeaderValue::from_bytes(&[b'a'; 8000]).unwrap());
        Self { system, htaccess: Htaccess::new(".htaccess"), headers }
    }

    fn facts(&self) -> Facts<'_> {
        Facts {
            method: "GET",
            target: b"/page",
            path: b"/page",
            query: None,
            protocol: "HTTP/1.1",
            https: false,
            host: "example.org",
            server_addr: "192.0.2.1",
            server_port: "80",
            remote: Some([192, 0, 2, 7].into()),
            remote_port: "4000",
            headers: &self.headers,
            root: b"/root",
            software: "server",
            time: SystemTime::now(),
        }
    }

    fn decide(&self, shared: bool) -> Result<Decision, TooExpensive> {
        self.system.shared.set(shared);
        self.htaccess.decide(&self.facts(), &self.system, Instant::now())
    }
}

#[test]
fn a_shared_thread_reads_no_file() {
    let asked = Asked::new("RewriteEngine On\nRewriteRule ^page$ other.html\n".to_owned());
    assert_eq!((asked.decide(true).err(), asked.system.reads.get()), (Some(TooExpensive), 0));
    let read = asked.decide(false).unwrap().outcome.path;
    assert_eq!(read.as_deref(), Some(&b"/other.html"[..]));
    assert_eq!(asked.decide(true).unwrap().outcome.path, read, "files that have been read cost little");
    assert_eq!(asked.system.reads.get(), 1);
}

#[test]
fn a_shared_thread_leaves_costly_rules_to_another() {
    let many = |line: &str, times: usize| "RewriteEngine On\n".to_owned() + &line.repeat(times);
    let files = [
        many("RewriteCond %{HTTP:X-Long} b\nRewriteRule ^ - [F]\n", 100),
        many("RewriteCond %{HTTP:X-Long} ^(?!b)(a|b)c\nRewriteRule ^ - [F]\n", 20),
        many("RewriteCond %{DOCUMENT_ROOT}/none -f\nRewriteRule ^ - [F]\n", 100),
        many("SetEnv A b\n", 3000),
        many("<Files page>\nRedirect /a /b\n</Files>\n", 2000),
    ];
    for file in files {
        let asked = Asked::new(file);
        let done = asked.decide(false).unwrap();
        assert!(done.outcome.stop.is_none(), "{:?}", done.outcome.stop);
        assert_eq!(asked.decide(true).err(), Some(TooExpensive), "{:.60}", asked.system.file);
    }
}

#[test]
fn a_shared_thread_leaves_costly_header_lines_to_another() {
    let asked = Asked::new("Header append X-Made a\n".repeat(3000));
    let decision = asked.decide(false).unwrap();
    let headers = HeaderMap::new();
    let apply = |shared| {
        asked.system.shared.set(shared);
        decision.response.apply(&asked.facts(), &asked.system, 200, ResponseSource::Script, &headers)
    };
    assert_eq!(apply(true), Err(TooExpensive));
    let made = apply(false).unwrap();
    assert_eq!(made["x-made"].to_str().unwrap().matches('a').count(), 3000);
}
