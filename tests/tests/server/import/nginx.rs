//! nginx's configurations, as published for applications.

use super::{ANNA, Applications, Differs, OF_NGINX, PATHS_OF_NGINX, USERS, ask, compare, compare_refusals};
use howdah_tests::nginx::Nginx;
use howdah_tests::{Backend, Setup, Site};
use std::fs;
use std::path::Path;

const APPLICATIONS: &[(&str, &str)] = &[
    ("wordpress", include_str!("nginx/wordpress.conf")),
    ("drupal", include_str!("nginx/drupal.conf")),
    ("laravel", include_str!("nginx/laravel.conf")),
    ("symfony", include_str!("nginx/symfony.conf")),
    ("mediawiki", include_str!("nginx/mediawiki.conf")),
    ("nextcloud", include_str!("nginx/nextcloud.conf")),
    ("magento", include_str!("nginx/magento.conf")),
    ("matomo", include_str!("nginx/matomo.conf")),
    ("sylius", include_str!("nginx/sylius.conf")),
    ("prefixes", include_str!("nginx/prefixes.conf")),
    ("fixed", include_str!("nginx/fixed.conf")),
    ("front", include_str!("nginx/front.conf")),
    ("files", include_str!("nginx/files.conf")),
];

/// Intended differences from nginx.
const DIFFERENT: &[Differs] = &[
    ("wordpress", PATH_INFO, "a script runs with what follows it"),
    ("drupal", PATH_INFO, "a script runs with what follows it"),
    ("laravel", PATH_INFO, "what follows a script that may not run does not matter"),
    ("symfony", PATH_INFO, "what follows a script that may not run does not matter"),
    ("magento", PATH_INFO, "what follows a script that may not run does not matter"),
    ("matomo", PATH_INFO, "what follows a script that may not run does not matter"),
    ("sylius", PATH_INFO, "what follows a script that may not run does not matter"),
    ("prefixes", PATH_INFO, "a script runs with what follows it"),
    ("front", PATH_INFO, "what follows a script that may not run does not matter"),
    ("files", PATH_INFO, "what follows a script that may not run does not matter"),
    ("files", &["/index.php/page"], "what follows a script that may not run does not matter"),
    ("front", &["/index.php", "/index.php?q=1"], "clients may name the front controller"),
    ("prefixes", &["/data"], NO_INDEX),
    ("prefixes", HIDDEN, "hidden files are never sent"),
    ("front", HIDDEN, "hidden files are never sent"),
    ("files", HIDDEN, "hidden files are never sent"),
    ("wordpress", &["/data"], NO_INDEX),
    ("laravel", &["/data"], NO_INDEX),
    ("magento", &["/data"], NO_INDEX),
    ("matomo", &["/data"], NO_INDEX),
    ("symfony", HIDDEN, "hidden files are never sent"),
    ("magento", HIDDEN, "hidden files are never sent"),
    ("sylius", HIDDEN, "hidden files are never sent"),
    ("laravel", &["/index.php/page"], "PATH_INFO is not split from SCRIPT_NAME there"),
    ("nextcloud", &["/dir/"], "an index runs itself, without a rewrite to the front controller"),
    ("sylius", &["/index.php", "/index.php/page", "/index.php?q=1"], "clients may name the front controller"),
];

const PATH_INFO: &[&str] = &["/remote.php/dav/a", "/ocs/v1.php/a?b=c"];
const NO_INDEX: &str = "a directory without an index belongs to the front controller, without a redirect";
const HIDDEN: &[&str] = &["/.env", "/.git/config"];

#[test]
fn published_configurations_of_nginx_serve_the_same_paths_alike() {
    let truth = Site::start(Backend::Reference, &Setup::default().workers(4));
    let applications = Applications::new(APPLICATIONS);
    fs::write(applications.root("prefixes").join("users"), USERS).unwrap();
    let all = |listen: &str| applications.text(listen, &truth.fastcgi());
    let nginx = Nginx::start(1, |_, ports| all(&format!("127.0.0.1:{}", ports[0])));
    let ours = applications.serve("nginx.conf", &all(&format!("127.0.0.1:{}", applications.port.number)));
    let files: Vec<String> = OF_NGINX.iter().map(|file| format!("/{file}")).collect();
    let further: Vec<&str> = files.iter().map(String::as_str).chain(PATHS_OF_NGINX.iter().copied()).collect();
    compare(&applications, &ours, nginx.port(0), &further, DIFFERENT);
    drop(ours);
    truth.finish();
}

const REFUSALS: &[(&str, &str)] = &[("refusals", include_str!("nginx/refusals.conf"))];

/// Method, path, header, and the status of both servers.
const REQUESTS: &[(&str, &str, &str, u16)] = &[
    ("GET", "/", "", 200),
    ("POST", "/", "", 200),
    ("DELETE", "/", "", 405),
    ("GET", "/?debug=1", "", 404),
    ("GET", "/?debugger=1", "", 200),
    ("GET", "/style.css", "User-Agent: Evil/1", 403),
    ("GET", "/style.css", "User-Agent: good", 200),
    ("GET", "/old/style.css", "X-Old: yes", 200),
    ("GET", "/old/style.css", "X-Old: no", 200),
    ("GET", "/images/deleted/b.png", "", 410),
    ("GET", "/cache/a.txt", "", 200),
    ("POST", "/cache/a.txt", "", 403),
    ("GET", "/includes/c.txt", "", 401),
    ("GET", "/includes/c.txt", ANNA, 200),
    ("GET", "/images/a.png", "", 401),
    ("GET", "/images/a.png", ANNA, 200),
    ("GET", "/dir2/a.txt", "", 200),
    ("GET", "/sites/default/files/a.txt", "", 403),
    ("GET", "/wp-content/uploads/a.png", "", 403),
    ("GET", "/wp-content/uploads/x.php", "", 200),
    ("GET", "/wp-content/uploads/none.txt", "X-Stop: 1", 404),
    ("GET", "/api.php", "", 403),
    ("GET", "/other.php", "", 200),
    ("GET", "/style.css", "X-Key: Stolen", 403),
    ("GET", "/style.css", "X-Key: badge", 403),
    ("GET", "/style.css", "X-Key: tested", 200),
    ("GET", "/style.css", "X-Key: test", 403),
    ("GET", "/OLD-page", "", 301),
    ("GET", "/blog/one", "", 301),
    ("GET", "/blog/one/two", "", 200),
    ("GET", "/a.txt", "", 404),
    ("GET", "/a.txt", "X-Files: other", 200),
    ("GET", "/vendor/a.txt", "", 403),
];

#[test]
fn conditions_and_access_control_of_nginx_decide_alike() {
    let truth = Site::start(Backend::Reference, &Setup::default().workers(4));
    let applications = Applications::new(REFUSALS);
    fs::write(applications.root("refusals").join("users"), USERS).unwrap();
    let all = |listen: &str| applications.text(listen, &truth.fastcgi());
    let nginx = Nginx::start(1, |_, ports| all(&format!("127.0.0.1:{}", ports[0])));
    let ours = applications.serve("nginx.conf", &all(&format!("127.0.0.1:{}", applications.port.number)));
    compare_refusals("refusals.localhost", &ours, nginx.port(0), REQUESTS);
    // A condition without a counterpart, which hardly any request meets: the import refuses all clients.
    let statuses = [nginx.port(0), ours.port].map(|port| ask(port, "refusals.localhost", "/robots.txt").status);
    assert_eq!(statuses, [200, 403], "{}", ours.page);
    let line = 1 + REFUSALS[0].1.lines().position(|line| line.contains("$connection_requests")).unwrap();
    let comment = format!("# LINE {line}: if ($connection_requests = 1000)\n");
    assert!(ours.page.contains(&comment) && ours.page.contains("# ALL CLIENTS ARE REFUSED because"), "{}", ours.page);
    drop(ours);
    truth.finish();
}

/// With access control outside of the server. A level inherits each kind of which it has none.
const INHERITED: &[(&str, &str)] = &[("inherited", include_str!("nginx/inherited.conf"))];

#[test]
fn access_control_outside_of_servers_of_nginx_protects_them() {
    let applications = Applications::new(INHERITED);
    fs::write(applications.root("inherited").join("users"), USERS).unwrap();
    let all = |listen: &str| applications.text(listen, Path::new("/none"));
    let nginx = Nginx::start(1, |_, ports| all(&format!("127.0.0.1:{}", ports[0])));
    let ours = applications.serve("nginx.conf", &all(&format!("127.0.0.1:{}", applications.port.number)));
    let requests = [
        ("GET", "/style.css", "", 403),
        ("GET", "/style.css", ANNA, 403),
        ("GET", "/images/a.png", "", 401),
        ("GET", "/images/a.png", ANNA, 200),
        ("GET", "/robots.txt", "", 403),
        ("GET", "/includes/c.txt", ANNA, 403),
    ];
    compare_refusals("inherited.localhost", &ours, nginx.port(0), &requests);
}
