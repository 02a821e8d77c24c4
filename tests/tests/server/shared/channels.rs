//! WebSocket channels across several servers.

use super::sharing;
use crate::server::websocket_channels::{self, RULE, room, without_rule};
use crate::server::websocket_events::{chat, open};
use howdah_tests::process::{PATIENCE, eventually};
use howdah_tests::relay::Relay;
use howdah_tests::servers::Server;
use howdah_tests::websocket::TEXT;
use howdah_tests::{Mode, Setup, Site};
use std::fs;
use std::time::Duration;

#[test]
fn a_script_reaches_the_connections_of_its_channel_on_every_server() {
    let redis = Server::redis(false);
    let setup = sharing(chat(Setup::default()), "redis", redis.port).allow_log("reach other servers when it is back");
    let sites = [(); 2].map(|()| Site::start(Mode::Classic, &setup));
    let mut sockets = sites.each_ref().map(|site| open(site, "room=a").0);
    for number in 0..20 {
        assert_eq!(sites[number % 2].get_ok(&format!("/chat.php?publish=a&text={number}")), "no event");
        for socket in &mut sockets {
            assert_eq!(socket.next(TEXT), number.to_string());
        }
    }
    drop((sockets, redis));
    sites.into_iter().for_each(Site::finish);
}

#[test]
fn scripts_count_the_connections_of_a_channel_on_every_server() {
    let redis = Server::redis(false);
    let setup = sharing(chat(Setup::default()), "redis", redis.port).time("presence_interval", "1s");
    let setup = setup.allow_log("reach other servers when it is back");
    let sites = [(); 2].map(|()| Site::start(Mode::Classic, &setup));
    let mut sockets: Vec<_> = [&sites[0], &sites[0], &sites[1]].map(|site| open(site, "room=a").0).into();
    let is = |expected: &str| {
        let counts = || sites.each_ref().map(|site| site.get_ok("/chat.php?count=a"));
        assert!(eventually(PATIENCE, || counts().iter().all(|count| count == expected)), "{:?}", counts());
    };
    is("3");
    sockets.remove(0).send(TEXT, "bye");
    is("2");
    sockets.remove(1).send(TEXT, "bye");
    is("1");
    drop((sockets, redis));
    sites.into_iter().for_each(Site::finish);
}

/// The history of a hub that a reload opens is read from the broker; a client that resumes does not miss it.
#[test]
fn a_connection_that_resumes_after_a_reload_waits_for_the_history() {
    let redis = Server::redis(false);
    let slow = Relay::to(redis.port, Duration::from_millis(400));
    let shared = |setup, port| sharing(setup, "redis", port).allow_log("reach other servers when it is back");
    let near = Site::start(Mode::Classic, &shared(room(Setup::default()), redis.port));
    let far = Site::start(Mode::Classic, &shared(without_rule(Setup::default()), slow.port));
    for (id, text) in [("1", "one"), ("2", "two"), ("3", "three")] {
        assert_eq!(near.get_ok(&format!("/room.php?id={id}&text={text}")), "published");
    }
    let toml = far.place().run.join("howdah.toml");
    let settings = fs::read_to_string(&toml).unwrap();
    fs::write(&toml, format!("rule = {RULE}\n{settings}")).unwrap();
    assert!(far.howdah().command(&["reload"]).status.success());
    let mut back = websocket_channels::open(&far, "after=1");
    assert_eq!((back.next(TEXT), back.next(TEXT)), ("two".to_owned(), "three".to_owned()));
    drop((back, slow, redis));
    [near, far].into_iter().for_each(Site::finish);
}
