//! Channels of WebSocket connections: their history, and the hub that they share with Mercure.

use super::mercure::{HUB, Subscriber, bearer, hub, published, publisher, subscriber_token};
use howdah_tests::websocket::{TEXT, WebSocket};
use howdah_tests::{Request, Setup, Site, php, scenario, script_scenario};
use serde_json::{Value, json};

const ROOM: &str = php!("websocket_channels/room.php");

/// The rule that sends connections to the script.
pub(super) const RULE: &str = "[{ path = \"/room.php\", websocket = \"/room.php\" }]";

pub(super) fn room(setup: Setup) -> Setup {
    without_rule(setup).setting("rule", RULE)
}

pub(super) fn without_rule(setup: Setup) -> Setup {
    setup.http1("the upgrade of a connection is HTTP/1.1's").workers(1).php("room.php", ROOM)
}

pub(super) fn open(site: &Site, query: &str) -> WebSocket {
    let mut socket = WebSocket::open(site, &format!("/room.php?{query}"));
    assert_eq!(socket.next(TEXT), "welcome");
    socket
}

script_scenario!(
    a_client_that_comes_back_gets_the_messages_it_has_missed,
    howdah_only = "PHP-FPM has no WebSockets",
    room,
    |site| {
        let mut first = open(site, "");
        for (id, text) in [("1", "one"), ("2", "two"), ("3", "three")] {
            assert_eq!(site.get_ok(&format!("/room.php?id={id}&text={text}")), "published");
            assert_eq!(first.next(TEXT), text);
        }
        // A message without an id is only for current subscribers.
        assert_eq!(site.get_ok("/room.php?text=passing"), "published");
        assert_eq!(first.next(TEXT), "passing");
        let mut back = open(site, "after=1");
        assert_eq!((back.next(TEXT), back.next(TEXT)), ("two".to_owned(), "three".to_owned()));
        let mut all = open(site, "after=earliest");
        assert_eq!([0; 3].map(|_| all.next(TEXT)), ["one", "two", "three"]);
        assert_eq!(site.get_ok("/room.php?id=4&text=four"), "published");
        assert_eq!([&mut first, &mut back, &mut all].map(|socket| socket.next(TEXT)), ["four"; 3]);
        let refused = site.get_ok("/room.php?id=%0Adata:%20forged&text=x");
        assert!(refused.contains("must not contain control characters"), "{refused}");
    },
);

scenario!(a_packed_message_reaches_all_clients_that_take_it, howdah_only = "PHP-FPM has no WebSockets", room, |site| {
    let ask = |fields: &[(&str, &str)]| {
        let mut socket = WebSocket::ask(site, "/room.php", fields).unwrap();
        assert_eq!(socket.next(TEXT), "welcome");
        socket
    };
    let mut plain = ask(&[]);
    let mut packing = [(); 3].map(|()| ask(&[("Sec-WebSocket-Extensions", "permessage-deflate")]));
    for text in ["one ".repeat(400), "two ".repeat(600)] {
        assert_eq!(site.get_ok(&format!("/room.php?text={}", text.replace(' ', "%20"))), "published");
        let frames = packing.each_mut().map(|socket| socket.try_next().unwrap());
        assert!(frames[0].first == TEXT | 0x40 && frames[0].payload.len() < 60, "{:x}", frames[0].first);
        assert!(frames.iter().all(|frame| *frame == frames[0]), "{frames:?}");
        // RFC 7692: the end of each message's last block is left out.
        let data = [&frames[0].payload[..], &[0, 0, 0xff, 0xff]].concat();
        let mut unpacked = vec![0; 2 * text.len()];
        let mut inflate = flate2::Decompress::new(false);
        inflate.decompress(&data, &mut unpacked, flate2::FlushDecompress::Sync).unwrap();
        unpacked.truncate(inflate.total_out() as usize);
        assert_eq!(String::from_utf8(unpacked).unwrap(), text);
        assert_eq!(plain.next(TEXT), text);
    }
},);

script_scenario!(
    channels_and_topics_of_mercure_are_the_same,
    howdah_only = "a Mercure hub is Howdah's",
    |s| hub(room(s)),
    |site| {
        let mut socket = open(site, "");
        let mut anonymous = Subscriber::anonymous(site, "topic=room");
        let token = subscriber_token(json!({ "subscribe": ["room", "/.well-known/mercure/subscriptions/room"] }));
        let mut allowed = Subscriber::open(site.target(), &bearer(Request::get(&format!("{HUB}?topic=room")), &token));
        // A channel's messages are private: the hub's subscribers need a token for them.
        assert_eq!(site.get_ok("/room.php?id=7&text=hello"), "published");
        assert_eq!(socket.next(TEXT), "hello");
        assert_eq!(allowed.event(), "id: 7\ndata: hello\n\n");
        let id = published(site, &publisher(), "topic=room&data=to%20all");
        assert_eq!(socket.next(TEXT), "to all");
        let event = format!("id: {id}\ndata: to all\n\n");
        assert_eq!((anonymous.event(), allowed.event()), (event.clone(), event));
        let list = bearer(Request::get("/.well-known/mercure/subscriptions/room"), &token);
        let listed: Value = site.send(&list).expect(200).json();
        assert_eq!(listed["subscriptions"].as_array().unwrap().len(), 3, "{listed}");
        let status = site.howdah().status();
        assert_eq!(status["hubs"], json!([{ "site": "default", "subscribers": 3, "connections": 1, "topics": 1 }]));
        let text = String::from_utf8(site.howdah().command(&["status"]).stdout).unwrap();
        assert!(text.contains("hub of default: 1 WebSockets, 2 Mercure subscribers, 1 topics"), "{text}");
    },
);
