//! The HTTP API, called as pusher-php-server calls it.

use super::{Client, api, pusher};
use howdah_tests::{Mode, Request, run, script_scenario};
use serde_json::{Value, json};

script_scenario!(
    an_application_publishes_and_asks_about_channels,
    howdah_only = "PHP-FPM has no WebSockets",
    |s| pusher(s).workers(2),
    |site| {
        let [mut one, mut two] = [(); 2].map(|()| Client::connect(site));
        for client in [&mut one, &mut two] {
            client.say(&json!({ "event": "pusher:subscribe", "data": { "channel": "news" } }));
            assert_eq!(client.next()["channel"], "news");
        }
        assert_eq!(two.subscribe(site, "presence-room", "&user=bob")["channel"], "presence-room");
        // Laravel's `toOthers()`: all connections but the one that caused the event.
        let body = json!({ "name": "e", "channels": ["news", "unused"], "data": "{\"n\":1}", "socket_id": one.id });
        assert_eq!(api(site, "events", "", Some(&body)), (200, json!({})));
        assert_eq!(two.next(), json!({ "event": "e", "channel": "news", "data": { "n": 1 } }));
        let events = [("news", "1"), ("presence-room", "2")]
            .map(|(channel, data)| json!({ "name": "b", "channel": channel, "data": data }));
        assert_eq!(
            api(site, "batch_events", "", Some(&json!({ "batch": events }))),
            (200, json!({ "batch": [{}, {}] }))
        );
        assert_eq!(one.next()["data"], 1, "the first event was not for it");
        assert_eq!((two.next()["data"].clone(), two.next()["data"].clone()), (json!(1), json!(2)));
        for (path, query, document) in [
            ("channels", "", json!({ "channels": { "news": {}, "presence-room": {} } })),
            (
                "channels",
                "&query=filter_by_prefix=presence-%26info=user_count",
                json!({ "channels": { "presence-room": { "user_count": 1 } } }),
            ),
            ("channels/news", "&query=info=subscription_count", json!({ "occupied": true, "subscription_count": 2 })),
            ("channels/presence-room/users", "", json!({ "users": [{ "id": "bob" }] })),
        ] {
            assert_eq!(api(site, path, query, None), (200, document), "{path} {query}");
        }
    },
);

#[test]
fn a_request_without_a_valid_signature_publishes_nothing() {
    run(Mode::Classic, pusher, |site| {
        let mut client = Client::connect(site);
        client.say(&json!({ "event": "pusher:subscribe", "data": { "channel": "news" } }));
        assert_eq!(client.next()["channel"], "news");
        let body = json!({ "name": "forged", "channels": ["news"], "data": "" });
        for query in ["&secret=other", "&age=601", "&age=-602", "&query=auth_key=other"] {
            assert_eq!(api(site, "events", query, Some(&body)).0, 401, "{query}");
            assert_eq!(api(site, "channels", query, None).0, 401, "{query}");
        }
        let unsigned = Request::post("/apps/app/events", "application/json", body.to_string());
        assert_eq!(site.send(&unsigned).status, 401);
        assert_eq!(site.get("/apps/app/events").status, 405);
        for body in [json!({}), json!({ "name": "e", "channels": [], "data": "" }), json!([1])] {
            assert_eq!(api(site, "events", "", Some(&body)).0, 400, "{body}");
        }
        assert_eq!(api(site, "channels/news/users", "", None), (400, Value::Null));
        client.ping();
        let explained = crate::server::sites_explain::explain(site, &["/apps/app/events"]).to_string();
        assert!(explained.contains("the HTTP API of the Pusher protocol"), "{explained}");
    });
}
