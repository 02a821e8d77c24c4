//! Clients that subscribe, publish and leave.

use super::{Client, api, publish, pusher};
use howdah_tests::process::{PATIENCE, eventually};
use howdah_tests::site::replace_file;
use howdah_tests::websocket::{TEXT, WebSocket};
use howdah_tests::{Mode, Setup, Site, run};
use serde_json::{Value, json};

#[test]
fn channels_are_public_private_or_encrypted() {
    run(Mode::Classic, pusher, |site| {
        let mut client = Client::connect(site);
        client.say(&json!({ "event": "pusher:subscribe", "data": { "channel": "news" } }));
        let succeeded = |channel: &str| json!({ "event": "pusher_internal:subscription_succeeded", "channel": channel, "data": {} });
        assert_eq!(client.next(), succeeded("news"));
        for channel in ["private-a", "private-encrypted-a"] {
            assert_eq!(client.subscribe(site, channel, ""), succeeded(channel));
            // Encrypted data is forwarded unchanged.
            publish(site, "App\\Events\\Sent", channel, r#"{"nonce":"bm9uY2U=","ciphertext":"YQ=="}"#);
            let data = json!({ "nonce": "bm9uY2U=", "ciphertext": "YQ==" });
            assert_eq!(client.next(), json!({ "event": "App\\Events\\Sent", "channel": channel, "data": data }));
        }
        let mut other = Client::connect(site);
        for data in [
            json!({ "channel": "private-a" }),
            json!({ "channel": "private-a", "auth": "the-key:00" }),
            json!({ "channel": "presence-a", "auth": format!("the-key:{}", "0".repeat(64)), "channel_data": "{}" }),
            json!({ "channel": "with space" }),
            json!({ "channel": "#server-to-user-7" }),
        ] {
            other.say(&json!({ "event": "pusher:subscribe", "data": data }));
            let refused = other.next();
            assert_eq!(
                (&refused["event"], &refused["channel"]),
                (&json!("pusher:subscription_error"), &data["channel"])
            );
            assert_eq!(refused["data"]["status"], 401);
        }
        client.say(&json!({ "event": "pusher:unsubscribe", "data": { "channel": "private-a" } }));
        client.ping();
        publish(site, "e", "private-a", "1");
        publish(site, "e", "news", "\"text\"");
        assert_eq!(client.next()["channel"], "news");
        other.socket.send(TEXT, "no JSON");
        assert_eq!(other.next()["event"], "pusher:error");
        other.ping();
    });
}

#[test]
fn members_of_a_presence_channel_see_each_other_come_and_go() {
    run(Mode::Classic, pusher, |site| {
        let [mut ann, mut again, mut bob] = [(); 3].map(|()| Client::connect(site));
        let list = |ids: &[&str]| {
            let hash: serde_json::Map<String, Value> =
                ids.iter().map(|id| ((*id).to_owned(), json!({ "name": id.to_uppercase() }))).collect();
            json!({ "presence": { "count": ids.len(), "ids": ids, "hash": hash } })
        };
        assert_eq!(ann.subscribe(site, "presence-room", "&user=ann")["data"], list(&["ann"]));
        assert_eq!(again.subscribe(site, "presence-room", "&user=ann")["data"], list(&["ann"]));
        assert_eq!(bob.subscribe(site, "presence-room", "&user=bob")["data"], list(&["ann", "bob"]));
        let added = json!({ "user_id": "bob", "user_info": { "name": "BOB" } });
        for client in [&mut ann, &mut again] {
            let message = client.next();
            assert_eq!((&message["event"], &message["data"]), (&json!("pusher_internal:member_added"), &added));
        }
        // Client events name the member, and go to the other members.
        bob.say(&json!({ "event": "client-typing", "channel": "presence-room", "data": { "on": true } }));
        let typing =
            json!({ "event": "client-typing", "channel": "presence-room", "data": { "on": true }, "user_id": "bob" });
        assert_eq!((ann.next(), again.next()), (typing.clone(), typing));
        let (_, users) = api(site, "channels/presence-room/users", "", None);
        assert_eq!(users, json!({ "users": [{ "id": "ann" }, { "id": "bob" }] }));
        // If a user has two connections, the end of the first is not the end of its membership.
        ann.say(&json!({ "event": "pusher:unsubscribe", "data": { "channel": "presence-room" } }));
        ann.ping();
        drop(again);
        let removed = bob.next();
        assert_eq!(
            (&removed["event"], &removed["data"]["user_id"]),
            (&json!("pusher_internal:member_removed"), &json!("ann"))
        );
        drop(bob);
        webhooks(
            site,
            &[
                json!({ "name": "channel_occupied", "channel": "presence-room" }),
                json!({ "name": "member_added", "channel": "presence-room", "user_id": "ann" }),
                json!({ "name": "member_added", "channel": "presence-room", "user_id": "bob" }),
                json!({ "name": "client_event", "channel": "presence-room", "event": "client-typing", "user_id": "bob" }),
                json!({ "name": "member_removed", "channel": "presence-room", "user_id": "ann" }),
                json!({ "name": "member_removed", "channel": "presence-room", "user_id": "bob" }),
                json!({ "name": "channel_vacated", "channel": "presence-room" }),
            ],
        );
    });
}

/// Waits for these webhooks in this order; only the named fields of each are compared.
pub(super) fn webhooks(site: &Site, expected: &[Value]) {
    let read = || -> Vec<Value> {
        let notes = std::fs::read_to_string(site.file("webhooks")).unwrap_or_default();
        notes.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|_| json!({ "name": line }))).collect()
    };
    assert!(eventually(PATIENCE, || read().len() >= expected.len()), "{:?}", read());
    for (found, expected) in read().iter().zip(expected) {
        let named = expected.as_object().unwrap();
        assert!(named.iter().all(|(name, value)| found[name] == *value), "{found} and {expected}");
    }
}

#[test]
fn a_webhook_that_fails_is_sent_again_and_dropped_after_three_retries() {
    let setup = |s: Setup| {
        let s = pusher(s).time("pusher.webhook_retry", "20ms").file("failures", "3");
        s.allow_log("webhook failed, dropping its events")
    };
    run(Mode::Classic, setup, |site| {
        let join = |channel: &str| {
            let mut client = Client::connect(site);
            client.say(&json!({ "event": "pusher:subscribe", "data": { "channel": channel } }));
            assert_eq!(client.next()["channel"], channel);
            client
        };
        let left = || std::fs::read_to_string(site.file("failures")).unwrap();
        let occupied = |channel: &str| json!({ "name": "channel_occupied", "channel": channel });
        // Three attempts fail, the last succeeds; later events wait for it.
        let _news = join("news");
        assert!(eventually(PATIENCE, || left() != "3"), "an attempt has failed");
        let _sport = join("sport");
        webhooks(site, &[occupied("news"), occupied("sport")]);
        assert_eq!(left(), "0");
        // All four attempts fail: these events are lost, and the next are sent.
        std::fs::write(site.file("failures"), "4").unwrap();
        let _lost = join("lost");
        site.wait_for_log(&["webhook failed, dropping its events", "status=500", "count=1"]);
        assert_eq!(left(), "0");
        let _after = join("after");
        webhooks(site, &[occupied("news"), occupied("sport"), occupied("after")]);
    });
}

#[test]
fn clients_publish_only_in_channels_that_admit_them_and_not_too_often() {
    run(Mode::Classic, pusher, |site| {
        let (mut client, mut other) = (Client::connect(site), Client::connect(site));
        let event = |channel: &str| json!({ "event": "client-e", "channel": channel, "data": "x" });
        client.say(&json!({ "event": "pusher:subscribe", "data": { "channel": "news" } }));
        assert_eq!(client.next()["channel"], "news");
        for channel in ["news", "private-a"] {
            client.say(&event(channel));
            assert_eq!(client.next()["event"], "pusher:error", "{channel}");
        }
        for client in [&mut client, &mut other] {
            assert_eq!(client.subscribe(site, "private-a", "")["channel"], "private-a");
        }
        (0..40).for_each(|_| client.say(&event("private-a")));
        let refused = client.next();
        assert_eq!((&refused["event"], &refused["data"]["code"]), (&json!("pusher:error"), &json!(4301)));
        assert_eq!(other.next(), event("private-a"), "without the sender's user, who has none");
    });
}

#[test]
fn a_signed_in_user_gets_events_for_that_user() {
    run(Mode::Classic, pusher, |site| {
        let mut client = Client::connect(site);
        let mut data: Value =
            site.get(&format!("/app.php?do=sign-in&user=7&socket_id={}", client.id)).expect(200).json();
        client.say(&json!({ "event": "pusher:signin", "data": data }));
        assert_eq!(client.next()["event"], "pusher:signin_success");
        publish(site, "notice", "#server-to-user-7", "\"for you\"");
        assert_eq!(client.next()["data"], "for you");
        data["user_data"] = "{\"id\":\"8\"}".into();
        client.say(&json!({ "event": "pusher:signin", "data": data }));
        assert_eq!(client.next()["event"], "pusher:error");
    });
}

#[test]
fn a_client_of_another_application_or_version_is_closed_with_the_protocols_code() {
    run(Mode::Classic, pusher, |site| {
        for (target, code) in [("/app/other?protocol=7", 4001), ("/app/the-key?protocol=4", 4007)] {
            let mut socket = WebSocket::open(site, target);
            let error: Value = serde_json::from_str(&socket.next(TEXT)).unwrap();
            assert_eq!(error["data"]["code"], code);
            assert_eq!(u64::from(socket.closed()), code as u64);
        }
        // Other requests for such paths belong to the application.
        assert_eq!(site.get("/app/the-key").status, 404);
        assert_eq!(site.get("/apps/other/events").status, 404);
    });
}

#[test]
fn clients_connect_again_when_a_reload_brings_another_secret() {
    run(
        Mode::Classic,
        |s| pusher(s).limit("grace", 500),
        |site| {
            let reload = || {
                let output = site.howdah().command(&["reload"]);
                assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            };
            let mut client = Client::connect(site);
            assert_eq!(client.subscribe(site, "private-a", "")["data"], json!({}));
            reload();
            client.ping();
            let settings = site.place().run.join("howdah.toml");
            let text = std::fs::read_to_string(&settings).unwrap();
            replace_file(&settings, text.replace("the secret", "another secret"));
            reload();
            assert_eq!(client.socket.closed(), 1001);
        },
    );
}
