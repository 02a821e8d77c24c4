//! The fuzz target "htaccess": a request and a `.htaccess` file, both of any bytes. For any file, even an invalid one,
//! the result satisfies the invariants of paths and URLs, and takes bounded time.

use bytes::Bytes;
use howdah_htaccess::{Entry, Facts, Htaccess, Kind, ResponseSource, Stamp, System};
use howdah_rules::outcome::Stop;
use http::{HeaderMap, HeaderValue};
use std::cell::Cell;
use std::time::{Duration, Instant, UNIX_EPOCH};

/// A root with this file in it, some directories, and files elsewhere.
struct TestFile {
    file: Bytes,
    lookups: Cell<usize>,
}

impl System for TestFile {
    fn stat(&self, path: &[u8]) -> Option<Entry> {
        self.lookups.set(self.lookups.get() + 1);
        let kind = match path {
            b"/root" | b"/root/" | b"/root/dir" | b"/root/dir/" => Kind::Directory,
            b"/root/.htaccess" | b"/root/dir/.htaccess" | b"/root/index.php" | b"/root/dir/file.txt" => Kind::File,
            _ => return None,
        };
        Some(Entry { kind, size: 1, executable: false, stamp: Stamp::default() })
    }

    fn is_link(&self, _path: &[u8]) -> bool {
        false
    }

    fn read(&self, _path: &[u8], _most: usize) -> std::io::Result<Vec<u8>> {
        Ok(self.file.to_vec())
    }

    fn environment(&self, _name: &str) -> Option<String> {
        None
    }

    fn is_shared(&self) -> bool {
        false
    }
}

/// The first line is the path and the query, the rest the file.
pub fn htaccess(data: &[u8]) {
    let end = data.iter().position(|&b| b == b'\n').unwrap_or(data.len());
    let (target, file) = (&data[..end], data.get(end + 1..).unwrap_or_default());
    let world = TestFile { file: Bytes::copy_from_slice(file), lookups: Cell::new(0) };
    let mut split = target.splitn(2, |&b| b == b'?');
    let path = [b"/", split.next().unwrap_or_default().trim_ascii_start()].concat();
    let Ok(path) = crate::request_path::normalise(&path) else { return };
    let mut headers = HeaderMap::new();
    headers.insert("x-text", HeaderValue::from_bytes(target).unwrap_or(HeaderValue::from_static("text")));
    let facts = Facts {
        method: "GET",
        target,
        path: &path,
        query: split.next(),
        protocol: "HTTP/1.1",
        https: false,
        host: "example.org:8080",
        server_addr: "192.0.2.1",
        server_port: "8080",
        remote: Some([192, 0, 2, 7].into()),
        remote_port: "4000",
        headers: &headers,
        root: b"/root",
        software: "server",
        time: UNIX_EPOCH + Duration::from_secs(1_700_000_000),
    };
    let htaccess = Htaccess::new(".htaccess");
    let Ok(decision) = htaccess.decide(&facts, &world, Instant::now()) else {
        panic!("refused as too expensive on a thread without clients")
    };
    assert!(world.lookups.get() < 100_000, "{} lookups in the file system", world.lookups.get());
    if let Some(path) = &decision.outcome.path {
        assert_eq!(path.first(), Some(&b'/'));
        assert!(!path.split(|&b| b == b'/').any(|name| matches!(name, b"." | b"..")) && !path.contains(&0));
    }
    if let Some(Stop::Redirect(status, _)) = &decision.outcome.stop {
        assert!(status.is_redirection(), "{status}");
    }
    let mut response = HeaderMap::new();
    response.insert("content-type", HeaderValue::from_static("text/html"));
    response.insert("content-length", HeaderValue::from_static("7"));
    decision.response.prepare(&decision.response, facts.time, 200, ResponseSource::File, &mut response);
    let made = decision.response.apply(&facts, &world, 200, ResponseSource::File, &response);
    assert!(made.is_err() || made.is_ok_and(|made| made["content-length"] == "7"));
}
