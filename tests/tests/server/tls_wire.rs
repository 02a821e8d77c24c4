//! TLS on the wire: slow, broken, truncated, large, or not TLS at all.

use howdah_tests::{Conn, Request, Target, php, scenario};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;

/// A connection without TLS.
fn plain(site: &howdah_tests::Site) -> Conn {
    Conn::open(&Target::Tcp(([127, 0, 0, 1], site.port()).into()))
}

scenario!(
    a_plain_request_to_a_tls_port_gets_an_explanation,
    howdah_only = "the harness configures the reference without TLS",
    |s| s.https(),
    |site| {
        for request in ["GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"] {
            let mut conn = plain(site);
            conn.send(request);
            let told = conn.response("GET");
            assert_eq!(told.status, 400);
            assert_eq!(told.text(), "400 Bad Request: this port speaks TLS (https).\n");
            assert!(conn.closed_by_server());
        }
        // Data that is neither TLS nor HTTP is answered with a TLS alert.
        let mut conn = plain(site);
        conn.send([0x00; 64]);
        assert_eq!(conn.raw_byte(), Some(21));
    }
);

scenario!(
    a_stalled_handshake_is_dropped_and_delays_no_other,
    howdah_only = "the harness configures the reference without TLS",
    |s| s.https().setting("threads", "1").time("http.header_timeout", "300ms"),
    |site| {
        let mut silent = plain(site);
        let mut stalling = plain(site);
        // The beginning of a ClientHello.
        stalling.send([0x16, 0x03, 0x01, 0x02, 0x00, 0x01, 0x00, 0x01, 0xfc]);
        let mut done = site.conn();
        let _ = done.exchange(&Request::get("/ready.txt")).expect(200);
        assert_eq!(site.get_ok("/ready.txt"), "ready\n");
        assert!(stalling.closed_by_server() && silent.closed_by_server());
        // The handshake's time does not count for the request's timeout.
        assert_eq!(site.get_ok("/ready.txt"), "ready\n");
    },
);

scenario!(
    large_files_and_uploads_pass,
    howdah_only = "the harness configures the reference without TLS",
    |s| s
        .https()
        .setting("http.max_body", "\"64M\"")
        .ini("post_max_size", "64M")
        .php("sum.php", "echo md5_file('php://input'), ' ', $_SERVER['CONTENT_LENGTH'];"),
    |site| {
        // Longer than the data encrypted in advance, and not a multiple of a record.
        let content: Vec<u8> = (0..20_000_003u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        std::fs::write(site.file("big.bin"), &content).unwrap();
        let source = site.place().tmp.join("source");
        std::fs::write(&source, &content).unwrap();
        let sum = Command::new("md5sum").arg(&source).output().unwrap();
        let sum = String::from_utf8(sum.stdout).unwrap()[..32].to_owned();
        let curl = |arguments: &[&str], path: &str| {
            let url = format!("https://127.0.0.1:{}{path}", site.port());
            let output = Command::new("curl").args(["-sSk"]).args(arguments).arg(url).output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            output.stdout
        };
        for version in ["--http1.1", "--http2"] {
            assert!(curl(&[version], "/big.bin") == content, "{version}");
            let upload = format!("@{}", source.display());
            let told =
                curl(&[version, "-H", "Expect:", "-H", "Content-Type: a/b", "--data-binary", &upload], "/sum.php");
            assert_eq!(String::from_utf8(told).unwrap(), format!("{sum} {}", content.len()), "{version}");
        }
        let mut conn = site.conn();
        conn.shrink_receive_buffer();
        conn.send(Request::get("/big.bin").header("Range", "bytes=1000-299999").bytes());
        let part = conn.response("GET").expect(206);
        assert!(part.body == content[1000..300_000]);
        let told = conn.exchange(&Request::post("/sum.php", "a/b", content.clone()));
        assert_eq!(told.expect(200).text(), format!("{sum} {}", content.len()));
        std::fs::remove_file(source).unwrap();
    },
);

scenario!(
    an_end_is_distinguished_from_a_cut,
    howdah_only = "the harness configures the reference without TLS",
    |s| s.https().php("long.php", php!("tls_wire/long.php")).allow_log("died"),
    |site| {
        // A body that is ended only by the connection: the harness accepts only `close_notify` as an end.
        let mut conn = site.conn();
        conn.send("GET /long.php HTTP/1.0\r\nHost: localhost\r\n\r\n");
        assert_eq!(conn.response("GET").expect(200).body.len(), 300_000);
        let mut conn = site.conn();
        let _ = conn.exchange(&Request::get("/long.php").close()).expect(200);
        assert!(conn.closed_by_server());
        // The same body, truncated.
        let mut conn = site.conn();
        conn.send("GET /long.php?die=1 HTTP/1.0\r\nHost: localhost\r\n\r\n");
        let _ = conn.head("GET");
        let cut = loop {
            match conn.try_read_some() {
                Ok(Some(_)) => {}
                Ok(None) => panic!("a cut looks like an end"),
                Err(error) => break error,
            }
        };
        assert_eq!(cut.kind(), std::io::ErrorKind::UnexpectedEof);
    },
);

scenario!(
    a_client_that_closes_its_side_gets_its_response,
    howdah_only = "the harness configures the reference without TLS",
    |s| s.https().php("slow.php", "usleep(200000); echo file_get_contents('php://input');"),
    |site| {
        let mut conn = site.conn();
        conn.send(Request::post("/slow.php", "a/b", "body").bytes());
        conn.half_close();
        assert_eq!(conn.response("POST").expect(200).text(), "body");
        assert!(conn.closed_by_server());
    },
);

scenario!(
    garbage_after_a_handshake_ends_the_connection_only,
    howdah_only = "the harness configures the reference without TLS",
    |s| s.https(),
    |site| {
        let mut conn = site.conn();
        let _ = conn.exchange(&Request::get("/ready.txt")).expect(200);
        // An unencrypted record in the encrypted session.
        conn.send_past_tls(&[23, 3, 3, 0, 64]);
        conn.send_past_tls(&[0x55; 64]);
        assert!(conn.try_response("GET").is_none() || conn.closed_by_server());
        assert_eq!(site.get_ok("/ready.txt"), "ready\n");
        // Half a record, and then the end.
        let mut conn = TcpStream::connect(("127.0.0.1", site.port())).unwrap();
        conn.write_all(&[0x16, 0x03]).unwrap();
        conn.shutdown(std::net::Shutdown::Write).unwrap();
        assert_eq!(conn.read(&mut [0; 100]).unwrap_or(0), 0);
        conn.shutdown(std::net::Shutdown::Both).unwrap_or(());
    }
);
