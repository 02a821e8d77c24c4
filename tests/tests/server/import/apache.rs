//! Apache's configurations: virtual hosts from applications' documentation, with PHP-FPM behind mod_proxy_fcgi.

use super::{ANNA, Applications, Differs, USERS, compare, compare_refusals};
use howdah_tests::fronts::Front;
use howdah_tests::{Backend, Setup, Site};
use std::fs;

const APPLICATIONS: &[(&str, &str)] = &[
    ("wordpress", include_str!("apache/wordpress.conf")),
    ("drupal", include_str!("apache/drupal.conf")),
    ("laravel", include_str!("apache/laravel.conf")),
    ("symfony", include_str!("apache/symfony.conf")),
    ("nextcloud", include_str!("apache/nextcloud.conf")),
    ("mediawiki", include_str!("apache/mediawiki.conf")),
    ("matomo", include_str!("apache/matomo.conf")),
    ("named", include_str!("apache/named.conf")),
];

/// `.htaccess` files that the applications contain.
const HTACCESS: &[(&str, &str)] =
    &[("wordpress", include_str!("apache/wordpress.htaccess")), ("matomo", include_str!("apache/matomo.htaccess"))];

/// Intended differences from Apache.
const DIFFERENT: &[Differs] = &[
    ("wordpress", HIDDEN, "hidden files are never sent"),
    ("drupal", HIDDEN, "hidden files are never sent"),
    ("laravel", HIDDEN, "hidden files are never sent"),
    ("symfony", HIDDEN, "hidden files are never sent"),
    ("mediawiki", HIDDEN, "hidden files are never sent"),
    ("matomo", HIDDEN, "hidden files are never sent"),
    ("named", HIDDEN, "hidden files are never sent"),
    (
        "symfony",
        &["/none.php", "/wp-content/uploads/none.php", "/vendor/none.php"],
        "the front controller runs for scripts that do not exist, too",
    ),
    ("symfony", &["/dir/"], "the index of a directory comes before the front controller"),
    ("mediawiki", &["/wiki", "/wiki/Main_Page", "/wiki/A/B"], "SCRIPT_NAME is the script's path"),
];

const HIDDEN: &[&str] = &["/.env", "/.git/config"];

#[test]
fn virtual_hosts_of_apache_serve_the_same_paths_alike() {
    let truth = Site::start(Backend::Reference, &Setup::default().workers(4));
    let applications = Applications::new(APPLICATIONS);
    for (name, text) in HTACCESS {
        fs::write(applications.root(name).join("public/.htaccess"), text).unwrap();
    }
    fs::create_dir(applications.root("nextcloud").join("empty")).unwrap();
    let all = |port: u16| applications.text(&port.to_string(), &truth.fastcgi());
    let apache = Front::apache_with(|port| {
        // As in Debian's dir.conf.
        format!(
            "DirectoryIndex index.html index.php\n{}",
            all(port).replace("${APACHE_LOG_DIR}/error.log", "/dev/null")
        )
    });
    let port = applications.port.number;
    let ours = applications.serve("site.conf", &all(port).replace(&format!("*:{port}"), &format!("127.0.0.1:{port}")));
    let further = [
        "/cloud",
        "/cloud/",
        "/cloud/style.css",
        "/cloud/other.php?a=b",
        "/old/x?y=z",
        "/.well-known/carddav",
        "/wiki",
    ];
    compare(&applications, &ours, apache.port(), &further, DIFFERENT);
    drop(ours);
    truth.finish();
}

const REFUSALS: &[(&str, &str)] = &[("refusals", include_str!("apache/refusals.conf"))];

/// Method, path, header, and the status of both servers.
const REQUESTS: &[(&str, &str, &str, u16)] = &[
    ("GET", "/", "", 200),
    ("GET", "/style.css", "", 200),
    ("DELETE", "/style.css", "", 403),
    ("GET", "/vendor/a.txt", "", 403),
    ("GET", "/cache/a.txt", "", 200),
    ("GET", "/includes/c.txt", "", 401),
    ("GET", "/includes/c.txt", ANNA, 200),
    ("GET", "/dir2/a.txt", "", 200),
    ("GET", "/images/a.png", "", 200),
    ("POST", "/images/a.png", "", 403),
    ("GET", "/wp-content/uploads/a.png", "", 403),
    ("GET", "/api.php", "", 403),
    ("POST", "/api.php", "", 200),
    ("GET", "/update.php", "", 401),
    ("GET", "/update.php", ANNA, 200),
    ("GET", "/style.css", "User-Agent: Evil/1", 403),
    ("GET", "/style.css", "User-Agent: not evil", 200),
    ("GET", "/style.css", "X-Stop: 1", 403),
    ("GET", "/style.css", "X-Stop: 12", 200),
    ("DELETE", "/images/a.png", "", 403),
    ("GET", "/robots.txt", "", 403),
    ("GET", "/robots.txt", "X-Need: this", 200),
    ("GET", "/favicon.ico", "X-Who: a", 200),
    ("GET", "/favicon.ico", "X-Who: b", 403),
    ("GET", "/favicon.ico", "X-Who: c", 403),
    ("GET", "/favicon.ico", "", 403),
];

#[test]
fn requirements_of_apache_decide_alike() {
    let truth = Site::start(Backend::Reference, &Setup::default().workers(4));
    let applications = Applications::new(REFUSALS);
    fs::write(applications.root("refusals").join("users"), USERS).unwrap();
    let all = |port: u16| applications.text(&port.to_string(), &truth.fastcgi());
    let apache = Front::apache_with(all);
    let port = applications.port.number;
    let ours = applications.serve("site.conf", &all(port).replace(&format!("*:{port}"), &format!("127.0.0.1:{port}")));
    compare_refusals("refusals.localhost", &ours, apache.port(), REQUESTS);
    drop(ours);
    truth.finish();
}
