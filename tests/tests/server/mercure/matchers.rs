//! Mercure 1.0 (draft 08) on the hub of 0.x: matchers, access tokens with authorization details, subscriptions.

use super::{
    HUB, SECRET, SUBSCRIBERS, Subscriber, bearer, closed, hub, publish, published, publisher, token, token_with,
};
use howdah_tests::{Request, Site, scenario};
use serde_json::{Value, json};
use std::time::{SystemTime, UNIX_EPOCH};

fn details(action: &str, topics: Value) -> Value {
    json!([{ "type": "https://mercure.rocks/authorization-detail", "actions": [action], "topics": topics, "payload": { "n": 1 } }])
}

/// An access token (RFC 9068) for the hub of this site.
fn access_token(site: &Site, key: &str, details: Value) -> String {
    access_token_with(site, key, "at+jwt", json!({ "authorization_details": details }))
}

fn access_token_with(site: &Site, key: &str, typ: &str, changes: Value) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let mut claims = json!({
        "iss": "https://app.example", "aud": hub_url(site), "sub": "1", "client_id": "https://app.example",
        "iat": now, "exp": now + 600, "jti": "urn:x",
    });
    for (name, value) in changes.as_object().unwrap() {
        claims[name] = value.clone();
    }
    token_with(key, "HS256", json!({ "alg": "HS256", "typ": typ }), claims)
}

/// The hub's URL, as its metadata says.
fn hub_url(site: &Site) -> String {
    let metadata: Value = site.get("/.well-known/oauth-protected-resource/.well-known/mercure").expect(200).json();
    metadata["resource"].as_str().unwrap().to_owned()
}

const PATTERN: &str = "match_urlpattern=https%3A%2F%2Fexample.com%2Fbooks%2F%3Aid";

scenario!(
    matchers_select_updates_in_addition_to_selectors_of_0_x,
    howdah_only = "a Mercure hub is Howdah's",
    hub,
    |site| {
        let token = publisher();
        let mut exact = Subscriber::anonymous(site, "match=https%3A%2F%2Fexample.com%2Fbooks%2F%7Bid%7D&match_exact=b");
        let mut pattern = Subscriber::anonymous(site, PATTERN);
        let mut all = Subscriber::anonymous(site, "match=*");
        let mut old = Subscriber::anonymous(site, "topic=https%3A%2F%2Fexample.com%2Fbooks%2F%7Bid%7D");
        for (form, text) in [
            ("topic=https://example.com/books/1&data=1", "1"),
            ("topic=https://example.com/books/1/reviews&data=2", "2"),
            ("topic=https://example.com/books/{id}&data=3", "3"),
            ("topic=b&data=4", "4"),
        ] {
            published(site, &token, form);
            assert!(all.event().ends_with(&format!("data: {text}\n\n")));
        }
        for (subscriber, texts) in [(&mut exact, "34"), (&mut pattern, "13"), (&mut old, "13")] {
            for text in texts.chars() {
                assert!(subscriber.event().ends_with(&format!("data: {text}\n\n")), "{texts}");
            }
        }
        for query in [
            "match_regexp=a",
            "Match=a",
            "matching=a",
            "match_urlpattern=%2F(",
            "match=a%00",
            "match=a%E2%80%8B",
            "match=a&topic=b",
            "",
            &format!("match={}", "x".repeat(4097)),
            &"match=a&".repeat(101),
        ] {
            assert_eq!(site.get(&format!("{HUB}?{query}")).status, 400, "{query}");
        }
        // The history by the names of 1.0.
        let id = published(site, &token, "topic=b&data=5");
        published(site, &token, "topic=b&data=6");
        let mut again = Subscriber::anonymous(site, &format!("match=b&last_event_id={id}"));
        assert_eq!(
            (again.head.header("mercure-last-event-id"), again.head.header("last-event-id")),
            (Some(&*id), None)
        );
        assert!(again.event().ends_with("data: 6\n\n"));
    },
);

scenario!(
    access_tokens_permit_their_authorization_details,
    howdah_only = "a Mercure hub is Howdah's",
    |s| closed(s).allow_log("token refused"),
    |site| {
        let books = json!([{ "match": "https://example.com/books/:id", "match_type": "urlpattern" }]);
        let mine = access_token(site, SECRET, details("publish", books.clone()));
        assert_eq!(publish(site, &mine, "topic=https://example.com/books/1").status, 200);
        let metadata =
            hub_url(site).replace("/.well-known/mercure", "/.well-known/oauth-protected-resource/.well-known/mercure");
        let refused = |token: &str, form: &str, status: u16, error: &str| {
            let response = publish(site, token, form);
            assert_eq!(response.status, status, "{form}");
            let challenge = format!("Bearer{error} resource_metadata=\"{metadata}\"");
            assert_eq!(response.header("www-authenticate"), Some(&*challenge), "{form}");
        };
        refused(&mine, "topic=https://example.com/books/1&topic=b", 403, " error=\"insufficient_scope\",");
        let reader = access_token(site, SECRET, details("subscribe", books.clone()));
        refused(&reader, "topic=https://example.com/books/1", 403, " error=\"insufficient_scope\",");
        for (typ, changes) in [
            ("at+jwt", json!({ "aud": "https://other.example/.well-known/mercure" })),
            ("at+jwt", json!({ "exp": null })),
            ("at+jwt", json!({ "iss": null })),
            (
                "application/at+jwt",
                json!({ "authorization_details": [{ "type": "https://mercure.rocks/authorization-detail" }] }),
            ),
        ] {
            refused(&access_token_with(site, SECRET, typ, changes), "topic=a", 401, " error=\"invalid_token\",");
        }
        let response = site.send(&Request::form(HUB, "topic=a"));
        assert_eq!(response.header("www-authenticate"), Some(&*format!("Bearer resource_metadata=\"{metadata}\"")));
        // Only access tokens have such details: this token is valid, and permits nothing.
        let of_id_token = access_token_with(
            site,
            SECRET,
            "JWT",
            json!({ "authorization_details": details("publish", books.clone()) }),
        );
        assert_eq!(publish(site, &of_id_token, "topic=https://example.com/books/1").status, 403);
        // Topics and types of the hub itself are reserved.
        let everything = access_token(site, SECRET, details("publish", json!([{ "match": "*" }])));
        for form in ["topic=*", "topic=a&topic=https://x/.well-known/%256Dercure/subscriptions", "topic=a&type=mercure"]
        {
            assert_eq!(publish(site, &everything, form).status, 400, "{form}");
        }
        // Private updates, by the cookie of 1.0. The query has no token.
        let reader = access_token(site, SUBSCRIBERS, details("subscribe", books));
        let request = Request::get(&format!("{HUB}?match=*"));
        let cookie = format!("a=b; __Secure-mercure_access_token={reader}");
        let mut page = Subscriber::open(site.target(), &request.header("Cookie", &cookie));
        assert_eq!(site.get(&format!("{HUB}?match=*&authorization={reader}")).status, 401);
        published(site, &everything, "topic=a&private=on&data=hidden");
        published(site, &everything, "topic=a&topic=https://example.com/books/2&private&data=seen");
        assert!(page.event().ends_with("data: seen\n\n"));
    },
);

scenario!(
    subscriptions_by_matchers_are_listed_and_announced_in_their_own_form,
    howdah_only = "a Mercure hub is Howdah's",
    |s| hub(s).allow_log("token refused"),
    |site| {
        let watched = json!([{ "match": "/.well-known/mercure/subscriptions/:type/:match/:subscriber", "match_type": "urlpattern" }]);
        let watcher = access_token(site, SUBSCRIBERS, details("subscribe", watched));
        let query = "match_urlpattern=%2F.well-known%2Fmercure%2Fsubscriptions%2F%3Atype%2F%3Amatch%2F%3Asubscriber";
        let mut events = Subscriber::open(site.target(), &bearer(Request::get(&format!("{HUB}?{query}")), &watcher));
        // Its own subscription comes first.
        let own = events.event();
        assert!(own.starts_with("event: mercure\n") && own.contains("\"match_type\":\"urlpattern\""), "{own}");
        let of_books =
            details("subscribe", json!([{ "match": "https://example.com/books/:id", "match_type": "urlpattern" }]));
        let reader = access_token(site, SUBSCRIBERS, of_books);
        let page = Subscriber::open(site.target(), &bearer(Request::get(&format!("{HUB}?{PATTERN}")), &reader));
        let document = |event: &str| -> Value {
            let data = event.lines().find_map(|line| line.strip_prefix("data: ")).unwrap();
            serde_json::from_str(data).unwrap()
        };
        let begun = document(&events.event());
        let expected = json!({ "type": "subscription", "match_type": "urlpattern", "match": "https://example.com/books/:id", "active": true, "payload": { "n": 1 } });
        for (name, value) in expected.as_object().unwrap() {
            assert_eq!(begun[name], *value, "{name}");
        }
        let path = begun["id"].as_str().unwrap();
        assert!(
            path.starts_with(
                "/.well-known/mercure/subscriptions/urlpattern/https%3A%2F%2Fexample.com%2Fbooks%2F%3Aid/urn%3Auuid%3A"
            ),
            "{path}"
        );
        // One of 0.x is in the lists of 0.x alone.
        let _old = Subscriber::anonymous(site, "topic=a");
        let api = access_token(site, SUBSCRIBERS, details("subscribe", json!([{ "match": "*" }])));
        let ask = |path: &str, token: &str| site.send(&bearer(Request::get(path), token));
        let one = ask(path, &api);
        assert_eq!(one.header("content-type"), Some("application/json"));
        let link = one.header("link").unwrap();
        assert!(
            link.starts_with("</.well-known/mercure>; rel=\"mercure\"; last-event-id=\"")
                && link.ends_with("; type=\"mercure\"; content-type=\"application/json\""),
            "{link}"
        );
        assert_eq!(one.expect(200).json(), begun);
        let list: Value = ask("/.well-known/mercure/subscriptions", &api).expect(200).json();
        assert_eq!(
            (list["type"].as_str(), list["subscriptions"].as_array().unwrap().len()),
            (Some("subscriptions"), 2),
            "{list}"
        );
        let of_one: Value = ask(path.rsplit_once('/').unwrap().0, &api).expect(200).json();
        assert_eq!(of_one["subscriptions"], json!([begun]));
        for missing in ["/.well-known/mercure/subscriptions/exact", "/.well-known/mercure/subscriptions/exact/a/b"] {
            assert_eq!(ask(missing, &api).status, 404, "{missing}");
        }
        assert_eq!(ask("/.well-known/mercure/subscriptions", &reader).status, 403);
        let of_old: Value =
            ask("/.well-known/mercure/subscriptions", &token(SUBSCRIBERS, json!({ "subscribe": ["*"] })))
                .expect(200)
                .json();
        assert_eq!(of_old["subscriptions"][0]["topic"], "a");
        assert_eq!(of_old["subscriptions"].as_array().unwrap().len(), 1);
        drop(page);
        let mut ended = begun;
        ended["active"] = false.into();
        assert_eq!(document(&events.event()), ended);
    },
);
