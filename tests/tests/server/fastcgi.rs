//! The FastCGI listener behind a real nginx. The scenarios run on nginx with PHP-FPM as well.

use howdah_tests::process::PATIENCE;
use howdah_tests::{Mode, Part, Request, Setup, Site, multipart, patience, php, run, script_scenario};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

script_scenario!(
    responses_through_nginx_are_those_of_php_fpm,
    |s: Setup| {
        s.behind_nginx()
            .ini("log_errors", "0")
            .php("r.php", php!("fastcgi/responses.php"))
            .file("picture.jpg", "<?php echo 'never run';")
    },
    |site: &mut Site| {
        let redirect = site.get("/r.php?do=redirect");
        assert_eq!((redirect.status, redirect.header("location")), (302, Some("/elsewhere?x=1")));
        assert_eq!(redirect.header("set-cookie"), Some("a=b; path=/"));
        let not_found = site.get("/r.php?do=404");
        assert_eq!((not_found.status, not_found.text().as_str()), (404, "nothing here"));
        assert_eq!(site.get("/r.php?do=500").status, 500);
        let reason = site.get("/r.php?do=teapot");
        assert_eq!((reason.status, reason.text().as_str()), (418, "short and stout"));
        for (status, what) in [(204, "empty"), (304, "not-modified")] {
            let response = site.get(&format!("/r.php?do={what}"));
            assert_eq!((response.status, response.body.len()), (status, 0));
        }
        let large = site.get("/r.php?do=large").expect(200);
        assert_eq!(large.body.len(), 3_000_000);
        assert!(large.body.iter().all(|byte| *byte == b'x'));
        let told = site.get("/r.php?do=length").expect(200);
        assert_eq!((told.header("content-length"), told.text().as_str()), (Some("5"), "hello"));
        let head = site.send(&Request::new("HEAD", "/r.php?do=length"));
        assert_eq!((head.status, head.header("content-length"), head.body.len()), (200, Some("5"), 0));
        assert_eq!(site.get("/r.php?do=hint").text(), "after a hint");
        let body = vec![b'b'; 1_500_000];
        let echo = site.send(&Request::new("POST", "/r.php?do=hash").header("Content-Type", "text/plain").body(body));
        assert_eq!(echo.text(), "1500000 15");
        let file = vec![b'f'; 300_000];
        let parts = [Part { name: "file", file: Some(("a.txt", "text/plain")), content: &file }];
        assert_eq!(site.send(&multipart("/r.php?do=upload", &parts)).text(), "a.txt 300000");
        // The connection is available again before the script has ended.
        let gate = site.gate("finished");
        assert_eq!(site.get("/r.php?do=finish").text(), "early");
        gate.release();
        site.wait_for_mark("went-on", 1);
        // Many requests over connections that nginx keeps open.
        for n in 0..50 {
            assert_eq!(site.get_ok(&format!("/r.php?do=echo&n={n}")), n.to_string());
        }
        assert_eq!(site.get("/no.php").status, 404);
        assert_eq!(site.get_ok("/ready.txt"), "ready\n");
    },
);

pub(super) fn record(kind: u8, id: u8, content: &[u8]) -> Vec<u8> {
    let [high, low] = u16::try_from(content.len()).unwrap().to_be_bytes();
    [&[1, kind, 0, id, high, low, 0, 0], content].concat()
}

pub(super) fn begin(id: u8, flags: u8) -> Vec<u8> {
    record(1, id, &[0, 1, flags, 0, 0, 0, 0, 0])
}

/// A request without a body.
pub(super) fn request(site: &Site, id: u8, flags: u8, script: &str, more: &[(&str, &str)]) -> Vec<u8> {
    let file = site.file(script.trim_start_matches('/')).display().to_string();
    let name = script.split(".php").next().unwrap().to_owned() + ".php";
    let own = [("SCRIPT_FILENAME", &*file), ("SCRIPT_NAME", &*name), ("REQUEST_METHOD", "GET")];
    let mut content = Vec::new();
    for (name, value) in own.iter().chain(more) {
        content.push(u8::try_from(name.len()).unwrap());
        content.extend_from_slice(&(u32::try_from(value.len()).unwrap() | 0x8000_0000).to_be_bytes());
        content.extend_from_slice(name.as_bytes());
        content.extend_from_slice(value.as_bytes());
    }
    [begin(id, flags), record(4, id, &content), record(4, id, b""), record(5, id, b"")].concat()
}

pub(super) fn connect(site: &Site) -> UnixStream {
    let stream = UnixStream::connect(site.fastcgi()).unwrap();
    stream.set_read_timeout(Some(patience(PATIENCE))).unwrap();
    stream
}

/// Reads records up to the end of a request or of the connection: standard output, standard error, and end statuses.
pub(super) fn response(stream: &mut UnixStream) -> (String, String, Vec<u8>) {
    let (mut out, mut error, mut ends) = (Vec::new(), Vec::new(), Vec::new());
    let mut header = [0; 8];
    while ends.is_empty() && stream.read_exact(&mut header).is_ok() {
        let mut content = vec![0; usize::from(u16::from_be_bytes([header[4], header[5]])) + usize::from(header[6])];
        stream.read_exact(&mut content).unwrap();
        match header[1] {
            6 => out.extend(content),
            7 => error.extend(content),
            3 => ends.push(content[4]),
            _ => {}
        }
    }
    (String::from_utf8_lossy(&out).into_owned(), String::from_utf8_lossy(&error).into_owned(), ends)
}

/// Sends bytes and returns standard output until the connection ends.
pub(super) fn asked(site: &Site, bytes: &[u8]) -> String {
    let mut stream = connect(site);
    stream.write_all(bytes).unwrap();
    response(&mut stream).0
}

#[test]
fn records_are_served_and_refused_by_the_protocols_rules() {
    let setup = |s: Setup| {
        s.behind_nginx()
            .php("v.php", php!("fastcgi/variables.php"))
            .php("wait.php", "require 'gate.php'; gate('w'); echo 'waited';")
            .expect_log("no.php")
            .file("picture.jpg", "<?php echo 'never run';")
    };
    run(Mode::Classic, setup, |site| {
        let mut kept = connect(site);
        let variables = [("HTTP_PROXY", "http://evil/"), ("REMOTE_ADDR", "192.0.2.7"), ("QUERY_STRING", "REMOTE_ADDR")];
        for id in [1, 7] {
            kept.write_all(&request(site, id, 1, "/v.php", &variables)).unwrap();
            let (out, error, ends) = response(&mut kept);
            assert!(out.ends_with("\r\n\r\n192.0.2.7") && !out.contains("Status:"), "{out}");
            assert_eq!((error.as_str(), ends.as_slice()), ("", &[0][..]));
        }
        // PHP itself omits it, here as in PHP-FPM.
        let proxy = [("HTTP_PROXY", "http://evil/"), ("QUERY_STRING", "HTTP_PROXY")];
        assert!(asked(site, &request(site, 1, 0, "/v.php", &proxy)).ends_with("nothing"));
        let admin = [("PHP_ADMIN_VALUE", "memory_limit=77M"), ("PHP_VALUE", "precision=5"), ("QUERY_STRING", "ini")];
        assert!(asked(site, &request(site, 1, 0, "/v.php", &admin)).ends_with("77M 5"));
        // Settings of one request must not affect the next.
        assert!(!asked(site, &request(site, 1, 0, "/v.php", &[("QUERY_STRING", "ini")])).ends_with("77M 5"));
        let root = site.place().root.display().to_string();
        let info = [("QUERY_STRING", "PATH_INFO"), ("PATH_INFO", "/v.php/a/b"), ("DOCUMENT_ROOT", &root)];
        assert!(asked(site, &request(site, 1, 0, "/v.php/a/b", &info)).ends_with("\r\n\r\n/a/b"));
        // Byte by byte.
        let mut slow = connect(site);
        for byte in request(site, 1, 0, "/v.php", &variables) {
            slow.write_all(&[byte]).unwrap();
        }
        assert!(response(&mut slow).0.ends_with("192.0.2.7"));
        assert_eq!(slow.read(&mut [0; 1]).unwrap(), 0, "the server keeps the connection");
        for (script, status, text, log) in [
            ("/picture.jpg", "Status: 403 ", "Access denied.\n", "has been denied (see security.limit_extensions)"),
            ("/no.php", "Status: 404 ", "File not found.\n", "Primary script unknown"),
        ] {
            let mut stream = connect(site);
            stream.write_all(&request(site, 1, 0, script, &[])).unwrap();
            let (out, error, _) = response(&mut stream);
            assert!(out.starts_with(status) && out.ends_with(text) && error.ends_with(log), "{out} {error}");
        }

        // A second concurrent request is refused; the first one continues, and may be aborted.
        let gate = site.gate("w");
        let mut busy = connect(site);
        busy.write_all(&request(site, 1, 1, "/wait.php", &[])).unwrap();
        let held = gate.wait();
        busy.write_all(&begin(2, 1)).unwrap();
        assert_eq!(response(&mut busy).2, [1], "FCGI_CANT_MPX_CONN");
        busy.write_all(&record(2, 1, b"")).unwrap();
        assert_eq!(response(&mut busy).2, [0], "an aborted request has ended");
        held.release();
        busy.write_all(&request(site, 3, 0, "/v.php", &variables)).unwrap();
        assert!(response(&mut busy).0.ends_with("192.0.2.7"));

        for wrong in [
            b"GET / HTTP/1.1\r\n\r\n".to_vec(),
            [begin(1, 0), begin(1, 0)].concat(),
            [begin(1, 0), record(5, 1, b"x")].concat(),
        ] {
            assert_eq!(asked(site, &wrong), "", "{wrong:?}");
        }
        let large = vec![b'a'; 60_000];
        let many = [begin(1, 0), (0..10).flat_map(|_| record(4, 1, &large)).collect()].concat();
        let refused = {
            let mut stream = connect(site);
            // The server may have refused before everything was sent.
            let _ = stream.write_all(&many);
            response(&mut stream).0
        };
        assert!(refused.starts_with("Status: 431 "), "{refused}");
        assert!(asked(site, &request(site, 1, 0, "/v.php", &variables)).ends_with("192.0.2.7"));
    });
}
