//! Drupal by its recipe: which requests run on the boot, and that none runs on an outdated one. A stand-in provides the
//! functions of Drupal that the recipe calls.

use howdah_tests::process::{PATIENCE, eventually};
use howdah_tests::{Mode, Request, Setup, Site, php, run};

const FRONT: &str = "use Drupal\\Core\\DrupalKernel;\nuse Symfony\\Component\\HttpFoundation\\Request;\n
    $autoloader = require_once 'autoload.php';\n$kernel = new DrupalKernel('prod', $autoloader);\n
    $request = Request::createFromGlobals();\n$response = $kernel->handle($request);\n$response->send();\n
    $kernel->terminate($request, $response);";
const SETTINGS: &str = "$settings['name'] = 'one';\n$config['site']['name'] = $_SERVER['HTTP_X_NAME'] ?? 'stranger';\n\
    $databases['default']['default'] = ['driver' => 'none'];";

fn drupal(setup: Setup, settings: &str) -> Setup {
    setup
        .php("index.php", FRONT)
        .php("autoload.php", php!("drupal/autoload.php"))
        .php("sites/default/settings.php", settings)
        .file("container.txt", "first")
        .file("../run/conf.d/site.toml", "hosts = \"site.example\"\nroot = \"../../root\"\napp = \"drupal\"\n[pool]\nmode = \"snapshot\"\nworkers = 1\n")
        .file("../run/conf.d/local.toml", "hosts = \"localhost\"\nroot = \"../../root\"\n")
        .more_processes(3)
}

fn visit(site: &Site, request: Request) -> String {
    site.send(&request.header("Host", "site.example")).text()
}

fn anonymous(site: &Site) -> String {
    visit(site, Request::get("/"))
}

fn change(site: &Site, file: &str, text: &str) {
    std::fs::write(site.place().root.join(file), text).unwrap();
}

#[test]
fn anonymous_visitors_get_pages_of_the_boot_which_is_never_outdated() {
    run(
        Mode::Classic,
        |s| drupal(s, SETTINGS),
        |site| {
            assert!(eventually(PATIENCE, || anonymous(site).starts_with("snapshot")), "{}", site.log());
            // No page has been rendered before, and each finds the state of the boot.
            for name in ["ann", "bob", "ann"] {
                let said = visit(site, Request::get("/node/1").header("X-Name", name));
                assert_eq!(said, format!("snapshot first one {name} 1 1"));
            }
            let known = visit(site, Request::get("/").header("Cookie", "a=b; SESS0123=token"));
            assert_eq!(known, "classic first one stranger 1 1");
            assert!(visit(site, Request::new("POST", "/")).starts_with("classic"));
            // Drupal stores its container anew when a module is installed.
            change(site, "container.txt", "second");
            assert_eq!(anonymous(site), "snapshot second one stranger 1 1", "{}", site.log());
            change(site, "sites/default/settings.php", &format!("<?php {}", SETTINGS.replace("one", "two")));
            assert!(eventually(PATIENCE, || anonymous(site) == "snapshot second two stranger 1 1"), "{}", site.log());
        },
    );
}

#[test]
fn a_boot_that_could_depend_on_the_request_is_refused_with_one_line() {
    let by_host = format!("{SETTINGS}\n$settings['name'] = $_SERVER['HTTP_HOST'];");
    run(
        Mode::Classic,
        |s| drupal(s, &by_host).allow_log("depends on the request").allow_log("ended before it"),
        |site| {
            let why = site.wait_for_log(&["settings.php depends on the request", "takes 3 to 4 times"]);
            assert_eq!(why.matches("depends on the request").count(), 1, "{why}");
            assert_eq!(anonymous(site), "classic first site.example stranger 1 1");
        },
    );
}
