//! Responses through the doctor are those of the server behind it, nginx or Howdah.

use super::{ENOUGH, Shadow, shop, steady, url};
use howdah_tests::websocket::{TEXT, WebSocket};
use howdah_tests::{Backend, Conn, Mode, Request, Response, Setup, Site};

/// Describes the request that it gets.
const ECHO: &str = "http_response_code((int) ($_GET['status'] ?? 200)); header('X-Method: ' . $_SERVER['REQUEST_METHOD']); header('Set-Cookie: a=b', false); header('Set-Cookie: c=d', false); $body = file_get_contents('php://input'); if (http_response_code() !== 204) { echo strlen($body), sha1($body), ' ', $_SERVER['REQUEST_URI'], ' ', $_SERVER['HTTP_HOST'], ' ', $_SERVER['HTTP_X_OF'] ?? '', ' ', $_POST['name'] ?? ''; }";

/// Sends back each message.
const CHAT: &str =
    "$event = \\Howdah\\WebSocket::event(); if ($event?->type === 'message') { $event->send('echo ' . $event->data); }";

/// Number of the requests that are compared: plain GETs.
const COMPARED: &str = "8";

fn requests() -> Vec<Request> {
    let large = vec![b'u'; 3 << 20];
    let mut all: Vec<Request> = [
        "/echo.php?a=%C3%A9&b[]=1",
        "/echo.php?status=204",
        "/echo.php?status=301",
        "/echo.php?status=404",
        "/echo.php?status=500",
        "/static.txt",
        "/missing.txt",
    ]
    .map(Request::get)
    .to_vec();
    all.extend(["HEAD", "DELETE", "OPTIONS", "PROPFIND"].map(|method| Request::new(method, "/echo.php")));
    all.extend([
        Request::get("/echo.php").header("Host", "other.example:81").header("X-Of", "caf\u{e9}"),
        Request::get("/static.txt").header("Range", "bytes=2-5"),
        Request::get("/static.txt").header("If-Modified-Since", "Fri, 01 Jan 2100 00:00:00 GMT"),
        Request::form("/echo.php", "name=me"),
        Request::new("PUT", "/echo.php").body(&large),
        Request::new("PATCH", "/echo.php").chunks(&[b"one", &large, b"three"]),
        Request::new("POST", "/echo.php").header("Expect", "100-continue").body("continued"),
    ]);
    all
}

fn compare(backend: impl Into<Backend>, setup: Setup) -> (Site, Shadow, tempfile::TempDir) {
    let setup = setup.workers(2).php("echo.php", ECHO).file("static.txt", "static text\n");
    let old = Site::start(backend, &setup);
    let top = shop(&format!("root = \"{}\"\n", old.place().root.display()));
    let shadow = Shadow::start(top.path(), &url(&old), &["--pages", COMPARED]);
    let (mut through, mut direct) = (Conn::open(&shadow.target), Conn::open(old.target()));
    for request in requests() {
        let (one, other) = (through.exchange(&request), direct.exchange(&request));
        assert_eq!(steady(&one, shadow.port.number), steady(&other, old.port()), "{request:?}");
        // A server may omit 100 once the body has arrived (RFC 9110, section 10.1.1); `wire` has it.
        let interim = |response: &Response| -> Vec<u16> {
            response.interim.iter().map(|response| response.status).filter(|status| *status != 100).collect()
        };
        assert_eq!(interim(&one), interim(&other), "{request:?}");
    }
    (old, shadow, top)
}

#[test]
fn nginx_and_php_fpm_look_the_same_through_the_doctor() {
    let (old, shadow, _top) = compare(Backend::Reference, Setup::default());
    shadow.wait_for(ENOUGH);
    let (code, report) = shadow.end();
    assert_eq!(code, Some(1), "{report:#}");
    old.finish();
}

#[test]
fn howdah_looks_the_same_through_the_doctor_and_changes_protocols() {
    let setup = Setup::default().never_https().http1("the doctor speaks HTTP/1.1").php("chat.php", CHAT);
    let rule = "[{ path = \"/chat.php\", websocket = \"/chat.php\" }]";
    let (old, shadow, _top) = compare(Mode::Classic, setup.setting("rule", rule));
    let mut conn = Conn::open(&shadow.target);
    let handshake = Request::get("/chat.php")
        .header("Connection", "keep-alive, Upgrade")
        .header("Upgrade", "websocket")
        .header("Sec-WebSocket-Version", "13")
        .header("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==");
    conn.send(handshake.bytes());
    let head = conn.next_head();
    assert_eq!((head.status, head.header("sec-websocket-accept")), (101, Some("s3pPLMBiTxaQ9kYGzzhZRbK+xOo=")));
    let mut socket = WebSocket { conn, head };
    for message in ["hello".to_owned(), "x".repeat(50_000)] {
        socket.send(TEXT, &message);
        assert_eq!(socket.next(TEXT), format!("echo {message}"));
    }
    shadow.wait_for(ENOUGH);
    let (code, report) = shadow.end();
    assert_eq!(code, Some(0), "{report:#}");
    assert_eq!(report["pages"].to_string(), COMPARED, "{report:#}");
    old.finish();
}
