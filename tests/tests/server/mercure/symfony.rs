//! The requests of `symfony/mercure` 0.7, API Platform 4 and Symfony UX Turbo 2, to the byte where that matters: one
//! secret for both keys, tokens as `LcobucciFactory` makes them, the cookie of `Authorization::setCookie()`.

use super::{HUB, SECRET, Subscriber, token_with};
use howdah_tests::{Conn, Request, Setup, Site, php, scenario, script_scenario};
use serde_json::{Value, json};
use std::time::{SystemTime, UNIX_EPOCH};

/// A hub as Symfony's documentation sets it up: `MERCURE_JWT_SECRET` is the only key.
fn with_one_key(setup: Setup) -> Setup {
    setup.setting("mercure.publisher_key", &format!("\"{SECRET}\"")).setting("mercure.anonymous", "true")
}

/// A token as `LcobucciFactory` makes it: `exp` has a fraction, and both lists are there.
fn lcobucci(publish: Value, subscribe: Value) -> String {
    let expires = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() as f64 + 3600.511_784;
    let mercure = json!({ "publish": publish, "subscribe": subscribe, "payload": { "user": 1 } });
    token_with(SECRET, "HS256", json!({ "typ": "JWT", "alg": "HS256" }), json!({ "exp": expires, "mercure": mercure }))
}

/// `Hub::publish()` through Symfony's HttpClient.
fn publish(site: &Site, form: &str) -> String {
    let token = lcobucci(json!(["*"]), json!([]));
    let mut conn = Conn::open(site.target());
    conn.send(
        format!(
            "POST {HUB} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-www-form-urlencoded\r\nAccept: */*\r\n\
             Authorization: Bearer {token}\r\nUser-Agent: Symfony HttpClient (Curl)\r\nAccept-Encoding: gzip\r\n\
             Content-Length: {}\r\n\r\n{form}",
            form.len()
        )
        .as_bytes(),
    );
    conn.response("POST").expect(200).text()
}

/// `new EventSource(url, { withCredentials: true })` of a page of the site.
fn event_source(site: &Site, query: &str, cookies: &str) -> Subscriber {
    let request = Request::get(&format!("{HUB}?{query}"))
        .header("Accept", "text/event-stream")
        .header("Cache-Control", "no-cache")
        .header("Sec-Fetch-Mode", "cors")
        .header("Cookie", cookies);
    Subscriber::open(site.target(), &request)
}

scenario!(
    updates_of_symfony_api_platform_and_turbo_reach_an_event_source,
    howdah_only = "a Mercure hub is Howdah's",
    |s| with_one_key(s).http1("Symfony's client uses it here"),
    |site| {
        let subscribe = json!(["https://example.com/books/{id}", "http://localhost/api/secrets/{id}"]);
        let cookies = format!("PHPSESSID=x; mercureAuthorization={}", lcobucci(json!([]), subscribe));
        // `{{ mercure(['https://example.com/books/{id}', …]) }}` and `turbo_stream_listen('App\\Entity\\Note')`.
        let query = "topic=https%3A%2F%2Fexample.com%2Fbooks%2F%7Bid%7D\
                     &topic=http%3A%2F%2Flocalhost%2Fapi%2Fsecrets%2F%7Bid%7D\
                     &topic=https%3A%2F%2Fsymfony.com%2Fux-turbo%2FApp%255CEntity%255CNote%2F%7Bid%7D";
        let mut page = event_source(site, query, &cookies);
        let mut anonymous = event_source(site, query, "PHPSESSID=y");
        // `new Update([…], $data, private: true, id: …, type: …, retry: 5)`.
        let form = "topic=https%3A%2F%2Fexample.com%2Fbooks%2F1&topic=b&data=a+b%0Ac+%26+d%3D%C3%A9&private=on\
                    &id=urn%3Ax%3A1&type=kind&retry=5";
        assert_eq!(publish(site, form), "urn:x:1");
        assert_eq!(page.event(), "event: kind\nretry: 5\nid: urn:x:1\ndata: a b\ndata: c & d=\u{e9}\n\n");
        // `#[ApiResource(mercure: ['private' => true])]`, created and deleted.
        for document in [
            "%7B%22%40id%22%3A%22%5C%2Fapi%5C%2Fsecrets%5C%2F1%22%2C%22text%22%3A%22x%22%7D",
            "%7B%22%40id%22%3A%22x%22%7D",
        ] {
            let id =
                publish(site, &format!("topic=http%3A%2F%2Flocalhost%2Fapi%2Fsecrets%2F1&data={document}&private=on"));
            let event = page.event();
            assert!(event.starts_with(&format!("id: {id}\ndata: {{\"@id\":")), "{event}");
        }
        // `#[Broadcast]`: the class is encoded within the topic.
        let stream = "%3Cturbo-stream+action%3D%22append%22+target%3D%22notes%22%3E%0A%3C%2Fturbo-stream%3E";
        let topic = "https%3A%2F%2Fsymfony.com%2Fux-turbo%2FApp%255CEntity%255CNote%2F1";
        let id = publish(site, &format!("topic={topic}&data={stream}"));
        let event =
            format!("id: {id}\ndata: <turbo-stream action=\"append\" target=\"notes\">\ndata: </turbo-stream>\n\n");
        assert_eq!(
            (page.event(), anonymous.event()),
            (event.clone(), event),
            "private updates reached an unauthorized client"
        );
    },
);

script_scenario!(
    symfonys_hub_for_frankenphp_publishes_without_a_token,
    howdah_only = "a Mercure hub is Howdah's",
    |s| with_one_key(s).workers(1).php("native.php", php!("native.php")),
    |site| {
        let mut page = Subscriber::anonymous(site, "topic=https%3A%2F%2Fexample.com%2Fbooks%2F%7Bid%7D");
        for _ in 0..2 {
            let ids: Value = site.get("/native.php").expect(200).json();
            assert_eq!(page.event(), format!("id: {}\ndata: plain\n\n", ids[0].as_str().unwrap()));
            assert_eq!(page.event(), "event: kind\nretry: 5\nid: urn:x:1\ndata: native\n\n");
        }
    },
);
