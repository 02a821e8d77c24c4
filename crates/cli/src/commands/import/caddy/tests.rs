use super::*;
use crate::commands::import::loading::convertible;

/// Converts a site with these directives, and checks that the result can be loaded.
fn of(text: &str) -> String {
    convertible(text, |text| imported(text).unwrap())
}

#[test]
fn each_directive_has_its_counterpart() {
    let mut wrong = String::new();
    for (inner, expected) in [
        ("php_server", "front_controller = \"index.php\""),
        (
            "php_fastcgi unix//run/php/php-fpm.sock {\n env A b\n index app.php\n}",
            "front_controller = \"app.php\" root = \"/srv\" [site.pool] env.\"A\" = \"b\"",
        ),
        ("file_server", "[[site.rule]] php = false"),
        ("php_server\nfile_server browse", "listing = true"),
        ("redir /old /new permanent", "path = \"/old\" redirect = \"/new\" status = 301"),
        ("redir https://www.b.example{uri}", "[[site.rule]] redirect = \"https://www.b.example$path\" status = 302"),
        (
            "header /build/* Cache-Control \"max-age=1\"",
            "path = \"/build/*\" headers.\"Cache-Control\" = \"max-age=1\"",
        ),
        ("header {\n-Server\n+A b\n?C d\n}", "headers.\"Server\" = \"\" headers.\"+A\" = \"b\" headers.\"?C\" = \"d\""),
        (
            "@in {\npath /admin*\nnot remote_ip 10.0.0.0/8\n}\nrespond @in 403",
            "path = \"/admin*\" not = { client = [\"10.0.0.0/8\"] } deny = true",
        ),
        ("respond /health \"ok\" 200", "path = \"/health\" status = 200 body = \"ok\""),
        ("rewrite /a /b", "path = \"/a\" rewrite = \"/b\""),
        ("uri strip_prefix /v1", "path = \"~^/v1(?:/(.*))?$\" rewrite = \"/$1\""),
        (
            "@old path_regexp r ^/x/(.*)$\nredir @old /y/{re.r.1} 301",
            "path = \"~^/x/(.*)$\" redirect = \"/y/$1\" status = 301",
        ),
        ("try_files {path} {path}/ /index.php?{query}", "front_controller = \"index.php\""),
        ("try_files {path} /index.html", "try_files = [\"$path\", \"/index.html\"]"),
        ("reverse_proxy /chat/* 127.0.0.1:3000", "path = \"/chat/*\" proxy = \"http://127.0.0.1:3000\""),
        (
            "reverse_proxy :3000 :3001 {\nhealth_uri /up\n}",
            "to = [\"http://127.0.0.1:3000\", \"http://127.0.0.1:3001\"] health = \"/up\"",
        ),
        (
            "handle_path /api/* {\nreverse_proxy localhost:9\n}",
            "path = \"~^/api/(.*)$\" rewrite = \"/$1\" proxy = \"http://localhost:9\"",
        ),
        ("handle_path /s/* {\nroot * /srv\nfile_server\n}", "path = \"/s/*\" php = false alias = \"/srv\""),
        ("handle /s/* {\nfile_server\n}\nhandle {\nphp_fastcgi x\n}", "front_controller = \"\" php = false"),
        ("php_fastcgi /a.php* x\nfile_server", "exists = \"file\" not = { path = \"/a.php*\" } php = false"),
        ("handle {\nrespond 404\n}\nhandle_path /s/* {\nfile_server\n}", "path = \"/s/*\" php = false"),
        ("handle /api/* {\nreverse_proxy :9\n}\nhandle {\nphp_server\n}", "front_controller = \"index.php\""),
        ("request_body {\nmax_size 10MB\n}", "[site.http] max_body = \"10M\""),
        ("log {\noutput file /srv/a.log\nformat json\n}", "[site.log] access = \"/srv/a.log\" format = \"json\""),
        ("log_skip /x", "path = \"/x\" access_log = false"),
        (
            "basic_auth /p/* {\nanna $2y$05$xZEHREeI1mL1Th6Ky4Ku3.sw.6qzbgb/eK/QUvyOkgzX72r1jvWNW\n}",
            "path = \"/p/*\" auth.users.\"anna\" = \"$2y$05$",
        ),
        ("forward_auth /p/* :9 {\nuri /a\n}", "path = \"/p/*\" deny = true"),
        (
            "handle_errors {\nrewrite * /{err.status_code}.html\nfile_server\n}",
            "error_pages.\"404\" = \"/404.html\" error_pages.\"405\" = \"/405.html\"",
        ),
        ("handle_errors 404 410 {\nrewrite * /gone.html\n}", "error_pages.\"404\" = \"/gone.html\""),
        (
            "handle_errors {\n@no expression `{err.status_code} in [404, 410]`\nrewrite @no /a.php\n}",
            "error_pages.\"404\" = \"/a.php\" error_pages.\"410\" = \"/a.php\"",
        ),
        (
            "handle_errors {\n@its expression {http.error.status_code} >= 500\nhandle @its {\nrewrite /b.html\n}\n}",
            "error_pages.\"5xx\" = \"/b.html\"",
        ),
        ("abort /wp-*", "path = \"/wp-*\" deny = true"),
        ("php_server {\nworker worker.php 4\n}", "mode = \"worker\" script = \"/srv/worker.php\" workers = 4"),
    ] {
        let page = of(&format!("http://a.example {{\nroot * /srv\n{inner}\n}}\n"));
        let shown = page.split("\n# The lines").next().unwrap().split_whitespace().collect::<Vec<_>>().join(" ");
        if !shown.contains(expected) {
            wrong += &format!("{inner}\nexpected: {expected}\nfound: {page}\n");
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn files_and_snippets_are_imported() {
    let dir = tempfile::tempdir().unwrap();
    let site = "{args[0]}.example {\nroot * /srv\nimport common /a {\nrespond /b 404\n}\n}\n";
    let common = "(common) {\nheader {args[:]} X y\n{block}\n}\n";
    std::fs::create_dir(dir.path().join("sites")).unwrap();
    for (name, text) in [("sites/a.caddy", site), ("common", common), ("sites/.b.caddy", "}"), ("loop", "import loop")]
    {
        std::fs::write(dir.path().join(name), text).unwrap();
    }
    let page = converted("import common\nimport sites/*.caddy a\nimport none/*\n", Some(dir.path())).unwrap();
    for expected in ["hosts = \"a.example\"", "path = \"/a\"\nheaders.\"X\" = \"y\"", "path = \"/b\"\nstatus = 404"] {
        assert!(page.contains(expected), "{expected}\n{page}");
    }
    for (text, why) in [("import loop\n", "one another"), ("import none\n", "outside of a site")] {
        assert!(converted(text, Some(dir.path())).is_err_and(|found| found.contains(why)), "{text}");
    }
}

#[test]
fn matchers_without_a_counterpart_refuse_all_where_they_refuse_some() {
    for (inner, rule) in [
        ("@no expression {http.request.uri.query}.contains('x')\nrespond @no 403", "deny = true"),
        ("@no vars a b\nabort @no", "deny = true"),
        ("@no vars a b\nhandle @no {\nbasic_auth {\nanna x\n}\nrespond hello\n}", "deny = true"),
        ("@no vars a b\nhandle /x/* {\nerror @no 404\n}", "path = \"/x/*\" deny = true"),
        ("@no vars a b\nredir @no /x", ""),
        ("@no vars a b\nrespond @no hello 200", ""),
    ] {
        let page = imported(&format!("http://a.example {{\nroot * /srv\n{inner}\n}}\n")).unwrap();
        let shown = page.split("\n# The lines").next().unwrap().split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(
            shown.contains("ALL CLIENTS ARE REFUSED because of conditions in lines"),
            !rule.is_empty(),
            "{page}"
        );
        assert!(shown.contains(rule) && shown.contains("deny = true") != rule.is_empty(), "{page}");
    }
}

#[test]
fn addresses_tls_and_global_options_are_the_servers() {
    let page = of(
        "{\n email ops@example.org\n frankenphp {\n  num_threads 16\n  worker {\n   file /srv/worker.php\n   num 8\n  }\n }\n}\n\
                   b.localhost {\n root * /srv\n php_server\n}\n",
    );
    for expected in [
        "listen = [\":80\", \"https://:443\"]",
        "workers = 16\n",
        "[acme]\nemail = \"ops@example.org\"\n",
        "[tls]\nredirect = true\n",
        "[site.tls]\nauto = true\n",
        "[site.pool]\nmode = \"worker\"\nscript = \"/srv/worker.php\"\nworkers = 8\n",
        "# 5: worker: taken: pool",
    ] {
        assert!(page.contains(expected), "{expected}\n{page}");
    }
    let page = of(":8080\nroot /srv\nbogus x\n");
    assert!(
        page.contains("listen = [\":8080\"]") && page.contains("# 3: bogus x: dropped: there is no counterpart"),
        "{page}"
    );
    assert!(imported("{\n debug\n}\n").is_err());
}

fn imported(text: &str) -> Result<String, String> {
    converted(text, None)
}
