use super::*;
use crate::commands::import::loading;
use howdah_config::{ListenAddr, Settings};

/// Published configurations of applications; a scenario also runs them against real servers.
const CORPUS: &[(&str, &str)] = &[
    ("wordpress", include_str!("../../../../../../tests/tests/server/import/nginx/wordpress.conf")),
    ("drupal", include_str!("../../../../../../tests/tests/server/import/nginx/drupal.conf")),
    ("laravel", include_str!("../../../../../../tests/tests/server/import/nginx/laravel.conf")),
    ("symfony", include_str!("../../../../../../tests/tests/server/import/nginx/symfony.conf")),
    ("mediawiki", include_str!("../../../../../../tests/tests/server/import/nginx/mediawiki.conf")),
];

fn loaded(page: &str) -> Settings {
    loading::loaded(tempfile::tempdir().unwrap().path(), page)
}

#[test]
fn published_configurations_become_settings_that_can_be_read() {
    let root = tempfile::tempdir().unwrap();
    std::fs::create_dir(root.path().join("public")).unwrap();
    for (name, text) in CORPUS {
        let text = text.replace("__ROOT__", root.path().to_str().unwrap()).replace("__PORT__", "8080");
        let page = converted(&text).unwrap();
        let settings = loaded(&page);
        assert_eq!(settings.listen, [":8080".parse::<ListenAddr>().unwrap()], "{name}");
        let site = &settings.sites[0];
        assert!(site.root.ends_with("public") && site.hosts.len() == 1, "{name}\n{page}");
        // Every directive must be in the report.
        for directive in text.lines().map(str::trim).filter(|line| line.ends_with(';') && !line.contains(['{', '}'])) {
            let first = directive.split([' ', ';']).next().unwrap();
            assert!(
                first == "internal"
                    || (first == "rewrite" && *name == "drupal")
                    || page.contains(&format!(": {first}")),
                "{name}: {directive}\n{page}"
            );
        }
    }
}

#[test]
fn each_directive_has_its_counterpart() {
    let of = |inner: &str| {
        let page = converted(&format!("server {{ root /srv; {inner} }}")).unwrap();
        page.split("\n# The lines").next().unwrap().replace('\n', " ")
    };
    for (inner, expected) in [
        ("listen 443 ssl http2;", "listen = [\"https://:443\"]"),
        ("listen 80; listen [::]:80;", "listen = [\"[::]:80\"]"),
        (
            "listen 80 default_server; server_name a.example .b.example;",
            "hosts = [\"a.example\", \"b.example\", \"*.b.example\", \"default\"]",
        ),
        ("server_name ~^x a.example;", "hosts = \"a.example\""),
        ("server_name _;", "hosts = \"default\""),
        ("client_max_body_size 20m;", "[site.http] max_body = \"20M\""),
        ("ssl_certificate a.pem; ssl_certificate_key a.key;", "certificates = [{ cert = \"a.pem\", key = \"a.key\" }]"),
        ("location / { try_files $uri =404; }", "front_controller = \"\""),
        ("location / { try_files $uri @app; } location @app { rewrite ^ /app.php; }", "front_controller = \"app.php\""),
        ("location = /x { deny all; }", "path = \"/x\" deny = true"),
        ("location = /x { deny 10.0.0.1; access_log /var/log/x; }", "path = \"/x\" deny = [\"10.0.0.1\"]"),
        (
            "location /x { allow 10.0.0.0/8; allow ::1; deny all; }",
            "path = [\"/x\", \"/x/*\"] allow = [\"10.0.0.0/8\", \"::1\"]",
        ),
        ("location ~* \\.inc$ { return 404; }", "path = '~(?i)\\.inc$'\u{20}status = 404"),
        ("location ~ ^/a { return 404; } location ~ ^/b { deny all; }", "not = { path = \"~^/a\" } deny = true"),
        ("return 301 https://www.example.org$request_uri;", "redirect = \"https://www.example.org$path\" status = 301"),
        ("rewrite ^/old/(.*)$ /new/$1 permanent;", "path = \"~^/old/(.*)$\" redirect = \"/new/$1\" status = 301"),
        ("add_header X-A \"b c\" always;", "headers.\"X-A\" = \"b c\""),
        (
            "location /s/ { alias /usr/share/s/; autoindex on; expires 30d; }",
            "alias = \"/usr/share/s/\" listing = true cache_control = \"max-age=2592000\"",
        ),
        (
            "location ~ ^/index\\.php(/|$) { fastcgi_pass x; }",
            "exists = \"file\" not = { path = '~^/index\\.php(/|$)' } php = false",
        ),
        ("location /api/ { proxy_pass http://127.0.0.1:3000; }", "proxy = \"http://127.0.0.1:3000\""),
        ("location ~ \\.php$ { fastcgi_pass x; fastcgi_param APP_ENV prod; }", "env.\"APP_ENV\" = \"prod\""),
    ] {
        let page = of(inner);
        assert!(page.contains(expected), "{inner}\nexpected: {expected}\nfound: {page}");
    }
    let page = converted("server { root /srv; location /d { internal; alias /x; } if ($a) { return 403; } foo bar; }")
        .unwrap();
    for (part, why) in [("location /d", "x_accel_redirect"), ("if ($a)", "by hand"), ("foo bar", "no counterpart")] {
        assert!(page.lines().any(|line| line.contains(part) && line.contains(why)), "{page}");
    }
    assert!(!page.contains("alias =") && page.contains("status = 404"), "an internal location is not made public");
    // A host with one `server` per port becomes one site.
    let page = converted(
        "server { listen 80; server_name a.example; return 301 https://a.example$request_uri; }
         server { listen 443 ssl; server_name a.example; root /srv; }",
    )
    .unwrap();
    assert_eq!(page.matches("[[site]]").count(), 1, "{page}");
    assert!(
        page.contains("[[site.rule]]\nhttps = false\nredirect = \"https://a.example$path\"\nstatus = 301\n"),
        "{page}"
    );
    assert!(converted("events { }").is_err() && converted("server {").is_err());
}
