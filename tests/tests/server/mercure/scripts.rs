//! `mercure_publish()`: scripts publish in every mode, without a token.

use super::{HUB, SUBSCRIBERS, Subscriber, bearer, hub, token};
use howdah_tests::{Request, php, script_scenario};
use serde_json::{Value, json};

const PUBLISH: &str = php!("publish.php");

script_scenario!(
    a_script_publishes_to_the_hub_of_its_site,
    howdah_only = "a Mercure hub is Howdah's",
    |s| hub(s).workers(1).php("publish.php", PUBLISH),
    |site| {
        let mut public = Subscriber::anonymous(site, "topic=t");
        let token = token(SUBSCRIBERS, json!({ "subscribe": ["t"] }));
        let mut private = Subscriber::open(site.target(), &bearer(Request::get(&format!("{HUB}?topic=t")), &token));
        let wrong: Vec<String> = serde_json::from_str(&site.get_ok("/publish.php?case=wrong")).unwrap();
        assert!(wrong.iter().all(|text| text.contains("Error: mercure_publish(): Argument #")), "{wrong:?}");
        assert_eq!(wrong.len(), 10);
        for _ in 0..2 {
            let ids: Value = site.get("/publish.php?case=some").expect(200).json();
            let first = ids[0].as_str().unwrap();
            assert!(first.starts_with("urn:uuid:") && first.len() == 45, "{ids}");
            assert_eq!((&ids[1], &ids[2], &ids[3]), (&json!("urn:1"), &json!("urn:2"), &json!("urn:3")));
            let large = format!("id: urn:3\ndata: {}\n\n", "x".repeat(300_000));
            for (subscriber, sees_all) in [(&mut public, false), (&mut private, true)] {
                assert_eq!(subscriber.event(), format!("id: {first}\ndata: a\ndata: b\n\n"));
                assert_eq!(subscriber.event(), "event: changed\nretry: 700\nid: urn:1\ndata: named\n\n");
                if sees_all {
                    assert_eq!(subscriber.event(), "id: urn:2\ndata: secret\n\n");
                }
                assert!(subscriber.event() == large, "an update larger than the lane arrives whole");
            }
        }
    },
);

script_scenario!(
    a_script_of_a_site_without_a_hub_gets_an_exception,
    howdah_only = "a Mercure hub is Howdah's",
    |s| s.workers(1).php("publish.php", PUBLISH),
    |site| {
        let said: Value = site.get("/publish.php").expect(200).json();
        assert_eq!(said, json!(["RuntimeException: No Mercure hub configured"]));
    },
);
