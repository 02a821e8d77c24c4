//! The WebSocket server of the package `howdah/swoole-compat`: an application written for Swoole's.

use super::websocket_events::closed;
use howdah_tests::websocket::{BINARY, TEXT, WebSocket};
use howdah_tests::{Mode, Setup, Site, php, run, script_scenario};

const PACKAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../php/swoole-compat");

fn server(setup: Setup, pool: &str) -> Setup {
    let code = php!("websocket_swoole/server.php", PACKAGE = PACKAGE);
    let rule = format!("[{{ path = \"/server.php\", websocket = \"/server.php\"{pool} }}]");
    setup.http1("the upgrade of a connection is HTTP/1.1's").php("server.php", &code).setting("rule", &rule)
}

fn open(site: &Site, name: &str) -> (WebSocket, String) {
    let target = format!("/server.php?name={name}");
    let mut socket = WebSocket::ask(site, &target, &[("Cookie", "id=7"), ("X-Own", "x")]).unwrap();
    let told: Vec<String> = serde_json::from_str(&socket.next(TEXT)).unwrap();
    assert_eq!(told[1..], [name, "7", "x", &target]);
    (socket, told[0].clone())
}

/// Opens three connections and uses each function.
fn talks(site: &Site) {
    let (mut ann, ann_id) = open(site, "ann");
    let (mut bob, bob_id) = open(site, "bob");
    let (mut eve, _) = open(site, "eve");
    let mut ask = |text: &str| {
        ann.send(TEXT, text);
        ann.next(TEXT)
    };
    assert_eq!(ask("count"), "[3,3,3,false,1]");
    assert_eq!(ask(&format!("about {bob_id}")), r#"[true,true,{"websocket_status":3}]"#);
    assert_eq!(ask("about 17"), "[false,false,false]");
    assert_eq!(ask("all"), format!("from {ann_id}"));
    assert_eq!([bob.next(TEXT), eve.next(TEXT)], [(); 2].map(|()| format!("from {ann_id}")));
    assert_eq!(ask(&format!("end {bob_id}")), "[true,false,false]");
    assert_eq!(bob.closed(), 4001);
    closed(site, &bob_id);
    eve.send(BINARY, b"\0bytes");
    assert_eq!(eve.next(BINARY), "\0bytes");
    ann.send(TEXT, "bye");
    assert_eq!(ann.closed(), 1000);
    closed(site, &ann_id);
    assert_eq!(site.get("/server.php").status, 426);
}

script_scenario!(
    an_application_of_swooles_websocket_server_works_as_a_script,
    howdah_only = "PHP-FPM has no WebSockets",
    |s| server(s, ""),
    |site| talks(site),
);

#[test]
fn an_application_of_swooles_websocket_server_works_as_a_worker_script() {
    for mode in ["worker", "async"] {
        let pool = |s: Setup| {
            s.more_processes(1)
                .setting("pool.ws.mode", &format!("\"{mode}\""))
                .setting("pool.ws.script", "\"../root/server.php\"")
                .setting("pool.ws.workers", "1")
        };
        run(Mode::Classic, |s| server(pool(s), ", pool = \"ws\""), |site| talks(site));
    }
}
