//! Static files over real connections: as files (`Way::Sent`) and as streams (`Way::Read`).

use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use howdah_config::{StaticSettings, Symlinks};

use super::tests_server::{Received, Server, Way, send};
use super::*;
use crate::withheld::PrivateFiles;

/// Bytes without zeros, so that zeros from a truncated file are noticed at any position.
fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 31 + at / 251) as u8 | 1).collect()
}

fn age(path: &Path, seconds: u64) {
    let time = SystemTime::now() - Duration::from_secs(seconds);
    std::fs::File::options().write(true).open(path).unwrap().set_modified(time).unwrap();
}

const BOTH: [Way; 2] = [Way::Sent, Way::Read];

#[test]
fn whole_files_of_many_sizes() {
    for way in BOTH {
        let server = Server::start(way, |_| {});
        let mut stream = server.connect();
        for size in [0, 1, 16 << 10, (16 << 10) + 1, 65_536, 128 << 10, (128 << 10) + 1, 533_504, 9_000_001] {
            let content = pattern(size);
            server.write("file.bin", &content);
            for method in ["GET", "HEAD", "GET"] {
                send(&mut stream, method, "file.bin", &[]);
                let response = Received::read(&mut stream, method == "HEAD").unwrap();
                assert_eq!(response.status, 200);
                assert_eq!(response.field("content-length"), Some(&*size.to_string()));
                assert_eq!(response.field("accept-ranges"), Some("bytes"));
                assert_eq!(response.field("content-type"), Some("application/octet-stream"));
                assert!(method == "HEAD" || response.body == content, "{way:?} {size}");
            }
        }
    }
}

#[test]
fn pipelined_requests_come_back_in_order() {
    let server = Server::start(Way::Sent, |_| {});
    let (big, small) = (pattern(400_000), pattern(10));
    server.write("big", &big);
    server.write("small", &small);
    let mut stream = server.connect();
    for path in ["big", "small", "big", "big", "small"] {
        send(&mut stream, "GET", path, &[]);
    }
    for expected in [&big, &small, &big, &big, &small] {
        assert!(Received::read(&mut stream, false).unwrap().body == *expected);
    }
}

#[test]
fn ranges() {
    for way in BOTH {
        let server = Server::start(way, |_| {});
        for size in [10_000_usize, 3_000_000] {
            let content = pattern(size);
            server.write("file", &content);
            let last = size - 1;
            for (field, start, end) in [
                ("bytes=0-0".to_owned(), 0, 1),
                (format!("bytes=1-{last}"), 1, size),
                ("bytes=-9000".to_owned(), size - 9000, size),
                (format!("bytes=17-{}", size / 2), 17, size / 2 + 1),
                (format!("bytes={last}-999999999"), last, size),
            ] {
                let response = server.get("file", &[("Range", &field)]);
                assert_eq!(response.status, 206, "{field}");
                assert_eq!(response.field("content-range"), Some(&*format!("bytes {start}-{}/{size}", end - 1)));
                assert!(response.body == content[start..end], "{way:?} {size} {field}");
            }
            let response = server.get("file", &[("Range", &format!("bytes={size}-"))]);
            assert_eq!(response.status, 416);
            assert_eq!(response.field("content-range"), Some(&*format!("bytes */{size}")));
            let response = server.request("HEAD", "file", &[("Range", "bytes=0-0")]);
            assert_eq!((response.status, response.field("content-range")), (200, None), "ranges are defined for GET");
            let response = server.get("file", &[("Range", "bytes=0-0"), ("If-Range", "\"other\"")]);
            assert_eq!((response.status, response.body.len()), (200, size));
            let response = server.get("file", &[("Range", "bytes=0-0"), ("Range", "bytes=0-0")]);
            assert_eq!((response.status, response.body.len()), (200, size), "two fields are not a range");
        }
    }
}

#[test]
fn several_ranges() {
    for way in BOTH {
        let server = Server::start(way, |_| {});
        let content = pattern(2_000_000);
        server.write("file.txt", &content);
        let response = server.get("file.txt", &[("Range", "bytes=1000000-1500000,0-4,-100")]);
        assert_eq!(response.status, 206);
        let kind = response.field("content-type").unwrap();
        let boundary = kind.strip_prefix("multipart/byteranges; boundary=").unwrap();
        let mut expected = Vec::new();
        for (start, end) in [(1_000_000, 1_500_001), (0, 5), (1_999_900, 2_000_000)] {
            let line_end = if expected.is_empty() { "" } else { "\r\n" };
            let last = end - 1;
            expected.extend(
                format!(
                    "{line_end}--{boundary}\r\nContent-Type: text/plain; charset=utf-8\r\n\
                     Content-Range: bytes {start}-{last}/2000000\r\n\r\n"
                )
                .bytes(),
            );
            expected.extend(&content[start..end]);
        }
        expected.extend(format!("\r\n--{boundary}--\r\n").bytes());
        assert!(response.body == expected, "{way:?}");
        let joined = server.get("file.txt", &[("Range", "bytes=0-10,5-20")]);
        assert_eq!(joined.field("content-range"), Some("bytes 0-20/2000000"));
    }
}

#[test]
fn files_beyond_4_gib() {
    for way in BOTH {
        let server = Server::start(way, |_| {});
        let size = (5_u64 << 30) + 3;
        let edge = 4_u64 << 30;
        let mark = pattern(6 << 20);
        let file = std::fs::File::create(server.root().join("huge")).unwrap();
        file.set_len(size).unwrap();
        std::os::unix::fs::FileExt::write_all_at(&file, &mark, edge - (3 << 20)).unwrap();
        std::os::unix::fs::FileExt::write_all_at(&file, b"end", size - 3).unwrap();
        let response = server.request("HEAD", "huge", &[]);
        assert_eq!(response.field("content-length"), Some(&*size.to_string()));
        let range = format!("bytes={}-{}", edge - (3 << 20), edge + (3 << 20) - 1);
        assert!(server.get("huge", &[("Range", &range)]).body == mark, "{way:?}");
        assert_eq!(server.get("huge", &[("Range", "bytes=-3")]).body, b"end");
        // The client reads only a part of the announced data, and gives up the connection.
        let mut stream = server.connect();
        send(&mut stream, "GET", "huge", &[]);
        let head = Received::read_head(&mut stream).unwrap();
        assert!(head.contains(&format!("content-length: {size}\r\n")), "{head}");
        let mut some = vec![1; 1 << 20];
        stream.read_exact(&mut some).unwrap();
        assert!(some.iter().all(|byte| *byte == 0));
        drop(stream);
        assert_eq!(server.get("huge", &[("Range", "bytes=-3")]).body, b"end", "the server goes on");
    }
}

#[test]
fn a_slow_reader_gets_every_byte() {
    let server = Server::start(Way::Sent, |_| {});
    let content = pattern(3_000_000);
    server.write("file", &content);
    let mut stream = server.connect();
    rustix::net::sockopt::set_socket_recv_buffer_size(&stream, 65_536).unwrap();
    send(&mut stream, "GET", "file", &[]);
    Received::read_head(&mut stream).unwrap();
    let mut received: Vec<u8> = Vec::new();
    let mut piece = [0; 1500];
    while received.len() < content.len() {
        let n = stream.read(&mut piece).unwrap();
        assert!(n > 0);
        received.extend(&piece[..n]);
    }
    assert!(received == content);
}

#[test]
fn truncation_during_a_transfer_ends_the_connection() {
    for way in BOTH {
        let server = Server::start(way, |_| {});
        let content = pattern(64 << 20);
        let path = server.write("file", &content);
        let mut stream = server.connect();
        send(&mut stream, "GET", "file", &[]);
        Received::read_head(&mut stream).unwrap();
        let mut received = vec![0; 100_000];
        stream.read_exact(&mut received).unwrap();
        std::fs::File::options().write(true).open(&path).unwrap().set_len(1 << 20).unwrap();
        // The end comes as a close or a reset, and early.
        let _ = stream.read_to_end(&mut received);
        assert!(received.len() < content.len(), "{way:?}");
        let wrong = received.iter().zip(&content).position(|(received, sent)| received != sent);
        match way {
            Way::Read => assert_eq!(wrong, None),
            // After the cut, and only there, the kernel may have zeroed its queued data.
            Way::Sent => assert!(wrong.is_none_or(|at| at >= 1 << 20), "{wrong:?}"),
        }
        let response = server.get("file", &[]);
        assert!(response.body == content[..1 << 20], "the server goes on, with the new size");
    }
}

#[test]
fn a_deleted_file_is_sent_to_its_end_and_is_then_404() {
    for way in BOTH {
        let server = Server::start(way, |_| {});
        let content = pattern(32 << 20);
        let path = server.write("file", &content);
        let mut stream = server.connect();
        send(&mut stream, "GET", "file", &[]);
        Received::read_head(&mut stream).unwrap();
        std::fs::remove_file(path).unwrap();
        let mut received = vec![0; content.len()];
        stream.read_exact(&mut received).unwrap();
        assert!(received == content, "{way:?}");
        send(&mut stream, "GET", "file", &[]);
        assert!(Received::read_head(&mut stream).unwrap().starts_with("HTTP/1.1 404"));
    }
}

#[test]
fn changes_are_noticed() {
    let server = Server::start(Way::Sent, |_| {});
    let path = server.write("file", b"one");
    let first = server.get("file", &[]);
    server.write("file", b"two");
    age(&path, 0);
    let second = server.get("file", &[]);
    assert_eq!(second.body, b"two");
    assert_ne!(first.field("etag"), second.field("etag"));
    let new = server.write("new", &pattern(100_000));
    std::fs::rename(new, &path).unwrap();
    assert!(server.get("file", &[]).body == pattern(100_000));
    assert_eq!(server.get("new", &[]).status, 404);
}

#[test]
fn a_file_written_in_place_is_noticed_at_once() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    std::fs::write(&path, pattern(100_000)).unwrap();
    let mut files = StaticFiles::new(directory.path(), &StaticSettings::default(), Arc::default()).unwrap();
    files.validity = u64::MAX;
    assert_eq!(files.open(Path::new("file")).unwrap().len(), 100_000);
    std::fs::write(&path, pattern(50_000)).unwrap();
    assert_eq!(files.open(Path::new("file")).unwrap().len(), 50_000);
}

#[test]
fn a_root_that_is_a_link_may_be_moved() {
    let directory = tempfile::tempdir().unwrap();
    let link = directory.path().join("current");
    for release in ["a", "b"] {
        std::fs::create_dir(directory.path().join(release)).unwrap();
        std::fs::write(directory.path().join(release).join("file"), release).unwrap();
    }
    std::os::unix::fs::symlink("a", &link).unwrap();
    let mut files = StaticFiles::new(&link, &StaticSettings::default(), Arc::default()).unwrap();
    files.validity = 0;
    let small = |files: &StaticFiles| files.open(Path::new("file")).unwrap().0.plain.small.clone().unwrap();
    assert_eq!(small(&files), "a");
    std::os::unix::fs::symlink("b", directory.path().join("next")).unwrap();
    std::fs::rename(directory.path().join("next"), &link).unwrap();
    assert_eq!(small(&files), "b");
    std::fs::remove_file(&link).unwrap();
    assert_eq!(small(&files), "b", "the old one serves until there is a new one");
}

#[test]
fn conditions_over_the_wire() {
    let server = Server::start(Way::Sent, |_| {});
    let path = server.write("page.html", &pattern(100_000));
    age(&path, 100);
    let plain = server.get("page.html", &[]);
    let (etag, modified) = (plain.field("etag").unwrap(), plain.field("last-modified").unwrap());
    assert!(etag.starts_with('"') && etag.ends_with('"'));
    assert_eq!(plain.field("content-type"), Some("text/html; charset=utf-8"));
    for fields in [[("If-None-Match", etag)], [("If-Modified-Since", modified)]] {
        for method in ["GET", "HEAD"] {
            let response = server.request(method, "page.html", &fields);
            assert_eq!(response.status, 304);
            assert_eq!(response.field("etag"), Some(etag));
            assert_eq!(response.field("content-type"), None);
        }
    }
    assert_eq!(server.get("page.html", &[("If-Match", "\"other\"")]).status, 412);
    let range = [("Range", "bytes=0-9"), ("If-Range", etag)];
    assert_eq!(server.get("page.html", &range).status, 206);
    let range = [("Range", "bytes=0-9"), ("If-Range", modified)];
    assert_eq!(server.get("page.html", &range).status, 206);
    for method in ["POST", "PUT", "DELETE", "OPTIONS", "PATCH"] {
        let response = server.request(method, "page.html", &[]);
        assert_eq!((response.status, response.field("allow")), (405, Some("GET, HEAD")), "{method}");
    }
}

#[test]
fn twins() {
    let server = Server::start(Way::Sent, |_| {});
    let files = [("", 50_000), (".gz", 30_000), (".br", 20_000), (".zst", 25_000)];
    for (extension, size) in files {
        age(&server.write(&format!("app.js{extension}"), &pattern(size)), 100);
    }
    let plain = server.get("app.js", &[]);
    assert_eq!((plain.body.len(), plain.field("content-encoding")), (50_000, None));
    assert_eq!(plain.field("vary"), Some("accept-encoding"));
    let mut tags = vec![plain.field("etag").unwrap().to_owned()];
    for (accept, coding, size) in [
        ("gzip", Some("gzip"), 30_000),
        ("gzip, zstd", Some("zstd"), 25_000),
        ("gzip, deflate, br, zstd", Some("br"), 20_000),
        ("br;q=0.5, gzip", Some("gzip"), 30_000),
        ("br;q=0, zstd;q=0, *;q=0.1", Some("gzip"), 30_000),
        ("identity, gzip;q=0.9", None, 50_000),
        ("deflate", None, 50_000),
    ] {
        let response = server.get("app.js", &[("Accept-Encoding", accept)]);
        assert_eq!((response.field("content-encoding"), response.body.len()), (coding, size), "{accept}");
        assert_eq!(response.field("content-type"), Some("text/javascript; charset=utf-8"));
        assert!(response.body == pattern(size));
        tags.push(response.field("etag").unwrap().to_owned());
        let again = [("Accept-Encoding", accept), ("If-None-Match", response.field("etag").unwrap())];
        assert_eq!(server.get("app.js", &again).status, 304);
    }
    tags.sort();
    tags.dedup();
    assert_eq!(tags.len(), 4, "each representation has its own tag");

    let accept = [("Accept-Encoding", "br")];
    age(&server.root().join("app.js.br"), 200);
    assert_eq!(server.get("app.js", &accept).field("content-encoding"), None, "older than the file");
    age(&server.write("app.js.br", &pattern(5)), 0);
    assert_eq!(server.get("app.js", &accept).body.len(), 5, "a new twin is noticed");
    std::fs::remove_file(server.root().join("app.js.br")).unwrap();
    assert_eq!(server.get("app.js", &accept).body.len(), 50_000, "so is a deleted one");

    let server = Server::start(Way::Sent, |settings| settings.precompressed = false);
    server.write("a.css", b"plain");
    server.write("a.css.gz", b"twin");
    let response = server.get("a.css", &[("Accept-Encoding", "gzip")]);
    assert_eq!((response.body.as_slice(), response.field("vary")), (b"plain" as &[u8], None));
    assert_eq!(server.get("a.css.gz", &[]).body, b"twin");
}

#[test]
fn files_that_are_not_served() {
    let server = Server::start(Way::Sent, |_| {});
    server.write(".env", b"secret");
    server.write(".git/config", b"secret");
    server.write(".well-known/acme", b"token");
    server.write("index.php", b"<?php");
    server.write("secret.txt.gz", b"x");
    std::fs::write(server.directory.path().join("outside"), "secret").unwrap();
    let link = |name: &str, target: &str| std::os::unix::fs::symlink(target, server.root().join(name)).unwrap();
    link("out", "../outside");
    link("source.txt", "index.php");
    link("twin", "../outside");
    server.write("page.css", b"page");
    link("page.css.gz", "../outside");
    rustix::fs::mkfifoat(CWD, server.root().join("fifo"), rustix::fs::Mode::RUSR).unwrap();
    for path in
        [".env", ".git/config", "index.php", "out", "source.txt", "fifo", "", "nothing", "page.css/", "secret.txt"]
    {
        assert_eq!(server.request("HEAD", path, &[]).status, 404, "{path}");
    }
    assert_eq!(server.get(".well-known/acme", &[]).body, b"token");
    assert_eq!(server.get("page.css", &[("Accept-Encoding", "gzip")]).body, b"page", "a twin must not escape either");

    let server = Server::start(Way::Sent, |settings| {
        settings.dotfiles = true;
        settings.follow_symlinks = Symlinks::Always.into();
    });
    server.write(".env", b"shown");
    std::fs::write(server.directory.path().join("outside"), "wanted").unwrap();
    std::os::unix::fs::symlink("../outside", server.root().join("out")).unwrap();
    assert_eq!(server.get(".env", &[]).body, b"shown");
    assert_eq!(server.get("out", &[]).body, b"wanted");
}

struct Stop<'a>(&'a std::sync::atomic::AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// While a directory is swapped for a link out of the root and back, no file from outside is sent.
#[test]
fn no_race_sends_files_outside_the_root() {
    let directory = tempfile::tempdir().unwrap();
    let base = directory.path();
    for (path, content) in [("root/dir", "inside"), ("outside", "secret")] {
        std::fs::create_dir_all(base.join(path)).unwrap();
        std::fs::write(base.join(path).join("file"), content).unwrap();
    }
    std::os::unix::fs::symlink("../outside", base.join("root/link")).unwrap();
    let mut settings = StaticSettings { open_files: 0, ..StaticSettings::default() };
    let swap = |root: &Path| {
        let _ =
            rustix::fs::renameat_with(CWD, root.join("dir"), CWD, root.join("link"), rustix::fs::RenameFlags::EXCHANGE);
    };
    for policy in [Symlinks::Inside, Symlinks::Never] {
        settings.follow_symlinks = policy.into();
        let files = StaticFiles::new(base.join("root"), &settings, Arc::default()).unwrap();
        let (mut served, mut refused) = (0, 0);
        let done = std::sync::atomic::AtomicBool::new(false);
        let root = base.join("root");
        std::thread::scope(|scope| {
            // Ends the other thread also when an assertion fails.
            let _stop = Stop(&done);
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    swap(&root);
                }
            });
            for _ in 0..20_000 {
                match files.open(Path::new("dir/file")) {
                    Ok(file) => {
                        served += 1;
                        assert_eq!(file.0.plain.small.as_deref(), Some(b"inside" as &[u8]));
                    }
                    Err(miss) => {
                        refused += 1;
                        assert!(matches!(miss, Miss::Hidden | Miss::NotFound), "{miss:?}");
                    }
                }
                if served > 200 && refused > 200 {
                    break;
                }
            }
        });
        assert!(served > 0 && refused > 0, "{policy:?}: {served} served, {refused} refused");
    }
}

#[test]
fn descriptors_are_bounded_and_returned() {
    let server = Server::start(Way::Sent, |settings| settings.open_files = 32);
    let content = pattern(40_000);
    for number in 0..300 {
        server.write(&format!("f{number}"), &content);
    }
    let mut stream = server.connect();
    for number in (0..300).chain(0..300) {
        send(&mut stream, "GET", &format!("f{number}"), &[]);
        assert!(Received::read(&mut stream, false).unwrap().body == content);
    }
    let open = server.descriptors();
    assert!((1..=32).contains(&open), "{open} descriptors open");
    // Every file is found missing once, and released.
    for number in 0..300 {
        std::fs::remove_file(server.root().join(format!("f{number}"))).unwrap();
    }
    for number in 0..300 {
        send(&mut stream, "HEAD", &format!("f{number}"), &[]);
        assert_eq!(Received::read(&mut stream, true).unwrap().status, 404);
    }
    assert_eq!(server.descriptors(), 0);
}

/// Requests a file before and right after a change, and returns both results.
fn after_a_change(revalidate_after: Duration, size: usize, change: impl Fn(&Path)) -> (Vec<u8>, Result<Vec<u8>, Miss>) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    std::fs::write(&path, pattern(size)).unwrap();
    let settings = StaticSettings { revalidate_after, ..StaticSettings::default() };
    let files = StaticFiles::new(directory.path(), &settings, Arc::default()).unwrap();
    let read = || {
        let opened = files.open(Path::new("file"))?;
        Ok(opened.0.plain.read(0, 1 << 20).unwrap().to_vec())
    };
    let before = read().unwrap();
    change(&path);
    (before, read())
}

#[test]
fn a_changed_or_deleted_file_is_noticed_by_the_next_request() {
    for size in [10, 100_000] {
        let other: Vec<u8> = pattern(size).iter().map(|byte| !byte).collect();
        let changed = other.clone();
        let (_, now) = after_a_change(Duration::ZERO, size, |path| std::fs::write(path, &changed).unwrap());
        assert_eq!(now.unwrap(), other, "written to in place, as long as before");
        let (_, now) = after_a_change(Duration::ZERO, size, |path| {
            let time = std::fs::metadata(path).unwrap().modified().unwrap();
            std::fs::write(path, &changed).unwrap();
            std::fs::File::options().write(true).open(path).unwrap().set_modified(time).unwrap();
        });
        assert_eq!(now.unwrap(), other, "with the time set back");
        let (_, now) = after_a_change(Duration::ZERO, size, |path| {
            let next = path.with_file_name("next");
            std::fs::write(&next, &changed).unwrap();
            std::fs::rename(next, path).unwrap();
        });
        assert_eq!(now.unwrap(), other, "replaced");
        let (_, now) = after_a_change(Duration::ZERO, size, |path| std::fs::remove_file(path).unwrap());
        assert_eq!(now.unwrap_err(), Miss::NotFound, "deleted");
        let (_, now) = after_a_change(Duration::ZERO, size, |path| {
            std::fs::remove_file(path).unwrap();
            std::fs::create_dir(path).unwrap();
        });
        assert_eq!(now.unwrap_err(), Miss::Directory, "a directory in its place");
    }
    let trusting = Duration::from_secs(3600);
    let (before, now) = after_a_change(trusting, 10, |path| std::fs::remove_file(path).unwrap());
    assert_eq!(now.unwrap(), before, "where the settings allow it, it is sent as it was");
    let (_, now) = after_a_change(trusting, 100_000, |path| std::fs::write(path, "short").unwrap());
    assert_eq!(now.unwrap(), b"short", "but never with a length that is wrong");
}

#[test]
fn withheld_files_are_not_opened_under_any_name_nor_as_a_twin() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    for name in ["app.conf", "page.css", "page.css.gz", "x.php.bak", "sub"] {
        std::fs::write(at(name), "content").unwrap();
    }
    std::fs::hard_link(at("app.conf"), at("hard.txt")).unwrap();
    std::os::unix::fs::symlink("app.conf", at("link.txt")).unwrap();
    std::fs::remove_file(at("page.css.gz")).unwrap();
    std::fs::hard_link(at("app.conf"), at("page.css.gz")).unwrap();
    age(&at("app.conf"), 10);
    age(&at("page.css"), 20);
    let settings = howdah_config::Settings { config_file: Some(at("app.conf")), ..Default::default() };
    let withheld = Arc::new(Withheld::new(&settings, &settings.static_files, Arc::new(PrivateFiles::new(&settings))));
    let files = StaticFiles::new(directory.path(), &settings.static_files, withheld).unwrap();
    for name in ["app.conf", "hard.txt", "link.txt", "x.php.bak", "app.conf.gz"] {
        assert!(matches!(files.open(Path::new(name)), Err(Miss::Hidden)), "{name}");
    }
    assert!(files.open(Path::new("page.css")).unwrap().0.twins.is_empty());
}

#[test]
fn the_cache_is_used_and_can_be_switched_off() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("file"), "content").unwrap();
    for (open_files, held) in [(16, 1), (0, 0)] {
        let settings = StaticSettings { open_files, ..StaticSettings::default() };
        let files = StaticFiles::new(directory.path(), &settings, Arc::default()).unwrap();
        let same = || {
            let (first, second) = (files.open(Path::new("file")).unwrap(), files.open(Path::new("file")).unwrap());
            Arc::ptr_eq(&first.0, &second.0)
        };
        if open_files == 0 {
            assert!(!same());
        } else {
            // A file loaded within a tick of its last write is loaded again.
            let began = Instant::now();
            while !same() {
                assert!(began.elapsed() < Duration::from_secs(60), "never kept");
            }
        }
        assert_eq!(files.open_descriptors(), held);
    }
}

#[test]
fn over_http2() {
    let server = Server::start(Way::Read, |_| {});
    let content = pattern(3_000_000);
    server.write("file", &content);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let stream = tokio::net::TcpStream::connect(server.address).await.unwrap();
        let (mut sender, connection) = h2::client::handshake(stream).await.unwrap();
        tokio::spawn(connection);
        let request = http::Request::get("http://x/file").header("range", "bytes=1-").body(()).unwrap();
        let response = sender.send_request(request, true).unwrap().0.await.unwrap();
        assert_eq!(response.status(), 206);
        let mut body = response.into_body();
        let mut received = Vec::new();
        while let Some(data) = body.data().await {
            let data = data.unwrap();
            body.flow_control().release_capacity(data.len()).unwrap();
            received.extend(data);
        }
        assert!(received == content[1..]);
    });
}
