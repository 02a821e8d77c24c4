//! Checks of new workers before a reload gives them requests.

use howdah_tests::process::{PATIENCE, eventually};
use howdah_tests::{Conn, Setup, Site, script_scenario};
use std::fs;
use std::process::Output;

const HOST: &str = "shop.example";

/// A site whose pool reports its release, and fails if that is a bad one.
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
        .allow_log("status=500")
}

fn deploy(site: &Site, name: &str) {
    fs::write(site.place().run.join("conf.d/40-shop.toml"), release(name)).unwrap();
}

fn shop(site: &Site) -> (u16, String) {
    let mut conn = Conn::open(site.target());
    conn.send(format!("GET /health.php HTTP/1.1\r\nHost: {HOST}\r\nConnection: close\r\n\r\n"));
    let response = conn.response("GET");
    (response.status, response.text())
}

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

fn reload(site: &Site) -> (Option<i32>, String) {
    let output = site.howdah().command(&["reload"]);
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
        let (status, said) = reload(site);
        assert_eq!(status, Some(0), "{said}");
        for line in ["deploy: /v.php responds with 200\n", "deploy: shop.example/health.php responds with 200\n"] {
            assert!(said.contains(line), "{said}");
        }
        assert_eq!(shop(site), (200, "second".to_owned()));

        deploy(site, "bad");
        let (status, said) = reload(site);
        assert_eq!(status, Some(1), "{said}");
        let why = "`deploy.check`: shop.example/health.php: the new workers respond with 500";
        assert!(said.contains(why), "{said}");
        assert_eq!(shop(site), (200, "second".to_owned()));

        fs::remove_file(site.place().run.join("conf.d/40-shop.toml")).unwrap();
        let (status, said) = reload(site);
        assert_eq!(status, Some(1), "{said}");
        assert!(said.contains("no site has this host"), "{said}");
        assert_eq!(shop(site), (200, "second".to_owned()));
        assert!(eventually(PATIENCE, || site.howdah().processes().len() == before), "workers of failed reloads stay");
    }
);
