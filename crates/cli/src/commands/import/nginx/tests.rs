use super::*;
use crate::commands::import::loading;
use howdah_config::{ListenAddr, Settings};

/// Published configurations of applications; a scenario also runs them against real servers.
const CORPUS: &[(&str, &str)] = &[
    ("wordpress", include_str!("../../../../../../tests/tests/server/import/nginx/wordpress.conf")),
    ("drupal", include_str!("../../../../../../tests/tests/server/import/nginx/drupal.conf")),
    ("laravel", include_str!("../../../../../../tests/tests/server/import/nginx/laravel.conf")),
    ("symfony", include_str!("../../../../../../tests/tests/server/import/nginx/symfony.conf")),
    ("nextcloud", include_str!("../../../../../../tests/tests/server/import/nginx/nextcloud.conf")),
    ("magento", include_str!("../../../../../../tests/tests/server/import/nginx/magento.conf")),
    ("matomo", include_str!("../../../../../../tests/tests/server/import/nginx/matomo.conf")),
    ("sylius", include_str!("../../../../../../tests/tests/server/import/nginx/sylius.conf")),
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
        let page = imported(&text).unwrap();
        let settings = loaded(&page);
        assert_eq!(settings.listen, [":8080".parse::<ListenAddr>().unwrap()], "{name}");
        let site = &settings.sites[0];
        assert!(site.root.ends_with("public") && site.hosts.len() == 1, "{name}\n{page}");
        // Every directive must be in the report.
        for directive in text.lines().map(str::trim).filter(|line| line.ends_with(';') && !line.contains(['{', '}'])) {
            let first = directive.split([' ', ';']).next().unwrap();
            assert!(
                first == "internal"
                    // In `map`, which is outside of the server.
                    || matches!(first, "\"\"" | "default")
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
        let page = imported(&format!("server {{ root /srv; {inner} }}")).unwrap();
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
        ("location /x { allow 10.0.0.0/8; allow ::1; deny all; }", "path = \"/x*\" allow = [\"10.0.0.0/8\", \"::1\"]"),
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
        ("set $d /var; location /x/ { root $d/x; }", "root = \"/var/x\""),
        (
            "if ($request_method !~ ^(GET|POST)$ ) { return 405; }",
            "not = { method = [\"GET\", \"POST\"] } status = 405",
        ),
        ("if ($http_user_agent ~* (a|b)) { return 403; }", "header.\"User-Agent\" = \"~(?i)(a|b)\" deny = true"),
        ("if ($http_referer = \"\") { return 403; }", "header.\"Referer\" = false deny = true"),
        ("if ($arg_x) { return 404; }", "query.\"x\" = true status = 404"),
        ("if ($args ~* \"union.*select\") { return 403; }", "query = \"~(?i)union.*select\" deny = true"),
        ("if ($query_string = \"\") { return 404; }", "query = false status = 404"),
        ("if ($http_x_key != Ab) { return 403; }", "not = { header.\"X-Key\" = \"~^Ab$\" } deny = true"),
        ("if ($scheme != https) { return 301 https://$host$request_uri; }", "https = false redirect"),
        ("if ($host !~ ^www) { return 404; }", "not = { host = \"~^www\" } status = 404"),
        (
            "location /x/ { if (!-e $request_filename) { rewrite ^ /x.php last; } }",
            "path = [\"/x\", \"/x/*\"] exists = \"no\" rewrite = \"/x.php\"",
        ),
        ("location /x/ { location ~ \\.(a|b)$ { deny all; } }", "path = '~^/x/.*(?:\\.(a|b)$)' deny = true"),
        ("allow 10.0.0.1; deny all; location = /x { allow all; }", "not = { path = \"/x\" } allow = [\"10.0.0.1\"]"),
        ("location /x { allow ::1; deny 10.0.0.0/8; }", "not = { client = [\"::1\"] } deny = [\"10.0.0.0/8\"]"),
        ("location /x { limit_except GET { deny all; } }", "not = { method = [\"GET\"] } deny = true"),
        ("location /x { auth_request /a; }", "path = \"/x*\" deny = true"),
        ("error_page 500 502 /50x.html;", "error_pages.\"500\" = \"/50x.html\" error_pages.\"502\" = \"/50x.html\""),
        ("location /x { location ~ \\.a$ { deny all; } }", "path = '~^/x.*(?:\\.a$)' deny = true"),
        ("location ^~ /x { alias /usr; }", "path = [\"/x\", \"/x/*\"] alias = \"/usr\""),
        (
            "location / { fastcgi_pass x; fastcgi_param SCRIPT_FILENAME /srv/a.php; } location ~ ^/y { }",
            "not = { path = \"~^/y\" } rewrite = \"/a.php\"",
        ),
        (
            "location ^~ /up/ { } location ~ \\.php$ { fastcgi_pass x; }",
            "path = [\"/up\", \"/up/*\"] exists = \"file\" php = false",
        ),
        ("", "path = '~\\.php(/|$)' exists = \"file\" php = false"),
        (
            "auth_basic a; auth_basic_user_file b; location ^~ /x { allow ::1; deny all; }",
            "path = \"/x*\" auth.realm = \"a\" auth.file = \"b\" allow = [\"::1\"]",
        ),
        ("types { text/x y z; }", "mime.\"y\" = \"text/x\" mime.\"z\" = \"text/x\""),
    ] {
        let page = of(inner);
        assert!(page.contains(expected), "{inner}\nexpected: {expected}\nfound: {page}");
    }
    let page = imported(
        "server { root /srv; location /d { internal; alias /x; } if ($a) { return 403; }
             if ($host ~ ^w(.*)) { return 301 http://$1/; } foo bar; }",
    )
    .unwrap();
    for (part, why) in [
        ("location /d", "x_accel_redirect"),
        ("if ($a)", "by hand"),
        ("if ($host", "by hand"),
        ("foo bar", "no counterpart"),
    ] {
        assert!(page.lines().any(|line| line.contains(part) && line.contains(why)), "{page}");
    }
    assert!(!page.contains("alias =") && page.contains("status = 404"), "an internal location is not made public");
    // Included files, at the line of the `include`.
    let dir = tempfile::tempdir().unwrap();
    for (name, text) in [("a.conf", "server { root /srv/a; }"), ("b.conf", "server { root /srv/b; }"), ("c.txt", "}")] {
        std::fs::write(dir.path().join(name), text).unwrap();
    }
    let page = converted("http {\n include *.conf; }", Some(dir.path())).unwrap();
    assert!(page.contains("root = \"/srv/a\"") && page.contains("# 2: root /srv/b: taken"), "{page}");
    assert!(converted("include c.txt;", Some(dir.path())).is_err_and(|why| why.contains("c.txt: line 1")));
    // A host with one `server` per port becomes one site.
    let page = imported(
        "server { listen 80; server_name a.example; return 301 https://a.example$request_uri; }
         server { listen 443 ssl; server_name a.example; root /srv; }",
    )
    .unwrap();
    assert_eq!(page.matches("[[site]]").count(), 1, "{page}");
    assert!(
        page.contains("[[site.rule]]\nhttps = false\nredirect = \"https://a.example$path\"\nstatus = 301\n"),
        "{page}"
    );
    assert!(imported("events { }").is_err() && imported("server {").is_err());
}

#[test]
fn directives_that_name_a_map_become_a_rule_for_each_of_its_entries() {
    let of = |map: &str, inner: &str| {
        let page = imported(&format!("http {{ map {map} server {{ root /srv; {inner} }} }}")).unwrap();
        let (rules, report) = page.split_once("\n# The lines").unwrap();
        (rules.replace('\n', " "), report.to_owned(), page.clone())
    };
    for (map, inner, expected) in [
        (
            "$http_user_agent $robots { default all; ~*(bad|evil) none; ~*^good \"\"; }",
            "add_header X-Robots-Tag $robots;",
            &[
                "header.\"User-Agent\" = \"~(?i)(bad|evil)\" headers.\"X-Robots-Tag\" = \"none\"",
                "not = { header.\"User-Agent\" = \"~(?i:(bad|evil))|(?i:^good)\" } headers.\"X-Robots-Tag\" = \"all\"",
            ][..],
        ),
        (
            "$uri $new { /old /new; ~^/blog/(?<slug>.*)$ /posts/$slug; ~^/b/(.*)$ /c/$1; }",
            "if ($new) { return 301 $new; }",
            &[
                "path = \"~(?i)^/old$\" redirect = \"/new\" status = 301",
                "path = \"~^/blog/(?<slug>.*)$\" not = { path = \"~(?i)^/old$\" } redirect = \"/posts/${slug}\" status = 301",
                "\"~^/blog/(?<slug>.*)$\"] } redirect = \"/c/$1\" status = 301",
            ],
        ),
        (
            "$http_x_key $refused { default 1; secret 0; }",
            "if ($refused = 1) { return 403; }",
            &["not = { header.\"X-Key\" = \"~(?i)^secret$\" } deny = true"],
        ),
        (
            "$arg_v $immutable { \"\" \"\"; default \", immutable\"; }",
            "location /a/ { add_header Cache-Control \"public$immutable\"; }",
            &[
                "path = [\"/a\", \"/a/*\"] query.\"v\" = false headers.\"Cache-Control\" = \"public\"",
                "path = [\"/a\", \"/a/*\"] query.\"v\" = true headers.\"Cache-Control\" = \"public, immutable\"",
            ],
        ),
        (
            "$host $shop { hostnames; default main; .de.example germany; *.example world; }",
            "location ~ \\.php$ { fastcgi_pass x; fastcgi_param SHOP $shop; }",
            &[
                "host = ['~(?i)^(?:.+\\.)?de\\.example$'] env.\"SHOP\" = \"germany\"",
                "host = [\"*.example\"] not = { host = ['~(?i)^(?:.+\\.)?de\\.example$'] } env.\"SHOP\" = \"world\"",
            ],
        ),
        (
            "$host $dir { default /srv/main; a.example /srv/a; }",
            "location / { root ${dir}/web; }",
            &[
                "host = [\"a.example\"] root = \"/srv/a/web\"",
                "not = { host = [\"a.example\"] } root = \"/srv/main/web\"",
            ],
        ),
        (
            "$request_method $size { POST 8m; default 1k; }",
            "client_max_body_size $size;",
            &["method = [\"POST\"] max_body = \"8M\""],
        ),
        (
            "$scheme $hsts { https max-age=1; }",
            "add_header Strict-Transport-Security $hsts;",
            &["https = true headers."],
        ),
        // A map opens nothing that asks for a password in other cases.
        (
            "$remote_addr $realm { 10.0.0.1 off; default Staff; }",
            "auth_basic $realm; auth_basic_user_file /srv/users;",
            &["auth.realm = \"Staff\" auth.file = \"/srv/users\""],
        ),
    ] {
        let (rules, report, page) = of(map, inner);
        for part in expected {
            assert!(rules.contains(part), "{map} {inner}\nexpected: {part}\nfound: {rules}");
        }
        let line = report.lines().find(|line| line.contains(": map ")).unwrap();
        assert!(line.ends_with("taken: rules where its variable is named"), "{report}");
        if !rules.contains("auth.file") {
            let page =
                ["/srv/main/web", "/srv/a/web", "/srv"].iter().fold(page, |page, path| page.replace(path, "/usr"));
            drop(loaded(&page));
        }
    }
    for (map, inner, line) in [
        (
            "$status $log { ~^2 0; default 1; }",
            "add_header X-A $log;",
            "add_header X-A $log: dropped: its map has no counterpart: rules have no condition for $status",
        ),
        (
            "$http_cookie $id { ~id=(.*) $1; }",
            "add_header X-A $id;",
            "map $http_cookie $id: dropped: its values name groups",
        ),
        ("$http_a $b { ~.* x; }", "add_header X-A $b;", "also matches a missing variable"),
        (
            "$http_a $b { x 1; }",
            "if ($b ~ 1) { return 403; }",
            "return 403: changed: all clients are refused: the value of a map can only be compared",
        ),
        ("$request_uri $b { /a?b=c 1; }", "if ($b) { return 404; }", "paths of rules have no query"),
        ("$request_uri $b { ~*sql 1; }", "if ($b) { return 403; }", "may match in the query"),
        (
            "$uri $b { /a/b x; }",
            "location /a/ { add_header X-A $b; }",
            "add_header X-A x: dropped: write its conditions",
        ),
        (
            "$uri $b { /a x; }",
            "if ($host = c) { add_header X-A $b; }",
            "dropped: a condition around the variable of a map",
        ),
        (
            "$http_upgrade $connection { default upgrade; \"\" close; }",
            "",
            "dropped: nothing that has a counterpart names its variable",
        ),
    ] {
        let (rules, report, _) = of(map, inner);
        // Without the condition, all are refused.
        let is_closed = rules.contains("ALL CLIENTS ARE REFUSED") && rules.contains("[[site.rule]] deny = true");
        assert_eq!(is_closed, inner.contains("return 40"), "{rules}");
        let is_left_out = ["headers.", "status"].iter().all(|key| !rules.contains(key));
        assert!(report.contains(line) && is_left_out, "{map} {inner}\n{rules}\n{report}");
    }
}

fn imported(text: &str) -> Result<String, String> {
    converted(text, None)
}

#[test]
fn conditions_without_a_counterpart_refuse_all_where_they_refuse_some() {
    for (inner, rule) in [
        ("if ($ssl_client_verify != SUCCESS) { return 403; }", "[[site.rule]] deny = true"),
        ("if ($invalid_referer) { set $a 1; return 444; }", "[[site.rule]] deny = true"),
        (
            "location /x/ { if ($a = b) { return 410; } } location /x/y/ { root /srv/b; }",
            "[[site.rule]] path = [\"/x\", \"/x/*\"] not = { path = [\"/x/y\", \"/x/y/*\"] } deny = true",
        ),
        ("location /x { if ($uri = /x/a) { return 404; } }", "[[site.rule]] path = \"/x*\" deny = true"),
        // Set twice, so it is no constant.
        (
            "set $bad 0; if ($query_string ~ sql) { set $bad 1; } if ($bad = 1) { return 403; }",
            "[[site.rule]] deny = true",
        ),
    ] {
        let page = imported(&format!("server {{\nroot /srv;\n{inner}\n}}")).unwrap();
        let (rules, report) = page.split_once("\n# The lines").unwrap();
        let rules = rules.replace('\n', " ");
        let warning = "# ALL CLIENTS ARE REFUSED because of conditions in lines 3: see \"LINE\" below. ";
        let comment = "# LINE 3: if (";
        assert!(rules.contains(warning) && rules.contains(comment) && rules.contains(rule), "{inner}\n{rules}");
        assert!(
            report.lines().any(|line| line.contains("return 4") && line.contains("all clients are refused")),
            "{page}"
        );
        drop(loaded(&page.replace("/srv/b", "/usr").replace("/srv", "/usr")));
    }
    // Blocks that refuse no client refuse none now. With a known condition, a variable does not matter.
    for (inner, expected) in [
        ("if ($a) { return 301 /b; }", ""),
        ("if (-f $document_root/maintenance) { return 503; }", ""),
        ("if ($http_x_stop) { set $a 1; return 403; }", "header.\"X-Stop\" = true deny = true"),
        ("if ($http_x_stop) { set $a 1; }", ""),
    ] {
        let page = imported(&format!("server {{ root /srv; {inner} }}")).unwrap();
        let rules = page.split("\n# The lines").next().unwrap().replace('\n', " ");
        assert!(!rules.contains("REFUSED") && rules.contains(expected), "{inner}\n{rules}");
        assert_eq!(rules.contains("deny = true"), !expected.is_empty(), "{inner}\n{rules}");
    }
}

#[test]
fn files_that_cannot_be_read_are_named_and_not_called_built_in() {
    let dir = tempfile::tempdir().unwrap();
    let text = "http {\ninclude none.conf;\ninclude conf.d/*.conf;\nserver {\nroot /srv;\ninclude bots.conf;\n\
                location ~ \\.php$ {\ninclude php.conf;\ninclude fastcgi_params;\nfastcgi_pass x;\n}\n}\n}\n";
    let page = converted(text, Some(dir.path())).unwrap();
    assert!(page.contains("# NOT READ: files that are included in lines 2, 6, 8.\n"), "{page}");
    for line in [
        "# 6: include bots.conf: dropped: NO FILE OF THIS NAME CAN BE READ HERE",
        "# 3: include conf.d/*.conf: dropped: ",
        "# 9: include fastcgi_params: dropped: it is built in",
    ] {
        assert!(page.contains(line) && !page.contains("lines 3"), "{line}\n{page}");
    }
}

#[test]
fn control_characters_and_long_words_leave_a_file_that_can_be_read() {
    let long = "a".repeat(1 << 20);
    let page = imported(&format!("server {{ root /usr; x '\u{1}\u{7f}\r\n\u{2028}'; y {long}; }}"));
    let page = page.unwrap();
    assert!(page.len() < 10_000 && page.contains("aaa…: dropped"), "{}", page.len());
    drop(loaded(&page));
}

#[test]
fn directives_outside_of_servers_are_reported_with_their_setting() {
    let page =
        imported("worker_processes 4;\nhttp { send_timeout 9s; lua_x 1; server { root /srv; limit_req zone=a; } }\n");
    let page = page.unwrap();
    for report in [
        "worker_processes 4: dropped: threads and http.max_connections",
        "send_timeout 9s: dropped: set http.client_timeout",
        "lua_x 1: dropped: it is outside of server { }",
        "limit_req zone=a: dropped: write a rule with `limit`",
    ] {
        assert!(page.contains(report), "{report}\n{page}");
    }
}

#[test]
fn refusals_by_the_request_uri_hold_for_its_query() {
    for (condition, expected) in [
        ("~* \"(sql|exec)\"", &["path = \"~(?i)(sql|exec)\" deny", "query = \"~(?i)(sql|exec)\" deny"][..]),
        ("~ ^/a$", &["path = \"~^/a$\" deny"]),
        ("~ ^/a/(.*)$", &["path = \"~^/a/(.*)$\" deny"]),
        ("~ ^/a(.+)$", &["path = \"~^/a(.+)$\" deny", "path = \"~^/a$\" query = true deny"]),
        ("~ \"^/a\\?b=(c|d)$\"", &["path = \"~^/a$\" query = \"~^b=(c|d)$\" deny"]),
        ("~ ^/a.*b", &["path = \"~^/a.*b\" deny", "path = \"~^/a\" query = \"~b\" deny"]),
        ("~ ^/a.b", &["path = \"~^/a.b\" deny", "path = \"~^/a$\" query = \"~^b\" deny"]),
        ("~ \"^/a[^x]b|^/c$\"", &["path = \"~^/a[^x]b|^/c$\" deny", "path = \"~^/a$\" query = \"~^b\" deny"]),
        ("~ ^/a(b.*c)?d", &["path = \"~^/a(b.*c)?d\" deny", "path = \"~^/a\" query = \"~d\" deny"]),
        ("!= /a", &["not = { path = \"/a\" } deny", "path = \"/a\" query = true deny"]),
        ("!~ ^/a$", &["not = { path = \"~^/a$\" } deny", "path = \"~^/a$\" query = true deny"]),
        ("!~ ^/a/", &["not = { path = \"~^/a/\" } deny"]),
    ] {
        let page =
            imported(&format!("server {{ root /usr; if ($request_uri {condition}) {{ return 403; }} }}")).unwrap();
        drop(loaded(&page));
        let rules = page.split("\n# The lines").next().unwrap().replace('\n', " ").replace('\'', "\"");
        let found: Vec<&str> =
            rules.split("[[site.rule]]").skip(1).filter(|rule| rule.contains("deny = true")).collect();
        assert_eq!(found.len(), expected.len(), "{condition}: {rules}");
        for (found, expected) in found.iter().zip(expected) {
            assert_eq!(found.trim().trim_end_matches(" = true"), *expected, "{condition}: {rules}");
        }
    }
}
