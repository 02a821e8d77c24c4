//! Many subscribers, slow ones, and updates during reconnections.

use super::{HUB, Subscriber, hub, published, publisher};
use howdah_tests::process::{PATIENCE, eventually};
use howdah_tests::{Conn, Request, scenario};
use std::sync::atomic::{AtomicBool, Ordering};

scenario!(
    an_update_reaches_two_thousand_subscribers,
    howdah_only = "a Mercure hub is Howdah's",
    |s| hub(s).http1("thousands of connections"),
    |site| {
        const SUBSCRIBERS: usize = 2000;
        let token = publisher();
        let request = Request::get(&format!("{HUB}?topic=t")).bytes();
        let mut conns: Vec<Conn> = (0..SUBSCRIBERS)
            .map(|_| {
                let mut conn = site.conn();
                conn.send(&request);
                conn
            })
            .collect();
        for conn in &mut conns {
            assert_eq!(conn.head("GET").status, 200);
            assert_eq!(conn.read_until("\n"), ":\n");
        }
        for id in 1..=3 {
            published(site, &token, &format!("topic=t&data=x&id={id}"));
        }
        for conn in &mut conns {
            let mut seen = String::new();
            while !seen.contains("id: 3") {
                seen.push_str(&conn.read_until("\n\n"));
            }
            assert_eq!(seen, "id: 1\ndata: x\n\nid: 2\ndata: x\n\nid: 3\ndata: x\n\n");
        }
    },
);

scenario!(
    a_subscriber_that_does_not_read_disturbs_no_other_and_is_disconnected,
    howdah_only = "a Mercure hub is Howdah's",
    |s| hub(s).http1("the buffers are the socket's").setting("threads", "1"),
    |site| {
        let token = publisher();
        let mut slow = site.conn();
        slow.send(Request::get(&format!("{HUB}?topic=t")).bytes());
        assert_eq!(slow.head("GET").status, 200);
        let mut quick = Subscriber::anonymous(site, "topic=t");
        // More than the sockets' buffers take, and then more than may wait.
        let data = "x".repeat(200_000);
        for id in 0..80 {
            published(site, &token, &format!("topic=t&id={id}&data={data}"));
            assert_eq!(quick.event().len(), format!("id: {id}\ndata: {data}\n\n").len());
        }
        // It finally reads the data sent before, and can continue after the last complete event.
        let mut seen = Vec::new();
        while let Ok(Some(piece)) = slow.try_read_some() {
            seen.extend(piece);
        }
        assert!(eventually(PATIENCE, || site.log().contains("subscriber disconnected why=TooSlow")), "{}", site.log());
        let seen = String::from_utf8(seen).unwrap();
        assert!(seen.ends_with("\n\n"), "the stream ends between two events");
        let last = seen.rsplit("id: ").next().unwrap().lines().next().unwrap();
        let next = last.parse::<u32>().unwrap() + 1;
        assert!(next < 35, "the last updates did not fit");
        let mut back = Subscriber::anonymous(site, &format!("topic=t&lastEventID={last}"));
        assert_eq!(
            back.head.header("last-event-id"),
            Some("earliest"),
            "the history holds 8 MiB, and more have arrived since"
        );
        assert!(!back.event().starts_with("id: 0\n"));
    },
);

scenario!(
    a_client_that_comes_back_again_and_again_gets_every_update_once,
    howdah_only = "a Mercure hub is Howdah's",
    hub,
    |site| {
        const UPDATES: u32 = 300;
        let token = publisher();
        published(site, &token, "topic=t&data=x&id=0");
        let is_done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for id in 1..=UPDATES {
                    published(site, &token, &format!("topic=t&data=x&id={id}"));
                }
                is_done.store(true, Ordering::Relaxed);
            });
            let (mut last, mut rounds) = (0, 0);
            while last < UPDATES {
                rounds += 1;
                let mut subscriber = Subscriber::anonymous(site, &format!("topic=t&lastEventID={last}"));
                assert_eq!(subscriber.head.header("last-event-id"), Some(&*last.to_string()));
                for _ in 0..7 {
                    if last == UPDATES {
                        break;
                    }
                    last += 1;
                    assert_eq!(subscriber.event(), format!("id: {last}\ndata: x\n\n"));
                }
            }
            assert!(rounds > 40);
        });
    },
);

scenario!(
    idle_subscribers_get_comments,
    howdah_only = "a Mercure hub is Howdah's",
    |s| hub(s).time("mercure.heartbeat", "100ms"),
    |site| {
        let mut subscriber = Subscriber::anonymous(site, "topic=t");
        for _ in 0..3 {
            assert_eq!(subscriber.until("\n"), ":\n");
        }
        published(site, &publisher(), "topic=t&data=x&id=1");
        assert_eq!(subscriber.event(), "id: 1\ndata: x\n\n");
    },
);
