//! Tokens: their permitted positions in requests, the keys that verify them, and invalid ones.

use super::{
    HUB, SECRET, SUBSCRIBERS, Subscriber, bearer, closed, hub, openssl, publish, published, publisher, token, tokens,
};
use howdah_tests::{Request, limit, scenario};
use serde_json::json;
use std::time::{SystemTime, UNIX_EPOCH};

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

scenario!(
    invalid_tokens_are_refused,
    howdah_only = "a Mercure hub is Howdah's",
    |s| closed(s).allow_log("token refused"),
    |site| {
        let head = |alg: &str| json!({ "alg": alg, "typ": "JWT" });
        let all = json!({ "mercure": { "publish": ["*"], "subscribe": ["*"] } });
        let with = |name: &str, value: u64| {
            let mut claims = all.clone();
            claims[name] = value.into();
            claims
        };
        let cases = [
            (SECRET, "HS256", head("HS256"), all.clone(), 200),
            (SECRET, "HS512", head("HS512"), all.clone(), 200),
            (SECRET, "HS256", head("HS256"), with("exp", now() + 600), 200),
            (SECRET, "HS256", head("HS256"), with("nbf", now() - 600), 200),
            (SECRET, "HS256", head("HS256"), with("exp", now() - 1), 401),
            (SECRET, "HS256", head("HS256"), with("nbf", now() + 600), 401),
            (SUBSCRIBERS, "HS256", head("HS256"), all.clone(), 401),
            ("forged", "HS256", head("HS256"), all.clone(), 401),
            (SECRET, "none", head("none"), all.clone(), 401),
            (SECRET, "HS256", head("none"), all.clone(), 401),
            (SECRET, "HS256", head("RS256"), all.clone(), 401),
            (SECRET, "HS256", head("HS384"), all.clone(), 401),
            (SECRET, "HS256", json!({ "alg": "HS256", "crit": ["exp"] }), all.clone(), 401),
            (SECRET, "HS256", head("HS256"), json!({ "mercure": "*" }), 401),
            // Valid, but not for this action.
            (SECRET, "HS256", head("HS256"), json!({}), 403),
            (SECRET, "HS256", head("HS256"), json!({ "mercure": { "publish": [] } }), 403),
            (SECRET, "HS256", head("HS256"), json!({ "mercure": { "subscribe": ["*"] } }), 403),
            (SECRET, "HS256", head("HS256"), json!({ "mercure": { "publish": ["b"] } }), 403),
            (SECRET, "HS256", head("HS256"), json!({ "mercure": { "publish": ["{x}"] } }), 200),
        ];
        let wanted = cases.iter().map(|(key, alg, head, claims, _)| (*key, *alg, head.clone(), claims.clone()));
        for (token, (_, alg, head, claims, status)) in tokens(&wanted.collect::<Vec<_>>()).iter().zip(&cases) {
            let response = publish(site, token, "topic=a&data=x");
            assert_eq!(response.status, *status, "{alg} {head} {claims}");
            let challenge = response.header("www-authenticate");
            assert_eq!(challenge.is_some(), *status == 401, "{challenge:?}");
        }
        for wrong in ["", "x", "a.b.c", "....", &"x".repeat(20_000)] {
            assert_eq!(publish(site, wrong, "topic=a&data=x").status, 401);
        }
        // One topic that is not permitted makes the whole update forbidden.
        let some = token(SECRET, json!({ "publish": ["a", "b"] }));
        assert_eq!(publish(site, &some, "topic=a&topic=b").status, 200);
        assert_eq!(publish(site, &some, "topic=a&topic=c").status, 403);
        // Subscribers have another key, and need a token here.
        let subscribe = |request: Request| site.send(&request).status;
        let head = || Request::new("HEAD", &format!("{HUB}?topic=a"));
        assert_eq!(subscribe(head()), 401);
        assert_eq!(subscribe(bearer(head(), &publisher())), 401);
        assert_eq!(subscribe(bearer(head(), &token(SUBSCRIBERS, json!({ "subscribe": [] })))), 200);
        assert_eq!(subscribe(bearer(head(), &token(SUBSCRIBERS, json!({ "publish": ["*"] })))), 403);
        assert!(!site.log().contains(&some), "no token is in the log");
    },
);

scenario!(
    a_token_is_in_the_header_the_query_or_a_cookie_in_this_order,
    howdah_only = "a Mercure hub is Howdah's",
    |s| closed(s).setting("mercure.allowed_origins", "[\"https://app.example\"]").allow_log("token refused"),
    |site| {
        let (good, subscriber) = (publisher(), token(SUBSCRIBERS, json!({ "subscribe": ["*"] })));
        let send = |query: &str, fields: &[(&str, &str)]| {
            let form = Request::form(&format!("{HUB}{query}"), "topic=a&data=x");
            site.send(&fields.iter().fold(form, |form, (name, value)| form.header(name, value))).status
        };
        let (cookie, query) = (format!("x=y; mercureAuthorization={good}"), format!("?authorization={good}"));
        let own = "http://localhost";
        assert_eq!(send("", &[]), 401);
        assert_eq!(send(&query, &[]), 200);
        assert_eq!(send("?authorization=bad", &[("Authorization", &format!("Bearer {good}"))]), 200);
        assert_eq!(send(&query, &[("Authorization", "Bearer bad")]), 401, "the header counts");
        assert_eq!(send("?authorization=bad", &[("Cookie", &cookie), ("Origin", own)]), 401, "the query counts");
        assert_eq!(send("", &[("Authorization", "Basic dTpw"), ("Cookie", &cookie), ("Origin", own)]), 200);
        // Any page can make a browser send a cookie.
        assert_eq!(send("", &[("Cookie", &cookie)]), 403);
        assert_eq!(send("", &[("Cookie", &cookie), ("Origin", own)]), 200);
        assert_eq!(send("", &[("Cookie", &cookie), ("Referer", &format!("{own}/page?x"))]), 200);
        assert_eq!(send("", &[("Cookie", &cookie), ("Origin", "https://app.example")]), 200);
        for other in ["https://evil.example", "null", "http://127.0.0.1"] {
            assert_eq!(send("", &[("Cookie", &cookie), ("Origin", other)]), 403, "{other}");
        }
        for request in [
            Request::get(&format!("{HUB}?topic=a&authorization={subscriber}")),
            Request::get(&format!("{HUB}?topic=a")).header("Cookie", &format!("mercureAuthorization={subscriber}")),
            bearer(Request::get(&format!("{HUB}?topic=a")), &subscriber),
        ] {
            let mut subscriber = Subscriber::open(site.target(), &request);
            published(site, &good, "topic=a&data=x&id=1&private=on");
            assert_eq!(subscriber.event(), "id: 1\ndata: x\n\n");
        }
    },
);

scenario!(private_updates_reach_authorized_subscribers_alone, howdah_only = "a Mercure hub is Howdah's", hub, |site| {
    let good = publisher();
    let subscribe = |claim: &[&str], query: &str| {
        let token = token(SUBSCRIBERS, json!({ "subscribe": claim }));
        Subscriber::open(site.target(), &bearer(Request::get(&format!("{HUB}?{query}")), &token))
    };
    let mut anonymous = Subscriber::anonymous(site, "topic=*");
    let mut user = subscribe(&["https://example.com/users/1{?topic}"], "topic=https://example.com/books/%7Bid%7D");
    let mut reader = subscribe(&["https://example.com/books/1"], "topic=*");
    let mut other = subscribe(&["https://example.com/films/1"], "topic=*");
    published(site, &good, "topic=https://example.com/books/1&data=p&id=1&private=on");
    let for_user = "topic=https://example.com/books/2&topic=https://example.com/users/1?topic%3Dx&data=p&id=2&private";
    published(site, &good, for_user);
    published(site, &good, "topic=https://example.com/books/1&data=end&id=3");
    let end = "id: 3\ndata: end\n\n";
    assert_eq!(anonymous.event(), end);
    assert_eq!(other.event(), end);
    assert_eq!((reader.event().as_str(), reader.event().as_str()), ("id: 1\ndata: p\n\n", end));
    assert_eq!((user.event().as_str(), user.event().as_str()), ("id: 2\ndata: p\n\n", end));
},);

scenario!(a_subscription_ends_when_its_token_expires, howdah_only = "a Mercure hub is Howdah's", closed, |site| {
    let claims = json!({ "exp": now() + limit(2000).as_secs(), "mercure": { "subscribe": ["*"] } });
    let token = tokens(&[(SUBSCRIBERS, "HS256", json!({ "alg": "HS256" }), claims)]).remove(0);
    let request = bearer(Request::get(&format!("{HUB}?topic=a")), &token);
    let subscriber = Subscriber::open(site.target(), &request);
    published(site, &publisher(), "topic=a&data=x&id=1");
    assert_eq!(subscriber.rest(), "id: 1\ndata: x\n\n", "the stream ends as it should");
},);

scenario!(
    public_keys_of_every_kind_verify_tokens,
    howdah_only = "a Mercure hub is Howdah's",
    |s| {
        let s = s.allow_log("token refused").setting("mercure.publisher_key", "\"file:@ROOT@/key.pem\"");
        s.file("key.pem", format!("{SECRET}\n"))
    },
    |site| {
        let top = site.place().top.clone();
        let private = top.join("private.pem").to_str().unwrap().to_owned();
        let public = site.file("key.pem").to_str().unwrap().to_owned();
        let all = json!({ "mercure": { "publish": ["*"] } });
        // The secret may also be in a file, including the line break that editors add.
        assert_eq!(publish(site, &publisher(), "topic=a").status, 200);
        for (arguments, algorithms) in [
            (&["RSA", "-pkeyopt", "rsa_keygen_bits:2048"][..], &["RS256", "PS384"][..]),
            (&["EC", "-pkeyopt", "ec_paramgen_curve:P-256"], &["ES256"]),
            (&["EC", "-pkeyopt", "ec_paramgen_curve:P-384"], &["ES384"]),
            (&["ED25519"], &["EdDSA"]),
        ] {
            openssl(&[&["genpkey", "-out", &private, "-algorithm"], arguments].concat());
            openssl(&["pkey", "-in", &private, "-pubout", "-out", &public]);
            let reloaded = site.howdah().command(&["reload"]);
            assert!(reloaded.status.success(), "{}", String::from_utf8_lossy(&reloaded.stderr));
            let as_secret = std::fs::read_to_string(&public).unwrap();
            let mut wanted: Vec<_> =
                algorithms.iter().map(|alg| (&*private, *alg, json!({ "alg": alg }), all.clone())).collect();
            for secret in [&*as_secret, as_secret.trim_end()] {
                wanted.push((secret, "HS256", json!({ "alg": "HS256" }), all.clone()));
                wanted.push((secret, "HS256", json!({ "alg": algorithms[0] }), all.clone()));
            }
            for (at, token) in tokens(&wanted).iter().enumerate() {
                let status = if at < algorithms.len() { 200 } else { 401 };
                assert_eq!(publish(site, token, "topic=a").status, status, "{algorithms:?} {at}");
            }
        }
    },
);

scenario!(
    a_secret_that_can_be_guessed_is_reported,
    howdah_only = "a Mercure hub is Howdah's",
    |s| s.setting("mercure.publisher_key", "\"short\""),
    |site| {
        let log = site.wait_for_log(&["mercure.publisher_key has only 5 bytes"]);
        assert!(!log.contains("\"short\""), "{log}");
    },
);
