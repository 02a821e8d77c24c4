//! nginx's configurations, as published for applications.

use super::{Applications, Differs, compare};
use howdah_tests::nginx::Nginx;
use howdah_tests::{Backend, Setup, Site};

const APPLICATIONS: &[(&str, &str)] = &[
    ("wordpress", include_str!("nginx/wordpress.conf")),
    ("drupal", include_str!("nginx/drupal.conf")),
    ("laravel", include_str!("nginx/laravel.conf")),
    ("symfony", include_str!("nginx/symfony.conf")),
    ("mediawiki", include_str!("nginx/mediawiki.conf")),
];

/// Cases in which Howdah is stricter than the configuration.
const STRICTER: &[Differs] = &[
    (
        "laravel",
        &[
            "/other.php",
            "/update.php",
            "/api.php",
            "/sites/default/files/x.php",
            "/wp-content/uploads/x.php",
            "/vendor/a.php",
            "/dir/index.php",
            "/dir/",
        ],
        "nginx sends the source of scripts that it does not run",
    ),
    ("laravel", &["/index.php/page"], "PATH_INFO is not split from SCRIPT_NAME there"),
    ("symfony", &["/.env", "/.git/config"], "hidden files are sent"),
];

#[test]
fn published_configurations_of_nginx_serve_the_same_paths_alike() {
    let truth = Site::start(Backend::Reference, &Setup::default().workers(4));
    let applications = Applications::new(APPLICATIONS);
    let all = |listen: &str| applications.text(listen, &truth.fastcgi());
    let nginx = Nginx::start(1, |_, ports| all(&format!("127.0.0.1:{}", ports[0])));
    let ours = applications.serve("nginx.conf", &all(&format!("127.0.0.1:{}", applications.port.number)));
    compare(&applications, &ours, nginx.port(0), &[], STRICTER);
    drop(ours);
    truth.finish();
}
