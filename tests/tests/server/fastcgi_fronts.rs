//! Apache, HAProxy and lighttpd in front of the FastCGI listener, compared with the same servers in front of PHP-FPM;
//! and failures behind a web server.

use howdah_tests::fronts::Front;
use howdah_tests::process::{PATIENCE, eventually};
use howdah_tests::site::replace_file;
use howdah_tests::{Backend, Conn, Mode, Request, Response, Setup, Site, php, run};
use serde_json::{Map, Value};
use std::io::{Read, Write};
use std::net::TcpStream;

/// Times and the environment of processes.
const DIFFERENT: &[&str] = &[
    "REQUEST_TIME",
    "REQUEST_TIME_FLOAT",
    "REMOTE_PORT",
    "USER",
    "HOME",
    "PATH",
    "TMPDIR",
    "HOWDAH_TEST_MARK",
    "UNIQUE_ID",
];

/// The response of `dump.php`, or of another responder, with words in place of the parts that must differ.
fn dump(site: &Site, front: &Front, request: &Request) -> Map<String, Value> {
    let response: Response = front.conn().exchange(&request.clone().close());
    let (top, port) = (site.place().top.display().to_string(), front.port().to_string());
    let text = response.text().replace(&top, "TOP").replace(&port, "PORT");
    let mut map = match serde_json::from_str(&text) {
        Ok(Value::Object(map)) => map,
        _ => Map::from_iter([("(text)".to_owned(), Value::String(text))]),
    };
    map.insert("(status)".to_owned(), response.status.into());
    map.retain(|key, _| !DIFFERENT.contains(&key.as_str()));
    map
}

#[test]
fn web_servers_give_scripts_the_same_as_before_php_fpm() {
    // A connection that HAProxy keeps open occupies a PHP-FPM process.
    let setup = Setup::default().workers(6).www("dump.php");
    // Apache switches to that user if it starts as root.
    let setup =
        if rustix::process::geteuid().is_root() { setup.setting("listen_group", "\"www-data\"") } else { setup };
    let ours = Site::start(Mode::Classic, &setup.clone().behind_nginx().allow_log("Primary script unknown"));
    let theirs = Site::start(Backend::Reference, &setup);
    let fronts: [(&str, fn(&_, &_) -> Front); 3] =
        [("Apache", Front::apache), ("HAProxy", Front::haproxy), ("lighttpd", Front::lighttpd)];
    for (name, front) in fronts {
        let both = [&ours, &theirs].map(|site| (site, front(&site.place().root, &site.fastcgi())));
        let plain = dump(both[0].0, &both[0].1, &Request::get("/dump.php"));
        assert!(plain.contains_key("SCRIPT_NAME"), "{name}: {plain:?}");
        for request in [
            Request::get("/dump.php?x=1&y[]=2"),
            Request::get("/dump.php/a/b%20c?x=1").header("Cookie", "a=1"),
            Request::get("/pretty/x/y"),
            Request::get("/no.php"),
            Request::get("/dump.php").header("Authorization", "Basic dTpw").header("Proxy", "http://evil/"),
            Request::form("/dump.php/more", "a=1&b[]=2"),
            Request::new("PUT", "/dump.php").header("Content-Type", "text/plain").body(vec![b'x'; 100_000]),
        ] {
            let [mine, truth] = both.each_ref().map(|(site, front)| dump(site, front, &request));
            assert_eq!(mine, truth, "{name}: {request:?}");
        }
    }
    ours.finish();
    theirs.finish();
}

#[test]
fn failures_reach_the_web_server_as_such() {
    let setup = |s: Setup| {
        s.behind_nginx()
            .workers(1)
            .php("die.php", "posix_kill(getmypid(), 9); sleep(5);")
            .php("begun.php", "echo 'begun'; flush(); posix_kill(getmypid(), 9); sleep(5);")
            .php("wait.php", php!("fastcgi/waits.php"))
            .php("ok.php", "echo 'fine';")
            .expect_log("worker_died")
    };
    run(Mode::Classic, setup, |site| {
        // Before anything was sent: the same status as with Howdah's other protocols.
        assert_eq!(site.send(&Request::new("POST", "/die.php").body("")).status, 502);
        assert_eq!(site.get_ok("/ok.php"), "fine");
        // Within the response: nginx detects that it is incomplete.
        let mut conn = site.conn();
        conn.send(&Request::new("POST", "/begun.php").body("").close().bytes());
        let seen = || site.front_log().contains("prematurely closed");
        assert!(eventually(PATIENCE, seen), "{}", site.front_log());
        assert_eq!(site.get_ok("/ok.php"), "fine");
        // A client that leaves frees the worker: nginx closes its connection to Howdah, and the script ends when it
        // prints.
        let gate = site.gate("w");
        let mut leaving = site.conn();
        leaving.send(&Request::get("/wait.php").close().bytes());
        let held = gate.wait();
        drop(leaving);
        let in_front = || site.front_log().contains("client prematurely closed connection");
        assert!(eventually(PATIENCE, in_front), "{}", site.front_log());
        held.release();
        assert_eq!(site.get_ok("/ok.php"), "fine");
        assert_eq!(site.marks("went-on"), 0);
    });
}

#[test]
fn an_address_changes_its_protocol_with_a_reload() {
    let setup = |s: Setup| s.addresses_in_file().never_https().php("v.php", php!("fastcgi/variables.php"));
    run(Mode::Classic, setup, |site| {
        let port = site.port();
        let file = site.place().run.join("howdah.toml");
        let toml = std::fs::read_to_string(&file).unwrap();
        assert_eq!(site.get("/v.php?SCRIPT_NAME").text(), "/v.php");
        let plain = format!("127.0.0.1:{port}");
        replace_file(&file, toml.replace(&plain, &format!("fastcgi:{plain}")));
        assert!(site.howdah().command(&["reload"]).status.success(), "{}", site.log());
        let mut stream = TcpStream::connect(&plain).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.write_all(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n").unwrap();
        let mut said = Vec::new();
        let _ = stream.read_to_end(&mut said);
        assert!(said.is_empty(), "HTTP is not spoken there any more: {said:?}");
        let mut stream = TcpStream::connect(&plain).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        // A query for the server's parameters.
        stream.write_all(b"\x01\x09\0\0\0\x11\0\0\x0f\0FCGI_MPXS_CONNS").unwrap();
        let mut answer = [0; 26];
        stream.read_exact(&mut answer).unwrap();
        assert_eq!(&answer[8..], b"\x0f\x01FCGI_MPXS_CONNS0");
        drop(stream);
        replace_file(&file, toml);
        assert!(site.howdah().command(&["reload"]).status.success(), "{}", site.log());
        assert_eq!(Conn::open(site.target()).exchange(&Request::get("/v.php?SCRIPT_NAME").close()).text(), "/v.php");
    });
}
