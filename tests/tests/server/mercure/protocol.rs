//! The protocol's cases: publishing, subscribing, selectors, history, the subscription API, pages of other origins.

use super::{HUB, SUBSCRIBERS, Subscriber, bearer, closed, hub, publish, published, publisher, token};
use howdah_tests::{Conn, Request, Target, Version, howdah, scenario};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

scenario!(a_publisher_reaches_the_subscribers_of_its_topics, howdah_only = "a Mercure hub is Howdah's", hub, |site| {
    let token = publisher();
    let mut one = Subscriber::anonymous(site, "topic=https%3A%2F%2Fexample.com%2Fbooks%2F1");
    let mut template = Subscriber::open(
        site.target(),
        &Request::get(&format!("{HUB}?topic=https%3A%2F%2Fexample.com%2Fbooks%2F%7Bid%7D&topic=other"))
            .header("Accept-Encoding", "gzip, br, zstd"),
    );
    let mut all = Subscriber::anonymous(site, "topic=*");
    for head in [&one.head, &template.head] {
        assert_eq!(head.header("content-encoding"), None, "events are not held back by an encoder");
        assert!(head.header("cache-control").unwrap().contains("no-store"));
        assert_eq!(head.header("x-accel-buffering"), Some("no"));
        assert_eq!(head.header("last-event-id"), None, "no id was requested");
    }
    let form = "topic=https://example.com/books/1&data=a%0Ab&type=changed&retry=700&id=urn:1";
    let response = publish(site, &token, form).expect(200);
    assert_eq!(
        (response.text().as_str(), response.header("content-type")),
        ("urn:1", Some("text/plain;charset=UTF-8"))
    );
    let event = "event: changed\nretry: 700\nid: urn:1\ndata: a\ndata: b\n\n";
    for subscriber in [&mut one, &mut template, &mut all] {
        assert_eq!(subscriber.event(), event);
    }
    let id = published(site, &token, "topic=https://example.com/books/2&topic=alternate&data=");
    assert!(id.starts_with("urn:uuid:"), "{id}");
    assert_eq!(template.event(), format!("id: {id}\ndata: \n\n"));
    assert_eq!(all.event(), format!("id: {id}\ndata: \n\n"));
    // A client that has disconnected does not affect others.
    drop(template);
    published(site, &token, "topic=https://example.com/books/1&data=last&id=3");
    assert_eq!((one.event().as_str(), all.event().as_str()), ("id: 3\ndata: last\n\n", "id: 3\ndata: last\n\n"));
},);

scenario!(
    invalid_requests_get_a_status_for_their_reason,
    howdah_only = "a Mercure hub is Howdah's",
    |s| hub(s).allow_log("token refused"),
    |site| {
        let token = publisher();
        let many = "topic=a&".repeat(101);
        let large = format!("topic=a&data={}", "x".repeat(1 << 20));
        for (form, status) in [
            ("data=x", 400),
            ("topic=&data=x", 400),
            ("topic=a&id=%0Adata%3A+forged", 400),
            ("topic=a&id=%23offset", 400),
            ("topic=a&retry=soon", 400),
            (&many, 400),
            (&large, 413),
        ] {
            assert_eq!(publish(site, &token, form).status, status, "{}", &form[..form.len().min(40)]);
        }
        let json = bearer(Request::post(HUB, "application/json", "{}"), &token);
        assert_eq!(site.send(&json).status, 415);
        for (query, status) in [("", 400), ("?data=x", 400), (&*format!("?{many}"), 400), ("?topic=a&topic=b", 200)] {
            let response = site.send(&Request::new("HEAD", &format!("{HUB}{query}")));
            assert_eq!(response.status, status, "{query}");
        }
        let response = site.send(&Request::new("DELETE", HUB)).expect(405);
        assert_eq!(response.header("allow"), Some("GET, HEAD, POST, OPTIONS"));
        // Other paths belong to the application.
        for path in ["/.well-known/mercurex", "/.well-known/mercure/", "/.well-known/mercure/other"] {
            assert_ne!(site.get(path).text(), site.get(HUB).text(), "{path}");
        }
        let mut explain = Command::new(howdah::program());
        let explain = explain.args(["explain", HUB, "--config"]).arg(site.place().run.join("howdah.toml"));
        let explained =
            explain.arg("--root").arg(&site.place().root).env("HOWDAH_ALLOW_ROOT", "true").output().unwrap();
        let explained = String::from_utf8_lossy(&explained.stdout).into_owned();
        assert!(explained.contains("Mercure hub"), "{explained}");
    },
);

scenario!(a_client_resumes_after_its_last_event, howdah_only = "a Mercure hub is Howdah's", hub, |site| {
    let token = publisher();
    let after = |last: &str, header: bool| {
        let request = match header {
            true => Request::get(&format!("{HUB}?topic=t&lastEventID=ignored")).header("Last-Event-ID", last),
            false => Request::get(&format!("{HUB}?topic=t&lastEventID={last}")),
        };
        Subscriber::open(site.target(), &request)
    };
    assert_eq!(after("earliest", false).head.header("last-event-id"), Some("earliest"));
    for id in 1..=3 {
        published(site, &token, &format!("topic=t&data=x&id={id}"));
    }
    published(site, &token, "topic=other&data=x&id=4");
    published(site, &token, "topic=t&data=secret&id=5&private=on");
    published(site, &token, "topic=t&data=x&id=6");
    let cases = [
        ("earliest", false, "earliest", &[1, 2, 3, 6][..]),
        ("2", false, "2", &[3, 6]),
        ("2", true, "2", &[3, 6]),
        ("4", true, "4", &[6]),
        ("6", false, "6", &[]),
        ("unknown", true, "earliest", &[1, 2, 3, 6]),
    ];
    let mut subscribers: Vec<Subscriber> = cases.iter().map(|(last, header, ..)| after(last, *header)).collect();
    published(site, &token, "topic=t&data=now&id=7");
    for (subscriber, (last, _, preceding, ids)) in subscribers.iter_mut().zip(cases) {
        assert_eq!(subscriber.head.header("last-event-id"), Some(preceding), "{last}");
        for id in ids {
            assert_eq!(subscriber.event(), format!("id: {id}\ndata: x\n\n"), "after {last}");
        }
        assert_eq!(subscriber.event(), "id: 7\ndata: now\n\n", "after {last}");
    }
},);

scenario!(subscriptions_are_listed_and_announced, howdah_only = "a Mercure hub is Howdah's", closed, |site| {
    let api = "/.well-known/mercure/subscriptions";
    let watcher = token(SUBSCRIBERS, json!({ "subscribe": [format!("{api}{{/topic}}{{/subscriber}}")] }));
    let user = token(SUBSCRIBERS, json!({ "subscribe": [], "payload": { "user": "ann" } }));
    let list = |path: &str, token: &str| site.send(&bearer(Request::get(path), token));
    assert_eq!(list(api, &user).status, 403);
    assert_eq!(site.get(api).status, 401);
    let empty = list(api, &watcher).expect(200);
    assert_eq!(empty.header("content-type"), Some("application/ld+json"));
    assert_eq!(empty.json()["subscriptions"], json!([]));
    assert_eq!(empty.json()["lastEventID"], "earliest");

    let watch = format!("{HUB}?topic={api}/%7Btopic%7D/%7Bsubscriber%7D");
    let mut events = Subscriber::open(site.target(), &bearer(Request::get(&watch), &watcher));
    let data = |event: &str| -> Value {
        serde_json::from_str(event.split_once("data: ").unwrap().1).unwrap_or_else(|why| panic!("{why}: {event}"))
    };
    let own = data(&events.event());
    assert_eq!((&own["active"], &own["type"]), (&json!(true), &json!("Subscription")), "its own");
    let request = bearer(Request::get(&format!("{HUB}?topic=a%2F%7Bb%7D&topic=c")), &user);
    let subscriber = Subscriber::open(site.target(), &request);
    let came = [data(&events.event()), data(&events.event())];
    assert_eq!((&came[0]["topic"], &came[1]["topic"]), (&json!("a/{b}"), &json!("c")));
    let id = came[0]["id"].as_str().unwrap().to_owned();
    let who = came[0]["subscriber"].as_str().unwrap();
    assert_eq!(id, format!("{api}/a%2F%7Bb%7D/{}", who.replace(':', "%3A")));
    let one = list(&id, &watcher).expect(200).json();
    assert_eq!((&one["payload"], &one["active"]), (&json!({ "user": "ann" }), &json!(true)));
    assert_eq!(list(api, &watcher).expect(200).json()["subscriptions"].as_array().unwrap().len(), 3);
    let of_topic = list(&format!("{api}/c"), &watcher).expect(200).json();
    assert_eq!(of_topic["subscriptions"][0]["id"], came[1]["id"]);
    drop(subscriber);
    let gone = [data(&events.event()), data(&events.event())];
    assert_eq!((&gone[0]["id"], &gone[0]["active"]), (&json!(id), &json!(false)));
    assert_eq!(gone[1]["active"], false);
    assert_eq!(list(&id, &watcher).status, 404);
},);

scenario!(
    pages_of_allowed_origins_may_read,
    howdah_only = "a Mercure hub is Howdah's",
    |s| hub(s).setting("mercure.allowed_origins", "[\"https://app.example\"]"),
    |site| {
        let from = |method: &str, origin: &str| {
            site.send(&Request::new(method, &format!("{HUB}?topic=a")).header("Origin", origin))
        };
        for method in ["OPTIONS", "HEAD", "DELETE"] {
            let allowed = from(method, "https://app.example");
            assert_eq!(allowed.header("access-control-allow-origin"), Some("https://app.example"), "{method}");
            assert_eq!(allowed.header("access-control-allow-credentials"), Some("true"));
            assert!(allowed.varies_on("origin"));
            for origin in ["https://app.example.evil", "http://app.example", "null"] {
                let other = from(method, origin);
                assert_eq!(other.header("access-control-allow-origin"), None, "{method} {origin}");
                assert!(other.varies_on("origin"));
            }
        }
        let preflight = from("OPTIONS", "https://app.example").expect(204);
        assert!(preflight.header("access-control-allow-headers").unwrap().contains("Last-Event-ID"));
    },
);

scenario!(
    events_come_over_every_version_of_http,
    howdah_only = "a Mercure hub is Howdah's",
    |s| hub(s).https().setting("tls.http3", "true"),
    |site| {
        let address = format!("127.0.0.1:{}", site.port()).parse().unwrap();
        let token = publisher();
        for target in
            [Target::Tls(address), Target::Version(address, Version::Two), Target::Version(address, Version::Three)]
        {
            let mut subscriber = Subscriber::open(&target, &Request::get(&format!("{HUB}?topic=t")));
            let form = bearer(Request::form(HUB, "topic=t&data=x&id=1"), &token);
            assert_eq!(Conn::open(&target).exchange(&form).expect(200).text(), "1", "{target:?}");
            assert_eq!(subscriber.event(), "id: 1\ndata: x\n\n", "{target:?}");
        }
        // curl, which prints each event on arrival.
        let url = format!("https://127.0.0.1:{}{HUB}?topic=t&lastEventID=earliest", site.port());
        let mut curl = Command::new("curl");
        let curl = curl.args(["-skN", "--http2", "--max-time", "20", &url]).stdout(Stdio::piped());
        let mut curl = curl.spawn().unwrap();
        let mut lines = BufReader::new(curl.stdout.take().unwrap()).lines();
        let first = lines.find(|line| line.as_ref().is_ok_and(|line| line.starts_with("data"))).unwrap().unwrap();
        curl.kill().unwrap();
        curl.wait().unwrap();
        assert_eq!(first, "data: x");
    },
);
