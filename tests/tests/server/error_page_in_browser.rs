//! The error page of `howdah dev` in a real browser: legibility in light and dark mode, in wide and narrow windows.

use howdah_skip::skip;
use howdah_tests::{Mode, Request, Setup, Site, run};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

const BROWSER: &str = "/usr/bin/chromium";
const CART: &str = include_str!("php/error_page_in_browser/cart.php");
const MEASURE: &str = include_str!("php/error_page_in_browser/measure.js");

/// Directory for the screenshots: `HOWDAH_SCREENSHOTS=DIR`.
const SCREENSHOTS: &str = "HOWDAH_SCREENSHOTS";

/// Conditions in which a browser shows a page.
#[derive(Debug, Clone, Copy)]
struct Look {
    name: &'static str,
    dark: bool,
    width: u32,
}

const LOOKS: [Look; 3] = [
    Look { name: "light", dark: false, width: 1200 },
    Look { name: "dark", dark: true, width: 1200 },
    Look { name: "narrow", dark: false, width: 500 },
];

fn browse(look: Look, arguments: &[String], address: &str) -> String {
    let profile = tempfile::tempdir().unwrap();
    let output = Command::new(BROWSER)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"])
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .arg(format!("--blink-settings=preferredColorScheme={}", if look.dark { 0 } else { 1 }))
        .arg(format!("--window-size={},2000", look.width))
        .args(arguments)
        .arg(address)
        .env("HOME", profile.path())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Measures the page in a browser. The page has no script and permits none, so the measuring script is put into a copy.
fn seen(look: Look, page: &str) -> Value {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("page.html");
    let measured = page.replace("</body>", &format!("<script>\n{MEASURE}</script></body>"));
    std::fs::write(&file, measured).unwrap();
    let dom = browse(look, &["--dump-dom".to_owned()], &format!("file://{}", file.display()));
    let found =
        dom.split("<script id=\"seen\" type=\"application/json\">").nth(1).and_then(|t| t.split("</script>").next());
    serde_json::from_str(found.unwrap_or_else(|| panic!("nothing was measured: {dom}"))).unwrap()
}

fn failing(setup: Setup) -> Setup {
    setup.developing().never_https().allow_log("DomainException").file("cart.php", CART)
}

fn page(site: &Site) -> String {
    let request = Request::get("/cart.php?item=7&token=geheim123")
        .header("Accept", "text/html")
        .header("User-Agent", "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0")
        .header("Cookie", "PHPSESSID=geheim123; theme=dark");
    site.send(&request).expect(500).text()
}

#[test]
fn a_browser_shows_message_source_stack_and_request_by_day_and_by_night() {
    if !Path::new(BROWSER).exists() {
        skip!("chromium", "the test needs a browser");
    }
    run(Mode::Classic, failing, |site| {
        let page = page(site);
        for look in LOOKS {
            if let Some(dir) = std::env::var_os(SCREENSHOTS) {
                let shot = Path::new(&dir).join(format!("error-page-{}.png", look.name));
                let address = format!("http://127.0.0.1:{}/cart.php?item=7&token=geheim123", site.port());
                browse(look, &[format!("--screenshot={}", shot.display())], &address);
            }
            let seen = seen(look, &page);
            let text = seen["shown"].as_str().unwrap();
            for part in [
                "DomainException",
                "The <cart> of \"Zoë\" is empty",
                "No row in table carts",
                "if ($this->items === []) {",
                "Cart->total()",
                "{main}",
                "cart.php:12",
                "GET /cart.php?item=7&token=(hidden)",
                "Chrome/140.0.0.0",
                "classic mode",
            ] {
                assert!(text.contains(part), "{look:?}: {part} in {text}");
            }
            assert!(!text.contains("geheim123"), "{text}");
            assert_eq!(seen["dark"], look.dark, "{look:?}");
            assert_eq!(seen["width"], look.width, "{look:?}");
            assert_eq!(seen["faint"], serde_json::json!([]), "{look:?}: hard to read");
            assert_eq!(seen["overflow"], 0, "{look:?}: wider than the window");
            assert_eq!(seen["outside"], serde_json::json!([]), "{look:?}");
            assert_eq!(
                (&seen["marked"], &seen["lines"]),
                (&true.into(), &true.into()),
                "{look:?}: lines of the source"
            );
            assert!(seen["opened"].as_u64() >= Some(2), "{look:?}: steps of the stack do not open: {seen}");
        }
    });
}

/// The unchanged response with its headers: a policy forbids all scripts, and its style still applies.
#[test]
fn a_browser_takes_the_page_from_the_server_with_its_style() {
    if !Path::new(BROWSER).exists() {
        skip!("chromium", "the test needs a browser");
    }
    run(Mode::Classic, failing, |site| {
        let address = format!("http://127.0.0.1:{}/cart.php", site.port());
        let dom = browse(LOOKS[0], &["--dump-dom".to_owned()], &address);
        for part in
            ["<title>DomainException", "<pre class=\"source\">", "prefers-color-scheme: dark", "<ol class=\"stack\""]
        {
            assert!(dom.contains(part), "{part} in {dom}");
        }
    });
}
