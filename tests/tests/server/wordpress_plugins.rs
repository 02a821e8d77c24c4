//! Plugins that were checked once are trusted up to the checked version, and plugins that must see each request never. A
//! stand-in provides the functions of WordPress that the recipe calls.

use howdah_tests::process::{PATIENCE, eventually};
use howdah_tests::{Mode, Request, Setup, php, run};

/// Reads the request in a function that does not run at boot.
const READS: &str = "function of_a_page() { return $_GET['x'] ?? ''; }";

/// WordPress with this plugin; `trust` is trusted.
fn wordpress(setup: Setup, plugin: &str, version: &str, trust: &str) -> Setup {
    let file = format!("wp-content/plugins/{plugin}/load.php");
    setup
        .php("index.php", "define( 'WP_USE_THEMES', true );\nrequire __DIR__ . '/wp-blog-header.php';")
        .php("wp-blog-header.php", "require_once __DIR__ . '/wp-load.php';\necho Howdah\\mode();")
        .php("wp-load.php", php!("wordpress_hosts/wp-load.php"))
        .php("wp-config.php", &format!("require __DIR__ . '/{file}';"))
        .php("wp-includes/vars.php", "")
        .php(&file, &format!("/*\n * Plugin Name: One\n * Version: {version}\n */\n{READS}"))
        .file(
            "../run/conf.d/site.toml",
            format!(
                "hosts = \"site.example\"\nroot = \"../../root\"\napp = \"wordpress\"\n[pool]\nmode = \"snapshot\"\n\
                 workers = 1\nenv.HOWDAH_WORDPRESS_TRUST = \"{trust}\"\n"
            ),
        )
        .file("../run/conf.d/local.toml", "hosts = \"localhost\"\nroot = \"../../root\"\n")
        .more_processes(3)
}

/// Checks the mode of pages, and the reason for classic mode.
fn serves(plugin: &str, version: &str, trust: &str, reason: Option<&str>) {
    run(
        Mode::Classic,
        |s| wordpress(s, plugin, version, trust).allow_log("recipe wordpress").allow_log("ended before it"),
        |site| {
            let mode = || site.send(&Request::get("/").header("Host", "site.example")).text();
            let Some(reason) = reason else {
                assert!(eventually(PATIENCE, || mode() == "snapshot"), "{plugin} {version}: {}", site.log());
                return;
            };
            let _ = site.wait_for_log(&[reason, "the application does not boot"]);
            assert_eq!(mode(), "classic", "{plugin} {version}");
        },
    );
}

#[test]
fn checked_plugins_boot_up_to_the_checked_version_and_some_plugins_never() {
    serves("contact-form-7", "6.1.6", "", None);
    serves("contact-form-7", "6.2", "", Some("(contact-form-7 was checked up to 6.1)"));
    serves("contact-form-7", "6.2", "contact-form-7", None);
    serves("of-the-site", "1.0", "", Some("has $_GET: it may read the request"));
    serves("redirection", "5.4.2", "redirection", Some("redirection: it redirects at the hook init"));
}
