//! The HTTP API, called as pusher-php-server calls it.

use super::channels::webhooks;
use super::{Client, api, publish, pusher};
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
        assert_eq!(one.next()["data"], 1, "the sender does not get its own event");
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

#[test]
fn events_of_laravels_broadcaster_arrive() {
    run(Mode::Classic, pusher, |site| {
        let [mut ann, mut bob] = [(); 2].map(|()| Client::connect(site));
        ann.sign_in(site, "1");
        for (channel, query) in [("news", ""), ("private-orders.7", ""), ("presence-room.1", "&user=1")] {
            assert_eq!(ann.subscribe(site, channel, query)["channel"], channel);
        }
        assert_eq!(bob.subscribe(site, "news", "")["channel"], "news");
        // One event for three channels: `broadcastOn()` returns an array.
        let data = r#"{"order":{"id":7,"text":"gr\u00fcn \"&\ud83d\ude00"}}"#;
        let channels = ["news", "private-orders.7", "presence-room.1"];
        let body = json!({ "name": "App\\Events\\OrderPaid", "data": data, "channels": channels });
        assert_eq!(api(site, "events", "", Some(&body)), (200, json!({})));
        let order = json!({ "order": { "id": 7, "text": "gr\u{fc}n \"&\u{1F600}" } });
        for channel in channels {
            let event = json!({ "event": "App\\Events\\OrderPaid", "channel": channel, "data": order });
            assert_eq!(ann.next(), event);
        }
        assert_eq!(bob.next()["data"], order);
        // `toOthers()`: `X-Socket-ID` of Laravel's request is here `socket_id`. A single channel is no array.
        let body = json!({ "name": "e", "data": "1", "channel": "news", "socket_id": ann.id });
        assert_eq!(api(site, "events", "", Some(&body)), (200, json!({})));
        assert_eq!(bob.next()["data"], 1);
        // More than 100 channels are several requests; the notification of a user has the name of its class.
        for numbers in [1..=100, 101..=150] {
            let channels: Vec<String> = numbers.map(|number| format!("news.{number}")).collect();
            let body = json!({ "name": "many", "data": "{}", "channels": channels });
            assert_eq!(api(site, "events", "", Some(&body)), (200, json!({})));
        }
        let name = "Illuminate\\Notifications\\Events\\BroadcastNotificationCreated";
        assert_eq!(
            ann.subscribe(site, "private-App.Models.User.1", "")["event"],
            "pusher_internal:subscription_succeeded"
        );
        publish(
            site,
            name,
            "private-App.Models.User.1",
            r#"{"text":"hello","id":"9f6b","type":"App\\Notifications\\Hello"}"#,
        );
        let notification = ann.next();
        assert_eq!((&notification["event"], &notification["data"]["text"]), (&json!(name), &json!("hello")));
        // `sendToUser()`; such channels are not listed.
        publish(site, "personal", "#server-to-user-1", r#"{"n":3}"#);
        assert_eq!(ann.next()["data"]["n"], 3);
        let (_, listed) = api(site, "channels", "", None);
        let names: Vec<_> = listed["channels"].as_object().unwrap().keys().collect();
        assert_eq!(names, ["news", "presence-room.1", "private-App.Models.User.1", "private-orders.7"]);
    });
}

#[test]
fn an_application_ends_the_connections_of_a_user() {
    run(Mode::Classic, pusher, |site| {
        let [mut signed_in, mut member, mut other] = [(); 3].map(|()| Client::connect(site));
        signed_in.sign_in(site, "7");
        assert_eq!(member.subscribe(site, "presence-room", "&user=7")["channel"], "presence-room");
        assert_eq!(other.subscribe(site, "presence-room", "&user=8")["channel"], "presence-room");
        other.sign_in(site, "77");
        assert_eq!(member.next()["event"], "pusher_internal:member_added");
        assert_eq!(api(site, "users/7/terminate_connections", "&secret=other", Some(&json!({}))).0, 401);
        assert_eq!(api(site, "users/7/terminate_connections", "", Some(&json!({}))), (200, json!({})));
        for client in [&mut signed_in, &mut member] {
            let error = client.next();
            assert_eq!((&error["event"], &error["data"]["code"]), (&json!("pusher:error"), &json!(4009)));
            // Clients do not connect again after this code.
            assert_eq!(client.socket.closed(), 4009);
        }
        assert_eq!(other.next()["event"], "pusher_internal:member_removed");
        other.ping();
        assert_eq!(site.get("/apps/app/users/7/terminate_connections").status, 405);
        assert_eq!(api(site, "users/7/terminate_connections", "", Some(&json!({}))), (200, json!({})));
    });
}

#[test]
fn a_cache_channel_passes_its_last_event_to_new_subscribers() {
    run(Mode::Classic, pusher, |site| {
        for (channel, query) in [("cache-a", ""), ("private-cache-a", ""), ("presence-cache-a", "&user=ann")] {
            let mut first = Client::connect(site);
            assert_eq!(first.subscribe(site, channel, query)["event"], "pusher_internal:subscription_succeeded");
            assert_eq!(first.next(), json!({ "event": "pusher:cache_miss", "channel": channel }));
            publish(site, "price", channel, "1");
            publish(site, "price", channel, "2");
            assert_eq!((first.next()["data"].clone(), first.next()["data"].clone()), (json!(1), json!(2)));
            drop(first);
            let mut second = Client::connect(site);
            assert_eq!(second.subscribe(site, channel, query)["event"], "pusher_internal:subscription_succeeded");
            assert_eq!(second.next(), json!({ "event": "price", "channel": channel, "data": 2 }));
            // Events of clients are not kept.
            if channel != "cache-a" {
                second.say(&json!({ "event": "client-e", "channel": channel, "data": "x" }));
                second.ping();
                let mut third = Client::connect(site);
                assert_eq!(third.subscribe(site, channel, query)["channel"], channel);
                assert_eq!(third.next()["data"], 2);
            }
        }
        let missed = |channel: &str| json!({ "name": "cache_miss", "channel": channel });
        webhooks(site, &[json!({ "name": "channel_occupied", "channel": "cache-a" }), missed("cache-a")]);
    });
}
