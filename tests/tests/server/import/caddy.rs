//! Caddy's configurations, including FrankenPHP's directives, which Debian's Caddy does not have: their responses are
//! recorded.

use super::{Applications, Differs, ask, compare};
use howdah_skip::skip;
use howdah_tests::fronts::{CADDY, Front, unpacked};
use howdah_tests::{Backend, Setup, Site, php};
use std::fs;
use std::path::Path;

const APPLICATIONS: &[(&str, &str)] = &[
    ("laravel", include_str!("caddy/laravel.caddyfile")),
    ("mixed", include_str!("caddy/mixed.caddyfile")),
    ("handles", include_str!("caddy/handles.caddyfile")),
    ("files", include_str!("caddy/files.caddyfile")),
    ("named", include_str!("caddy/named.caddyfile")),
    ("worker", include_str!("caddy/worker.caddyfile")),
];

/// A host, a path, the status, and the beginning of the text or the target of a redirect.
const ANSWERS: &[(&str, &str, u16, &str)] = &[
    ("laravel", "/", 200, "/index.php /"),
    ("laravel", "/page?a=1", 200, "/index.php /page?a=1 a=1"),
    ("laravel", "/style.css", 200, "file style.css"),
    ("laravel", "/other.php", 200, "/other.php /other.php"),
    ("mixed", "/old", 301, "/new"),
    ("mixed", "/blog/2026/a", 301, "/posts/a?year=2026"),
    ("mixed", "/health", 200, "ok"),
    ("mixed", "/vendor/a.txt", 403, "403"),
    ("mixed", "/assets/a.png", 200, "file images/a.png"),
    ("mixed", "/assets/none.png", 404, ""),
    ("mixed", "/api/style.css?x=y", 200, "file style.css"),
    ("mixed", "/style.css", 200, "file style.css"),
    ("mixed", "/other.php", 403, ""),
    ("mixed", "/none", 404, ""),
    ("handles", "/style.css", 404, ""),
    ("handles", "/images/a.png", 200, "file images/a.png"),
    ("handles", "/images/deleted/b.png", 410, ""),
    ("handles", "/vendor/a.txt", 403, ""),
    ("handles", "/dir2/a.txt", 200, "file dir2/a.txt"),
    ("worker", "/any/page", 200, "in a worker /any/page"),
    ("worker", "/style.css", 200, "file style.css"),
];

#[test]
fn sites_of_a_caddyfile_answer_as_under_caddy() {
    let applications = Applications::new(APPLICATIONS);
    let worker = applications.root("worker").join("public/worker.php");
    fs::write(worker, format!("<?php\n{}", php!("worker.php"))).unwrap();
    let port = applications.port.number;
    let text = applications.text(&port.to_string(), Path::new("/none"));
    let ours = applications.serve("Caddyfile", &text);
    for (name, path, status, expected) in ANSWERS {
        let answer = ask(port, &format!("{name}.localhost"), path);
        let found = answer.header("location").map_or_else(|| answer.text(), str::to_owned);
        assert!(
            answer.status == *status && found.starts_with(expected),
            "{name} {path}: {} {found}\n{}",
            answer.status,
            ours.page
        );
    }
}

/// Intended differences from Caddy.
const DIFFERENT: &[Differs] = &[
    ("laravel", HIDDEN, "hidden files are never sent"),
    ("mixed", HIDDEN, "hidden files are never sent"),
    ("files", HIDDEN, "hidden files are never sent"),
    ("named", HIDDEN, "hidden files are never sent"),
    ("named", &["/", "/?a=1"], "the front controller is the index of the root"),
    ("named", &["/dir/"], "403, not 404, for an index that may not run"),
    (
        "mixed",
        &["/", "/?a=1", "/index.php/page", "/dir/"],
        "403, not 404, for a directory without an index and for a script that may not run",
    ),
];

const HIDDEN: &[&str] = &["/.env", "/.git/config"];

#[test]
fn sites_of_a_caddyfile_serve_the_same_paths_as_caddy() {
    if unpacked(CADDY).is_none() {
        skip!("caddy", "scripts/unpack-package.sh unpacks Debian's package");
    }
    let truth = Site::start(Backend::Reference, &Setup::default().workers(4));
    // Without the last one, which has FrankenPHP's directives.
    let applications = Applications::new(&APPLICATIONS[..5]);
    let all = |port: u16| applications.text(&port.to_string(), &truth.fastcgi());
    // As Debian's Caddy 2.6 spells it.
    let caddy = Front::caddy_with(|port| all(port).replace("{args[0]}", "{args.0}"));
    let ours = applications.serve("Caddyfile", &all(applications.port.number));
    let further =
        ["/old", "/blog/2026/a", "/health", "/vendor/none", "/assets/a.png", "/api/style.css?x=y", "/api/none"];
    compare(&applications, &ours, caddy.port(), &further, DIFFERENT);
    drop(ours);
    truth.finish();
}
