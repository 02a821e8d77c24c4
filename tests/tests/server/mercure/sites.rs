//! Sites with separate hubs, and problem details for clients that accept them.

use super::{HUB, SECRET, SUBSCRIBERS, Subscriber, bearer, closed, token};
use howdah_tests::{Request, Response, Setup, Site, scenario};
use serde_json::{Value, json};

/// Two sites with their own `[site.mercure]`, and one that has no hub.
fn two_hubs(setup: Setup) -> Setup {
    let site = |name: &str, key: &str| {
        let mercure = format!("[mercure]\npublisher_key = \"{key}\"\nanonymous = true\n");
        format!("hosts = \"{name}.example\"\nroot = \"../../root\"\n{mercure}")
    };
    setup
        .allow_log("token refused")
        .file("../run/conf.d/10-one.toml", site("one", SECRET))
        .file("../run/conf.d/20-two.toml", site("two", SUBSCRIBERS))
        .file("../run/conf.d/30-local.toml", "hosts = \"localhost\"\nroot = \"../../root\"\n")
}

fn publish(site: &Site, host: &str, key: &str, form: &str) -> Response {
    let token = token(key, json!({ "publish": ["*"] }));
    site.send(&bearer(Request::form(HUB, form).header("Host", host), &token))
}

fn subscribe(site: &Site, host: &str, query: &str) -> Subscriber {
    Subscriber::open(site.target(), &Request::get(&format!("{HUB}?{query}")).header("Host", host))
}

scenario!(
    hubs_of_two_sites_share_neither_keys_nor_topics_nor_history,
    howdah_only = "a Mercure hub is Howdah's",
    two_hubs,
    |site| {
        let (one, two) = ("one.example", "two.example");
        let mut first = subscribe(site, one, "topic=a");
        let mut second = subscribe(site, two, "topic=a");
        for (host, key, status) in
            [(one, SECRET, 200), (two, SUBSCRIBERS, 200), (one, SUBSCRIBERS, 401), (two, SECRET, 401)]
        {
            assert_eq!(publish(site, host, key, &format!("topic=a&data={host}&id={host}")).status, status, "{host}");
        }
        assert_eq!(first.event(), "id: one.example\ndata: one.example\n\n");
        assert_eq!(second.event(), "id: two.example\ndata: two.example\n\n");
        for (host, subscriber) in [(one, &mut first), (two, &mut second)] {
            let mut again = subscribe(site, host, "topic=a&lastEventID=earliest");
            assert_eq!(again.event(), format!("id: {host}\ndata: {host}\n\n"));
            let key = if host == one { SECRET } else { SUBSCRIBERS };
            assert_eq!(publish(site, host, key, "topic=a&data=end&id=end").status, 200);
            assert_eq!([again.event(), subscriber.event()], ["id: end\ndata: end\n\n"; 2], "{host}");
        }
        assert_eq!(site.get(&format!("{HUB}?topic=a")).status, 404, "the third site has no hub");
    },
);

scenario!(
    refusals_of_the_hub_are_problem_details_for_clients_that_want_them,
    howdah_only = "a Mercure hub is Howdah's",
    |s| closed(s).allow_log("token refused"),
    |site| {
        let good = token(SECRET, json!({ "publish": ["a"] }));
        for (request, status, detail) in [
            (Request::form(HUB, "topic=a"), 401, Some("The request has no token.")),
            (bearer(Request::form(HUB, "topic=a"), "x"), 401, Some("The request has an invalid token.")),
            (bearer(Request::form(HUB, "topic=b"), &good), 403, None),
            (bearer(Request::form(HUB, "data=x"), &good), 400, None),
            (Request::get(&format!("{HUB}?topic=a")), 401, Some("The request has no token.")),
            (Request::new("DELETE", HUB), 405, None),
        ] {
            let response = site.send(&request.header("Accept", "application/problem+json"));
            assert_eq!((response.status, response.header("content-type")), (status, Some("application/problem+json")));
            let problem: Value = response.json();
            assert_eq!(problem["status"], status, "{problem}");
            assert!(problem["title"].as_str().is_some_and(|title| !title.is_empty()), "{problem}");
            if let Some(detail) = detail {
                assert_eq!(problem["detail"], detail, "{problem}");
            }
        }
    },
);
