//! Conditions for new workers before a reload gives them all requests: responses to paths that are checked, and no more
//! failures than the workers that are there while a share of the clients is theirs.

use howdah_tests::process::{PATIENCE, eventually};
use howdah_tests::{Conn, Setup, Site, script_scenario};
use std::fs;
use std::process::Output;

const HOST: &str = "shop.example";

/// A site whose pool says which release it is, and fails if that is a bad one.
fn release(name: &str) -> String {
    format!(
        "hosts = \"{HOST}\"\nroot = \"../../shop\"\n\n[pool]\nmode = \"classic\"\nworkers = 1\nenv = {{ RELEASE = \"{name}\" }}\n"
    )
}

fn with_a_shop(setup: Setup) -> Setup {
    setup
        .file("../run/conf.d/30-local.toml", "hosts = \"localhost\"\nroot = \"../../root\"\n")
        .file("../run/conf.d/40-shop.toml", release("first"))
        .file(
            "../shop/health.php",
            "<?php if (str_starts_with(getenv('RELEASE'), 'bad')) http_response_code(500); echo getenv('RELEASE');",
        )
        .php("v.php", "echo getmypid();")
        .setting("http.trusted_proxies", "[\"127.0.0.1\"]")
        .allow_log("status=500")
}

fn deploy(site: &Site, name: &str) {
    fs::write(site.place().run.join("conf.d/40-shop.toml"), release(name)).unwrap();
}

/// Response to a visitor with this address.
fn shop(site: &Site, visitor: u8) -> (u16, String) {
    let mut conn = Conn::open(site.target());
    conn.send(format!(
        "GET /health.php HTTP/1.1\r\nHost: {HOST}\r\nX-Forwarded-For: 192.0.2.{visitor}\r\nConnection: close\r\n\r\n"
    ));
    let response = conn.response("GET");
    (response.status, response.text())
}

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

fn reload(site: &Site, flags: &[&str]) -> (Option<i32>, String) {
    let output = site.howdah().command(&[&["reload"], flags].concat());
    (output.status.code(), text(&output))
}

script_scenario!(
    a_release_that_fails_its_checks_gets_no_request,
    howdah_only = "reload is Howdah's command",
    |s| with_a_shop(s)
        .setting("deploy.check", "[\"/v.php\", \"shop.example/health.php\"]")
        .allow_log("reload failed")
        .allow_log("no site has this host"),
    |site| {
        let before = site.howdah().processes().len();
        deploy(site, "second");
        let (status, said) = reload(site, &[]);
        assert_eq!(status, Some(0), "{said}");
        for line in ["deploy: /v.php responds with 200\n", "deploy: shop.example/health.php responds with 200\n"] {
            assert!(said.contains(line), "{said}");
        }
        assert_eq!(shop(site, 1), (200, "second".to_owned()));

        deploy(site, "bad");
        let (status, said) = reload(site, &[]);
        assert_eq!(status, Some(1), "{said}");
        let why = "`deploy.check`: shop.example/health.php: the new workers respond with 500";
        assert!(said.contains(why), "{said}");
        assert_eq!(shop(site, 1), (200, "second".to_owned()));

        fs::remove_file(site.place().run.join("conf.d/40-shop.toml")).unwrap();
        let (status, said) = reload(site, &[]);
        assert_eq!(status, Some(1), "{said}");
        assert!(said.contains("no site has this host"), "{said}");
        assert_eq!(shop(site, 1), (200, "second".to_owned()));
        assert!(eventually(PATIENCE, || site.howdah().processes().len() == before), "workers of failed reloads stay");
    }
);

script_scenario!(
    a_release_whose_responses_fail_is_taken_back,
    howdah_only = "reload is Howdah's command",
    |s| with_a_shop(s).allow_log("reload failed"),
    |site| {
        deploy(site, "bad");
        std::thread::scope(|scope| {
            // It would be watched for far longer than this test may take.
            let reloading = scope.spawn(|| reload(site, &["--canary", "100%", "--watch", "1h"]));
            let mut failed = 0;
            assert!(
                eventually(PATIENCE, || {
                    failed += u32::from(shop(site, 1) == (500, "bad".to_owned()));
                    reloading.is_finished()
                }),
                "after {failed} failures the release still serves"
            );
            assert!(failed >= 3, "{failed}");
            let (status, said) = reloading.join().unwrap();
            assert_eq!(status, Some(1), "{said}");
            assert!(said.contains("responses of the new workers had a status of 5xx"), "{said}");
        });
        assert_eq!(shop(site, 1), (200, "first".to_owned()));

        deploy(site, "second");
        let (status, said) = reload(site, &["--canary", "1", "--watch", "200ms"]);
        assert_eq!(status, Some(0), "{said}");
        assert!(said.contains("deploy: "), "{said}");
        assert_eq!(shop(site, 1), (200, "second".to_owned()));
    }
);

script_scenario!(
    a_share_of_the_clients_gets_a_release_first_and_a_stop_ends_that,
    howdah_only = "reload is Howdah's command",
    |s| with_a_shop(s).allow_log("reload failed"),
    |site| {
        deploy(site, "second");
        std::thread::scope(|scope| {
            let reloading = scope.spawn(|| reload(site, &["--canary", "50%", "--watch", "1h"]));
            let releases = || (0..40).map(|visitor| shop(site, visitor).1).collect::<Vec<_>>();
            let mut seen = Vec::new();
            assert!(
                eventually(PATIENCE, || {
                    seen = releases();
                    seen.iter().any(|release| release == "second")
                }),
                "nobody gets the release"
            );
            // The trial may have begun within the round before.
            let first = releases();
            assert!(first.iter().any(|release| release == "first"), "everybody gets the release");
            assert_eq!(releases(), first, "each visitor keeps what it has got");
            assert!(!reloading.is_finished());
            assert!(site.howdah().command(&["stop"]).status.success());
            let (status, said) = reloading.join().unwrap();
            assert_eq!(status, Some(1), "{said}");
            assert!(said.contains("the server is stopping"), "{said}");
        });
    }
);
