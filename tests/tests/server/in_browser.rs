//! Long-lived connections in a real browser: WebSocket, EventSource, the Pusher protocol, and page reloads under
//! `howdah dev`. The pages report to `seen.php`.

use super::pusher::{clients::installed, pusher};
use howdah_skip::skip;
use howdah_tests::process::{PATIENCE, eventually};
use howdah_tests::{Mode, Request, Setup, Site, php, run};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

const BROWSER: &str = "/usr/bin/chromium";
const SEEN: &str = php!("in_browser/seen.php");

/// A browser that shows a page until it is dropped.
pub(crate) struct Browser {
    process: Child,
    _profile: tempfile::TempDir,
}

impl Browser {
    pub(crate) fn show(site: &Site, path: &str) -> Self {
        let profile = tempfile::tempdir().unwrap();
        let process = Command::new(BROWSER)
            .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"])
            .arg("--remote-debugging-port=0")
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .arg(format!("http://127.0.0.1:{}{path}", site.port()))
            .env("HOME", profile.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .unwrap();
        Self { process, _profile: profile }
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let group = rustix::process::Pid::from_child(&self.process);
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        let _ = self.process.wait();
    }
}

pub(crate) fn has_browser() -> bool {
    Path::new(BROWSER).exists()
}

pub(crate) fn reporting(setup: Setup) -> Setup {
    setup.http1("the browser speaks HTTP/1.1 here").never_https().workers(2).php("seen.php", SEEN)
}

/// Waits until pages have reported these texts, in this order.
pub(crate) fn seen(site: &Site, expected: &[&str]) {
    let read = || std::fs::read_to_string(site.file("seen")).unwrap_or_default();
    let has_come = eventually(PATIENCE, || read().lines().take(expected.len()).eq(expected.iter().copied()));
    assert!(has_come, "{:?} instead of {expected:?}\n{}", read(), site.log());
}

#[test]
fn a_page_talks_over_a_websocket() {
    if !has_browser() {
        skip!("chromium", "the test needs a browser");
    }
    let setup = |s: Setup| {
        reporting(s)
            .file("chat.html", include_str!("php/in_browser/chat.html"))
            .php("chat.php", php!("in_browser/chat.php"))
            .setting("rule", "[{ path = \"/ws\", websocket = \"/chat.php\" }]")
    };
    run(Mode::Classic, setup, |site| {
        let _browser = Browser::show(site, "/chat.html");
        seen(site, &["open", "you said: hello", "you said: äöü", "closed 4000 enough"]);
    });
}

#[test]
fn a_page_gets_events_of_the_mercure_hub_and_continues_where_it_left_off() {
    if !has_browser() {
        skip!("chromium", "the test needs a browser");
    }
    let setup = |s: Setup| {
        reporting(s)
            .file("prices.html", include_str!("php/in_browser/prices.html"))
            .php("publish.php", "mercure_publish('prices', $_GET['data'], id: $_GET['id'], type: 'price');")
            .setting("mercure.anonymous", "true")
    };
    run(Mode::Classic, setup, |site| {
        let _browser = Browser::show(site, "/prices.html");
        seen(site, &["open"]);
        for id in ["1", "2"] {
            assert_eq!(site.get_ok(&format!("/publish.php?id={id}&data=price%20{id}")), "");
        }
        // It closes after the first two, and a new one begins after the first.
        seen(site, &["open", "price 1", "price 2", "again: price 2"]);
    });
}

#[test]
fn a_page_uses_pusher_js() {
    if !has_browser() {
        skip!("chromium", "the test needs a browser");
    }
    let script = installed().map(|place| place.join("node_modules/pusher-js/dist/web/pusher-with-encryption.min.js"));
    let setup = |s: Setup| match &script {
        Some(script) => pusher(reporting(s))
            .file("pusher.js", std::fs::read_to_string(script).unwrap())
            .file("pusher.html", include_str!("php/in_browser/pusher.html")),
        None => s.lacks("pusher-clients", "run scripts/pusher-clients.sh, which needs npm and a network"),
    };
    run(Mode::Classic, setup, |site| {
        let _browser = Browser::show(site, "/pusher.html");
        seen(site, &["members: 1"]);
        super::pusher::publish(site, "said", "presence-room", r#"{"text":"hello"}"#);
        seen(site, &["members: 1", "hello"]);
        // The application encrypts; the client decrypts by tweetnacl.
        let event = r#"{"name":"diagnosis","channels":["private-encrypted-medical"],"data":"{\"text\":\"healthy\"}"}"#;
        let event = serde_json::from_str(event).unwrap();
        assert_eq!(super::pusher::api(site, "events", "&encrypt=1", Some(&event)).0, 200);
        seen(site, &["members: 1", "hello", "decrypted: healthy"]);
    });
}

#[test]
fn a_page_under_development_reloads_when_a_file_changes() {
    if !has_browser() {
        skip!("chromium", "the test needs a browser");
    }
    let page = "echo '<!doctype html><title>x</title><script>fetch(\"/seen.php?text=loaded\")</script>';";
    let setup = |s: Setup| reporting(s).developing().php("page.php", page);
    run(Mode::Classic, setup, |site| {
        // Programs and scripts get the unchanged page.
        assert!(!site.get_ok("/page.php").contains("/.howdah/"));
        let shown = site.send(&Request::get("/page.php").header("Sec-Fetch-Dest", "document")).expect(200).text();
        assert!(shown.ends_with("<script src=\"/.howdah/reload.js\" defer></script>\n"), "{shown}");
        let _browser = Browser::show(site, "/page.php");
        seen(site, &["loaded"]);
        std::fs::write(site.file("template.twig"), "changed").unwrap();
        seen(site, &["loaded", "loaded"]);
    });
}
