//! JavaScript of the guides in a real browser, with the PHP of the same page.

use super::blocks::{Block, tried};
use crate::server::in_browser::{Browser, has_browser, reporting};
use crate::server::pusher::{clients::installed, publish, pusher};
use howdah_skip::skip;
use howdah_tests::process::{PATIENCE, eventually};
use howdah_tests::{Mode, Setup, Site, run};
use std::collections::BTreeSet;
use std::fs;

/// Pages that have JavaScript, each with a test here.
const PAGES: [&str; 3] = ["docs/guide/mercure.md", "docs/guide/pusher.md", "docs/guide/websocket.md"];

/// The page's first block of a language.
fn block(page: &str, language: &str) -> String {
    tried(&[language]).into_iter().find(|block| block.page == page).unwrap().text
}

/// A page whose script reports what it logs.
fn html(head: &str, script: &str) -> String {
    let report = "let reports = Promise.resolve()\n\
        console.log = (seen) => { const text = typeof seen === 'string' ? seen : JSON.stringify(seen)\n\
        reports = reports.then(() => fetch('/seen.php?text=' + encodeURIComponent(text))) }\n";
    format!("<!doctype html>\n<meta charset=\"utf-8\">\n{head}<script type=\"module\">\n{report}{script}</script>\n")
}

/// Shows the page, and publishes until it has logged this.
fn logs(site: &Site, expected: &str, publish: impl Fn()) {
    let _browser = Browser::show(site, "/page.html");
    let seen = || fs::read_to_string(site.file("seen")).unwrap_or_default();
    let has_come = eventually(PATIENCE, || {
        publish();
        seen().lines().any(|line| line == expected)
    });
    assert!(has_come, "{expected:?}, but {:?}\n{}", seen(), site.log());
}

#[test]
fn every_page_with_javascript_is_shown_in_a_browser() {
    let pages: BTreeSet<String> = tried(&["js"]).into_iter().map(|block: Block| block.page).collect();
    assert!(pages.iter().eq(PAGES), "{pages:?}");
}

#[test]
fn the_socket_of_the_guide_gets_its_message_back() {
    if !has_browser() {
        skip!("chromium", "the test needs a browser");
    }
    let [_, _, page] = PAGES;
    // The browser does not know the tests' CA.
    let script = block(page, "js").replace("wss:", "ws:");
    let setup = |s: Setup| {
        let s = reporting(s).file("chat.php", block(page, "php")).file("page.html", html("", &script));
        s.setting("rule", "[{ path = \"/ws\", websocket = \"/chat.php\" }]")
    };
    run(Mode::Classic, setup, |site| logs(site, "hello", || {}));
}

#[test]
fn the_subscriber_of_the_guide_gets_prices() {
    if !has_browser() {
        skip!("chromium", "the test needs a browser");
    }
    let [page, ..] = PAGES;
    let setup = |s: Setup| {
        let s = reporting(s).file("page.html", html("", &block(page, "js"))).setting("mercure.anonymous", "true");
        s.file("publish.php", format!("<?php $html = 'new';\n{}", block(page, "php")))
    };
    run(Mode::Classic, setup, |site| {
        logs(site, r#"{"gold":1840}"#, || {
            site.get_ok("/publish.php");
        });
    });
}

#[test]
fn laravel_echo_of_the_guide_gets_an_order() {
    if !has_browser() {
        skip!("chromium", "the test needs a browser");
    }
    let [_, page, _] = PAGES;
    let clients = installed();
    let module = |path: &str| fs::read_to_string(clients.as_ref().unwrap().join("node_modules").join(path)).unwrap();
    let script = block(page, "js").replace("l3arf8vvgqzxvczjj1ga", "the-key");
    // A bundler does this for an application.
    let head = "<script type=\"importmap\">{\"imports\": {\"laravel-echo\": \"/echo.js\", \"pusher-js\": \"/pusher-js.js\"}}</script>\n";
    let setup = |s: Setup| match &clients {
        Some(_) => pusher(reporting(s))
            .file("echo.js", module("laravel-echo/dist/echo.js"))
            .file("pusher.js", module("pusher-js/dist/web/pusher.min.js"))
            .file("pusher-js.js", "import '/pusher.js'\nexport default window.Pusher\n")
            .file("page.html", html(head, &script))
            .setting("rule", "[{ path = \"/broadcasting/auth\", rewrite = \"/app.php?do=auth&user=ann\" }]"),
        None => s.lacks("pusher-clients", "run scripts/pusher-clients.sh, which needs npm and a network"),
    };
    run(Mode::Classic, setup, |site| {
        logs(site, r#"{"id":7}"#, || publish(site, "App\\Events\\OrderShipped", "private-orders.7", r#"{"id":7}"#));
    });
}
