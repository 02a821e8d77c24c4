//! Apache, Caddy, HAProxy, lighttpd and cgi-fcgi in front of the FastCGI listener, compared with the same servers in
//! front of PHP-FPM; and failures behind a web server.

use howdah_skip::skip;
use howdah_tests::fronts::{CADDY, Front, unpacked};
use howdah_tests::nginx::Nginx;
use howdah_tests::process::{PATIENCE, eventually};
use howdah_tests::site::replace_file;
use howdah_tests::{Backend, Conn, Mode, Request, Response, Setup, Site, Target, patience, php, run};
use serde_json::{Map, Value};
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};

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
fn web_servers_pass_scripts_the_same_variables_as_with_php_fpm() {
    // A connection that HAProxy keeps open occupies a PHP-FPM process.
    let setup = Setup::default().workers(6).www("dump.php");
    // Apache switches to that user if it starts as root.
    let setup =
        if rustix::process::geteuid().is_root() { setup.setting("listen_group", "\"www-data\"") } else { setup };
    let ours = Site::start(Mode::Classic, &setup.clone().behind_nginx().allow_log("Primary script unknown"));
    let theirs = Site::start(Backend::Reference, &setup);
    let mut fronts: Vec<(&str, fn(&_, &_) -> Front)> =
        vec![("Apache", Front::apache), ("HAProxy", Front::haproxy), ("lighttpd", Front::lighttpd)];
    if unpacked(CADDY).is_some() {
        fronts.push(("Caddy", Front::caddy));
    } else {
        howdah_skip::record("caddy", "scripts/unpack-package.sh unpacks Debian's package");
    }
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
fn cgi_fcgi_prints_the_same_as_with_php_fpm() {
    let Some(program) = unpacked("web-servers/cgi-fcgi") else {
        skip!("cgi-fcgi", "scripts/unpack-package.sh unpacks Debian's package");
    };
    let setup = Setup::default().workers(2).php("r.php", php!("fastcgi/responses.php"));
    let ours = Site::start(Mode::Classic, &setup.clone().behind_nginx().allow_log("Primary script unknown"));
    let theirs = Site::start(Backend::Reference, &setup);
    let printed = |site: &Site, script: &str, query: &str, body: &str| {
        let mut command = Command::new(&program);
        command.args(["-bind", "-connect"]).arg(site.fastcgi()).env_clear();
        let method = if body.is_empty() { "GET" } else { "POST" };
        command.envs([("REQUEST_METHOD", method), ("QUERY_STRING", query), ("CONTENT_TYPE", "text/plain")]);
        command.env("SCRIPT_FILENAME", site.file(script)).env("CONTENT_LENGTH", body.len().to_string());
        command.env("LD_LIBRARY_PATH", program.parent().unwrap());
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        process.stdin.take().unwrap().write_all(body.as_bytes()).unwrap();
        let output = process.wait_with_output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{text}{error}"));
        // The case of names, and the order of fields, say nothing. Howdah adds a length that it knows.
        let field =
            |line: &str| line.split_once(": ").map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()));
        let mut fields: Vec<_> = head.lines().filter_map(field).collect();
        fields.retain(|(name, _)| name != "content-length");
        fields.sort();
        (output.status.code(), fields, body.to_owned(), error)
    };
    let body = "b".repeat(200_000);
    for (script, query, body) in [
        ("r.php", "do=length", ""),
        ("r.php", "do=redirect", ""),
        ("r.php", "do=fine", ""),
        ("r.php", "do=404", ""),
        ("r.php", "do=large", ""),
        ("r.php", "do=hash", &*body),
        ("none.php", "", ""),
    ] {
        let [own, truth] = [&ours, &theirs].map(|site| printed(site, script, query, body));
        assert_eq!(own, truth, "{script} {query}");
    }
    ours.finish();
    theirs.finish();
}

/// As with PHP-FPM, one pool serves all of a web server's hosts, and the web server sends files that scripts hand over.
#[test]
fn hosts_of_a_web_server_share_a_pool_that_leaves_files_to_it() {
    let setup = Setup::default().workers(2);
    let setup =
        if rustix::process::geteuid().is_root() { setup.setting("listen_group", "\"www-data\"") } else { setup };
    let ours = Site::start(Mode::Classic, &setup.clone().behind_nginx());
    let theirs = Site::start(Backend::Reference, &setup);
    let answers = [&ours, &theirs].map(|site| {
        let top = &site.place().top;
        for host in ["a", "b"] {
            let public = top.join(host).join("public");
            fs::create_dir_all(&public).unwrap();
            fs::write(public.join("index.php"), format!("<?php\n{}", php!("fastcgi/hosts.php"))).unwrap();
            fs::write(top.join(host).join("private.txt"), format!("of {host}")).unwrap();
        }
        let nginx = Nginx::start(1, |_, ports| {
            let server = |host: &str| {
                format!(
                    "server {{ listen 127.0.0.1:{0}; server_name {host}.localhost; root {1}/{host}/public;
                       location /private/ {{ internal; alias {1}/{host}/; }}
                       location / {{ include /etc/nginx/fastcgi.conf; fastcgi_pass unix:{2};
                         fastcgi_param SCRIPT_FILENAME $document_root/index.php; }} }}",
                    ports[0],
                    top.display(),
                    site.fastcgi().display()
                )
            };
            server("a") + &server("b")
        });
        let ask = |host: &str, path: &str| {
            let mut conn = Conn::open(&Target::Tcp(([127, 0, 0, 1], nginx.port(0)).into()));
            let response = conn.exchange(&Request::get(path).header("Host", &format!("{host}.localhost")).close());
            let plain = |text: &str| text.replace(&top.display().to_string(), "TOP");
            let field = |name: &str| plain(response.header(name).unwrap_or_default());
            (
                response.status,
                plain(&response.text()),
                field("x-accel-redirect"),
                field("x-sendfile"),
                field("content-type"),
            )
        };
        ["a", "b", "a"].map(|host| ["/", "/?accel", "/?sendfile", "/private/private.txt"].map(|path| ask(host, path)))
    });
    assert_eq!(answers[0], answers[1]);
    let [a, b, _] = &answers[0];
    assert_eq!(
        (a[0].1.as_str(), b[0].1.as_str()),
        ("TOP/a/public TOP/a/public/index.php", "TOP/b/public TOP/b/public/index.php")
    );
    assert_eq!((a[1].1.as_str(), b[1].1.as_str()), ("of a", "of b"), "nginx sends the file");
    assert!(a[2].3.ends_with("/private.txt") && a[3].0 == 404, "{a:?}");
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
        conn.send(Request::new("POST", "/begun.php").body("").close().bytes());
        let seen = || site.front_log().contains("prematurely closed");
        assert!(eventually(PATIENCE, seen), "{}", site.front_log());
        assert_eq!(site.get_ok("/ok.php"), "fine");
        // A client that leaves frees the worker: nginx closes its connection to Howdah, and the script ends when it
        // prints.
        let gate = site.gate("w");
        let mut leaving = site.conn();
        leaving.send(Request::get("/wait.php").close().bytes());
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
        let toml = fs::read_to_string(&file).unwrap();
        assert_eq!(site.get("/v.php?SCRIPT_NAME").text(), "/v.php");
        let plain = format!("127.0.0.1:{port}");
        replace_file(&file, toml.replace(&plain, &format!("fastcgi:{plain}")));
        assert!(site.howdah().command(&["reload"]).status.success(), "{}", site.log());
        let mut stream = TcpStream::connect(&plain).unwrap();
        stream.set_read_timeout(Some(patience(PATIENCE))).unwrap();
        stream.write_all(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n").unwrap();
        let mut said = Vec::new();
        let _ = stream.read_to_end(&mut said);
        assert!(said.is_empty(), "the address still speaks HTTP: {said:?}");
        let mut stream = TcpStream::connect(&plain).unwrap();
        stream.set_read_timeout(Some(patience(PATIENCE))).unwrap();
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
