//! Questions of scripts about WebSocket connections: `exists()`, `count()`, `connections()`.

use super::websocket_events::closed;
use howdah_tests::process::{PATIENCE, eventually, signal};
use howdah_tests::websocket::{TEXT, WebSocket};
use howdah_tests::{Mode, Setup, Site, php, run, script_scenario};
use rustix::process::Signal;

const WHO: &str = php!("websocket_queries/who.php");
const ASKERS: &str = php!("websocket_queries/askers.php");

fn who(setup: Setup) -> Setup {
    let rule = "[{ path = \"/who.php\", websocket = \"/who.php\" }]";
    setup.http1("the upgrade of a connection is HTTP/1.1's").php("who.php", WHO).setting("rule", rule)
}

fn open(site: &Site, query: &str) -> (WebSocket, String) {
    let mut socket = WebSocket::open(site, &format!("/who.php?{query}"));
    let welcome = socket.next(TEXT);
    (socket, welcome.strip_prefix("welcome ").unwrap().to_owned())
}

script_scenario!(
    scripts_can_query_open_connections_and_members_of_channels,
    howdah_only = "PHP-FPM has no WebSockets",
    who,
    |site| {
        assert_eq!(site.get_ok("/who.php"), "[0,[]]");
        let (mut ann, ann_id) = open(site, "name=ann&rooms=a,b");
        let (mut bob, bob_id) = open(site, "name=bob&rooms=b");
        let (_eve, _) = open(site, "name=eve");
        assert_eq!(site.get_ok("/who.php"), r#"[3,["ann","bob","eve"]]"#);
        assert_eq!(site.get_ok("/who.php?room=a"), r#"[1,["ann"]]"#);
        assert_eq!(site.get_ok("/who.php?room=b"), r#"[2,["ann","bob"]]"#);
        assert_eq!(site.get_ok("/who.php?room=c"), "[0,[]]");
        assert_eq!(site.get_ok(&format!("/who.php?room=c&id={ann_id}")), "[0,[]][true,true]");
        assert_eq!(site.get_ok("/who.php?room=c&id=0"), "[0,[]][false,false]");
        // From its own events too, where an ordered close counts at once.
        ann.send(TEXT, "here");
        assert_eq!(ann.next(TEXT), "[true,3]");
        assert_eq!(site.get_ok(&format!("/who.php?room=c&id={bob_id}&end=1")), "[0,[]][true,false]");
        assert_eq!(bob.closed(), 1000);
        closed(site, "false");
        assert_eq!(site.get_ok("/who.php?room=b"), r#"[1,["ann"]]"#);
        assert_eq!(site.get_ok(&format!("/who.php?id={bob_id}")), r#"[2,["ann","eve"]][false,false]"#);
    },
);

/// In async mode only the coroutine that asks waits: the server is stopped, so it answers nothing for a while.
#[test]
fn other_coroutines_run_while_some_wait_for_the_answer() {
    run(
        Mode::Async,
        |s| who(s).workers(1).php("askers.php", ASKERS),
        |site| {
            let (_ann, _) = open(site, "name=ann");
            let mut asking = site.conn();
            asking.send("GET /askers.php HTTP/1.1\r\nHost: localhost\r\n\r\n");
            let ticks = || -> u64 {
                let text = std::fs::read_to_string(site.file("ticks")).unwrap_or_default();
                text.parse().unwrap_or(0)
            };
            assert!(eventually(PATIENCE, || ticks() > 0));
            let server = site.howdah().pid();
            signal(server, Signal::STOP);
            std::fs::write(site.file("ask"), "").unwrap();
            let has_asked = eventually(PATIENCE, || site.file("asked").exists());
            let before = ticks();
            let goes_on = eventually(PATIENCE, || ticks() > before + 20);
            signal(server, Signal::CONT);
            assert!(has_asked && goes_on, "{has_asked} {goes_on}");
            let response = asking.response("GET");
            assert_eq!((response.status, response.text().as_str()), (200, r#"[[[false,1]],"cancelled",1]"#));
        },
    );
}
