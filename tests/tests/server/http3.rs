//! HTTP/3 with PHP behind it, and a client that shares no code with the server: aioquic, in Python and C.
//! `crates/protocol/tests/http3` tests attacks by clients on frames, streams and connections.

use howdah_tests::process::{PATIENCE, eventually};
use howdah_tests::{Conn, Mode, Request, Setup, Site, php, scenario};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

const HELLO: &str = "echo 'hello';";
const SEEN: &str = php!("http3/seen.php");

/// The interpreter that has aioquic; `scripts/setup.sh test` creates it.
fn python() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/aioquic/bin/python")
}

/// A site with HTTP/3.
pub(crate) fn http3(setup: Setup) -> Setup {
    let setup = setup.https().setting("tls.http3", "true").php("hello.php", HELLO);
    match python().exists() {
        true => setup,
        false => setup.lacks("aioquic", "the Python package that `scripts/setup.sh test` installs"),
    }
}

pub(crate) struct Client {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Client {
    pub(crate) fn start(site: &Site, arguments: &[&str]) -> Self {
        Self::spawn(site, arguments, Stdio::null())
    }

    /// Starts a client that sends requests until `end`.
    pub(crate) fn talking(site: &Site, arguments: &[&str]) -> Self {
        Self::spawn(site, arguments, Stdio::piped())
    }

    fn spawn(site: &Site, arguments: &[&str], input: Stdio) -> Self {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/server/http3_clients/aioquic_client.py");
        let mut command = Command::new(python());
        command.arg(script).arg(site.port().to_string()).arg(site.place().top.join("site.pem")).args(arguments);
        let mut child = command.stdin(input).stdout(Stdio::piped()).spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        Self { child, output }
    }

    /// Writes a line to the input of a client that is `talking`.
    pub(crate) fn tell(&mut self, line: &str) {
        writeln!(self.child.stdin.as_mut().unwrap(), "{line}").unwrap();
    }

    pub(crate) fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    pub(crate) fn end(mut self) -> Value {
        drop(self.child.stdin.take());
        let mut text = String::new();
        self.output.read_to_string(&mut text).unwrap();
        let status = self.child.wait().unwrap();
        assert!(status.success(), "{status}: {text}");
        let last = text.lines().last().unwrap_or_default();
        serde_json::from_str(last).unwrap_or_else(|e| panic!("{e}: {text}"))
    }
}

pub(crate) fn run(site: &Site, arguments: &[&str]) -> Value {
    Client::start(site, arguments).end()
}

fn parsed(response: &Value) -> Value {
    assert_eq!(response["status"], 200, "{response}");
    serde_json::from_str(response["text"].as_str().unwrap()).unwrap()
}

scenario!(
    scripts_see_http_3,
    howdah_only = "Debian's nginx has no HTTP/3",
    |s| http3(s).php("seen.php", SEEN),
    |site| {
        let response = run(site, &["get", "/seen.php?a=<b>", "cookie=a=1", "cookie=b=2"]);
        let seen = parsed(&response);
        assert_eq!((&response["fields"]["x-script"], &seen["protocol"]), (&"yes".into(), &"HTTP/3.0".into()));
        assert_eq!(
            (&seen["https"], &seen["scheme"], &seen["host"]),
            (&"on".into(), &"https".into(), &"localhost".into())
        );
        assert_eq!(seen["server"], format!("localhost:{}", site.port()));
        assert_eq!((&seen["client"], &seen["uri"]), (&"127.0.0.1".into(), &"/seen.php?a=<b>".into()));
        assert_eq!((&seen["cookie"]["a"], &seen["cookie"]["b"]), (&"1".into(), &"2".into()));
        assert_eq!((&seen["tls"], &seen["name"], &seen["early"]), (&"TLSv1.3".into(), &"localhost".into(), &"".into()));
        let head = run(site, &["head", "/seen.php"]);
        assert_eq!((&head["status"], &head["length"]), (&200.into(), &0.into()));
    },
);

scenario!(
    bodies_arrive_whole_in_both_directions,
    howdah_only = "Debian's nginx has no HTTP/3",
    |s| http3(s)
        .setting("http.max_body", "\"20M\"")
        .php("sum.php", "$b = file_get_contents('php://input'); echo strlen($b), ' ', hash('sha256', $b);")
        .php("large.php", "echo str_repeat('0123456789', 500000);")
        .file("large.txt", "0123456789".repeat(300_000)),
    |site| {
        for length in ["0", "1", "70000", "7000000"] {
            let told = run(site, &["post", "/sum.php", length]);
            assert_eq!(told["text"], format!("{length} {}", told["sent_sha256"].as_str().unwrap()));
        }
        assert_eq!(run(site, &["get", "/large.php"])["length"], 5_000_000);
        let file = run(site, &["get", "/large.txt"]);
        assert_eq!((&file["length"], &file["fields"]["content-length"]), (&3_000_000.into(), &"3000000".into()));
        let part = run(site, &["get", "/large.txt", "range=bytes=1000005-1000009"]);
        assert_eq!((&part["status"], &part["text"]), (&206.into(), &"56789".into()));
        assert_eq!(run(site, &["get", "/none.txt"])["status"], 404);
        // Unwanted streams do not delay the response, nor the connection.
        let unread = run(site, &["unread", "/none.txt", "5000000"]);
        assert_eq!(unread["after"], "hello");
    },
);

scenario!(
    a_stream_arrives_while_the_script_runs_over_http_3,
    howdah_only = "Debian's nginx has no HTTP/3",
    // aioquic treats a response after an informational one as trailers; those are tested with another client.
    |s| http3(s).php("stream.php", php!("http3/stream.php")),
    |site| {
        let gates = ["g0", "g1", "g2"].map(|name| site.gate(name));
        let mut client = Client::start(site, &["stream", "/stream.php"]);
        for (number, gate) in gates.iter().enumerate() {
            assert_eq!(client.line(), format!("part {number}"));
            gate.wait().release();
        }
        assert_eq!(client.end()["status"], 200);
    },
);

scenario!(
    many_requests_share_a_connection_over_http_3,
    howdah_only = "Debian's nginx has no HTTP/3",
    |s| http3(s).php("q.php", "echo $_SERVER['QUERY_STRING'];"),
    |site| {
        let texts = run(site, &["many", "/q.php", "90"]);
        let expected: Vec<String> = (0..90).map(|number| number.to_string()).collect();
        assert_eq!(texts["texts"], Value::from(expected));
    },
);

scenario!(
    http_3_clients_migrate_and_send_early_data,
    howdah_only = "Debian's nginx has no HTTP/3",
    |s| http3(s).workers(1).php("seen.php", SEEN).php("port.php", "echo $_SERVER['REMOTE_PORT'];"),
    |site| {
        let moved = run(site, &["move", "/port.php"]);
        assert_ne!(moved["before"], moved["after"], "{moved}");
        // A script that only reads may run before the handshake is complete, and can detect that; others must not.
        let early = run(site, &["early", "/seen.php", "/seen.php"]);
        assert_eq!((&early["taken"], &parsed(&early["get"])["early"]), (&true.into(), &"1".into()));
        // A request read just after the handshake has become complete is like any other.
        assert!([425, 200].iter().any(|status| early["post"]["status"] == *status), "{early}");
        assert_eq!(parsed(&early["later"])["early"], "");
        assert_eq!(run(site, &["raw", "0", "616263"])["closed"], 0x105, "a body without a head");
    },
);

scenario!(
    sigterm_finishes_running_requests_over_http_3,
    howdah_only = "Debian's nginx has no HTTP/3",
    |s| http3(s).workers(1).php("hold.php", "require 'gate.php'; gate('g'); echo 'finished';"),
    |site| {
        let gate = site.gate("g");
        let mut client = Client::start(site, &["drain", "/hold.php"]);
        assert_eq!(client.line(), "running");
        let held = gate.wait();
        site.howdah().signal(Signal::TERM);
        let target = site.target().clone();
        assert!(eventually(PATIENCE, || Conn::try_open(&target).is_err()), "the server still accepts connections");
        held.release();
        let told = client.end();
        assert_eq!((&told["text"], &told["closed"]), (&"finished".into(), &0x100.into()));
        assert_eq!(site.howdah_mut().wait(), Some(0));
    },
);

scenario!(
    http_3_is_advertised_to_clients,
    howdah_only = "Debian's nginx has no HTTP/3",
    |s| http3(s).php("own.php", "header('Alt-Svc: clear');"),
    |site| {
        let told = |path: &str| site.conn().exchange(&Request::get(path)).header("alt-svc").map(str::to_owned);
        let expected = format!("h3=\":{}\"; ma=86400", site.port());
        assert_eq!(told("/hello.php"), Some(expected.clone()));
        assert_eq!(told("/ready.txt"), Some(expected));
        assert_eq!(told("/own.php").as_deref(), Some("clear"), "a script's own value stays");
        let fields = &run(site, &["get", "/hello.php"])["fields"];
        assert!(fields.get("alt-svc").is_none(), "{fields}");
    },
);

scenario!(
    without_the_setting_there_is_no_http_3,
    howdah_only = "Debian's nginx has no HTTP/3",
    |s| s.https().php("hello.php", HELLO),
    |site| {
        assert_eq!(site.get("/hello.php").header("alt-svc"), None);
        let udp = std::fs::read_to_string(format!("/proc/{}/net/udp", site.howdah().pid())).unwrap();
        let port = format!(":{:04X} ", site.port());
        assert!(!udp.lines().any(|line| line.contains(&port)), "{udp}");
    },
);

const ECHO: &str = "$event = \\Howdah\\WebSocket::event();
    if ($event?->type === 'message') { $event->send($event->data, $event->binary); }
    if ($event?->type === 'open' && isset($_GET['refuse'])) { http_response_code(403); }
    if ($event?->type === 'close') { file_put_contents(__DIR__ . '/closed', \"$event->code\\n\", FILE_APPEND); }";

/// A script that echoes what comes over WebSockets, and a path without.
fn echo(setup: Setup) -> Setup {
    let rule = "[{ path = \"/echo.php\", websocket = \"/echo.php\", cors = { origins = [\"https://localhost\"] } }]";
    http3(setup).workers(2).php("echo.php", ECHO).setting("rule", rule)
}

scenario!(streams_of_http_3_may_be_websockets, howdah_only = "Debian's nginx has no HTTP/3", echo, |site| {
    let talked = run(site, &["talk", "/echo.php"]);
    assert_eq!(talked, json!({ "status": [200, 200, 200, 200], "fields": [], "resets": [null, null, null, null] }));
    let refused = run(site, &["upgrade", "/echo.php?refuse", "websocket"]);
    assert_eq!((&refused["status"], &refused["allowed"]), (&403.into(), &1.into()));
    // No other protocol, and no other path: a response would look like an upgrade.
    for (path, protocol) in [("/echo.php", "connect-udp"), ("/hello.php", "websocket")] {
        let other = run(site, &["upgrade", path, protocol]);
        let status = other["status"].as_u64();
        assert!(status.is_none_or(|status| status >= 300), "{path}: {other}");
    }
},);

scenario!(
    a_stop_closes_websockets_over_http_3,
    howdah_only = "Debian's nginx has no HTTP/3",
    |s| echo(s).setting("grace", "\"5s\""),
    |site| {
        let mut client = Client::start(site, &["stay", "/echo.php"]);
        assert_eq!(client.line(), "200");
        site.howdah().signal(Signal::TERM);
        assert_eq!(client.end(), json!({ "opcode": 8, "code": 1001, "reset": null }));
        assert!(eventually(PATIENCE, || site.howdah_mut().ended()));
        assert_eq!(std::fs::read_to_string(site.file("closed")).unwrap(), "1001\n");
    },
);

#[test]
fn without_websockets_extended_connect_is_malformed_over_http_3() {
    howdah_tests::run(Mode::Classic, http3, |site| {
        let refused = run(site, &["upgrade", "/hello.php", "websocket"]);
        assert_eq!(
            (&refused["status"], &refused["reset"], &refused["allowed"]),
            (&Value::Null, &0x10e.into(), &0.into())
        );
    });
}
