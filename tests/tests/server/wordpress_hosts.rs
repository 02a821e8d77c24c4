//! One WordPress for several hosts, whose wp-config.php depends on the host: an application that the recipe has booted
//! for one host must never serve another. A stand-in provides the functions of WordPress that the recipe calls.

use howdah_tests::process::{PATIENCE, eventually};
use howdah_tests::{Mode, Request, Setup, Site, php, run};

const HOSTS: [&str; 4] = ["one.example", "two.example", "three.example", "four.example"];

fn wordpress(mut setup: Setup) -> Setup {
    setup = setup
        .php("index.php", "define( 'WP_USE_THEMES', true );\nrequire __DIR__ . '/wp-blog-header.php';")
        .php("wp-blog-header.php", "require_once __DIR__ . '/wp-load.php';\necho Howdah\\mode(), ' ', DATABASE;")
        .php("wp-load.php", php!("wordpress_hosts/wp-load.php"))
        .php("wp-config.php", php!("wordpress_hosts/wp-config.php"))
        .php("wp-includes/vars.php", "")
        .php("config-localhost.php", "define('DATABASE', 'of no site');");
    for host in HOSTS {
        setup = setup.php(&format!("config-{host}.php"), &format!("define('DATABASE', 'of {host}');"));
    }
    setup
}

fn database(site: &Site, host: &str) -> String {
    site.send(&Request::get("/").header("Host", host)).text()
}

#[test]
fn a_boot_never_serves_a_host_whose_configuration_it_has_not_read() {
    let own = |host: &str| {
        format!(
            "hosts = \"{host}\"\nroot = \"../../root\"\napp = \"wordpress\"\n[pool]\nmode = \"snapshot\"\nworkers = 1\n"
        )
    };
    let both = "hosts = [\"three.example\", \"four.example\"]\nroot = \"../../root\"\napp = \"wordpress\"\n[pool]\nmode = \"snapshot\"\n";
    run(
        Mode::Classic,
        |s| {
            wordpress(s.more_processes(4))
                .file("../run/conf.d/10-one.toml", own("one.example"))
                .file("../run/conf.d/20-two.toml", own("two.example"))
                .file("../run/conf.d/30-both.toml", both)
                .file("../run/conf.d/40-local.toml", "hosts = \"localhost\"\nroot = \"../../root\"\n")
                .allow_log("it chooses by the host")
                .allow_log("ended before it")
        },
        |site| {
            for host in ["one.example", "two.example"] {
                let booted = format!("snapshot of {host}");
                assert!(eventually(PATIENCE, || database(site, host) == booted), "{host}: {}", site.log());
            }
            let why = site.wait_for_log(&["which the boot does not know", "the application does not boot"]);
            assert!(why.contains("wp-config.php"), "{why}");
            assert_eq!(site.log().matches("boot does not know").count(), 1, "one line for one cause: {}", site.log());
            for _ in 0..3 {
                for host in HOSTS {
                    let said = database(site, host);
                    assert!(said.ends_with(&format!(" of {host}")), "{host}: {said}");
                }
                // The configuration considers it an HTTPS request.
                let proxied = Request::get("/").header("Host", "one.example").header("X-Forwarded-Proto", "https");
                assert_eq!(site.send(&proxied).text(), "classic of one.example");
                assert_eq!(database(site, "four.example"), "classic of four.example");
            }
        },
    );
}
