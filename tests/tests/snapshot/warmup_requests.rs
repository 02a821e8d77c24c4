//! Requests of a warm-up: like a visitor's GET after sites and rules, but not sent by a visitor.

use howdah_tests::{Mode, Request, Setup, Site, php, run};
use serde_json::Value;

/// Variables that differ for each request.
const OWN: [&str; 6] =
    ["HTTP_CONNECTION", "REMOTE_PORT", "REQUEST_ID", "REQUEST_TIME", "REQUEST_TIME_FLOAT", "HTTP_USER_AGENT"];

fn warmed(setup: Setup, targets: &str) -> Setup {
    setup
        .workers(1)
        .script("worker.php")
        .setting("warmup", targets)
        .setting("warmup_check", "false")
        .php("worker.php", php!("warmup/as_visitors.php").trim_start_matches("<?php"))
}

/// The variables of the warm-up's request for a target and those of a visitor's, without those that differ for each
/// request.
fn both(site: &Site, target: &str) -> [Vec<(String, Value)>; 2] {
    let request = Request::get(target).header("User-Agent", "a visitor").header("Accept", "*/*");
    let seen = site.send(&request.header("Host", "localhost")).expect(200).json();
    ["warm", "visitor"].map(|which| {
        let variables = seen[which].as_object().unwrap_or_else(|| panic!("no {which} in {seen}"));
        let common = variables.iter().filter(|(name, _)| !OWN.contains(&name.as_str()));
        common.map(|(name, value)| (name.clone(), value.clone())).collect()
    })
}

#[test]
fn a_request_of_the_warm_up_has_the_variables_of_a_visitor_s() {
    let rules = "[{ path = '/shop/*', env = { SHOP = 'yes' } }, { path = '/staff/*', auth = { realm = 'Staff', file = '@ROOT@/users' } }]";
    let setup = |s: Setup| {
        let targets = "[\"/shop/cart?a=1\", \"/worker.php/a/b%20c\", \"/staff/\", \"/plain.txt\"]";
        warmed(s, targets)
            .setting("rule", rules)
            .file("users", "anna:{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g=\n")
            .file("plain.txt", "plain")
            .expect_log("/plain.txt is not requested: its response is 200 OK, without PHP")
    };
    run(Mode::Snapshot, setup, |site| {
        for target in ["/shop/cart?a=1", "/worker.php/a/b%20c"] {
            let [warm, visitor] = both(site, target);
            assert_eq!(warm, visitor, "{target}");
        }
        // The server itself needs no password.
        let seen = site.get_ok("/shop/x");
        assert!(seen.contains(r#""all":["\/shop\/cart?a=1","\/worker.php\/a\/b%20c","\/staff\/"]"#), "{seen}");
        assert!(site.get("/staff/").status == 401);
        let status = site.howdah().status();
        let findings = status["pools"][0]["snapshot_warmup"].to_string();
        assert!(findings.contains("/plain.txt is not requested"), "{findings}");
    });
}

#[test]
fn a_request_of_the_warm_up_goes_where_htaccess_files_lead() {
    let setup = |s: Setup| {
        warmed(s, "[\"/nice/7\"]")
            .setting("htaccess", "true")
            .file(".htaccess", "RewriteEngine On\nRewriteRule ^nice/(.*)$ worker.php?id=$1 [L]\nSetEnv FROM files\n")
    };
    run(Mode::Snapshot, setup, |site| {
        let [warm, visitor] = both(site, "/nice/7");
        assert_eq!(warm, visitor);
        assert!(warm.contains(&("QUERY_STRING".to_owned(), "id=7".into())), "{warm:?}");
    });
}

#[test]
fn a_warm_up_without_effect_is_reported() {
    let setup = |s: Setup| {
        s.setting("warmup", "[\"/\"]")
            .php("index.php", "echo 'ok';")
            .expect_log("warmup of the pool default has no effect in mode \"classic\"")
    };
    run(Mode::Classic, setup, |site| assert_eq!(site.get_ok("/"), "ok"));
}
