//! `.htaccess` files in a running server. `htaccess_apache` compares the meaning of directives with Apache itself;
//! these tests check that the server acts on the result: scripts, files, refusals, passwords, PHP settings, headers.

use howdah_tests::{Mode, Request, Setup, Site, run};

/// A typical front controller's file, with some of everything.
const FILE: &str = r#"
RewriteEngine On
RewriteRule .* - [E=HTTP_AUTHORIZATION:%{HTTP:Authorization}]
RewriteBase /
RewriteRule ^index\.php$ - [L]
RewriteRule ^old/(.*)$ /new/$1 [R=301,L]
RewriteRule ^secret - [F]
RewriteCond %{REQUEST_FILENAME} !-f
RewriteCond %{REQUEST_FILENAME} !-d
RewriteRule ^app/(.*)$ index.php?path=$1 [QSA,L]
<FilesMatch "\.(sql|bak)$">
    Require all denied
</FilesMatch>
Header set X-Seen "by %{E_NAME}e"
Header always set X-Always yes
SetEnv E_NAME rules
RequestHeader set X-Added something
php_value memory_limit 99M
php_flag display_errors on
ErrorDocument 404 /missing.php
ErrorDocument 403 "no entry"
AddType text/x-special .spec
ExpiresActive On
ExpiresByType text/x-special A100
Redirect 301 /moved /index.php
<FilesMatch "\.css$">
    Header set Cache-Control "max-age=15778463"
    Header always set X-Style yes
</FilesMatch>
ErrorDocument 410 /gone.txt
RewriteRule ^gone$ - [G]
"#;

const INDEX: &str = r#"
echo json_encode([
    'script' => $_SERVER['SCRIPT_NAME'], 'query' => $_SERVER['QUERY_STRING'], 'get' => $_GET,
    'uri' => $_SERVER['REQUEST_URI'], 'name' => $_SERVER['E_NAME'] ?? $_SERVER['REDIRECT_E_NAME'] ?? null,
    'added' => $_SERVER['HTTP_X_ADDED'] ?? null, 'memory' => ini_get('memory_limit'),
    'display' => ini_get('display_errors'), 'user' => $_SERVER['REMOTE_USER'] ?? null,
    'body' => file_get_contents('php://input'),
]);
"#;

fn site(setup: Setup) -> Setup {
    setup
        .setting("htaccess", "true")
        .file(".htaccess", FILE)
        .php("index.php", INDEX)
        .php("missing.php", "echo 'no such page: ', $_SERVER['REQUEST_URI'], ' ', $_SERVER['REDIRECT_STATUS'];")
        .file("a.spec", "special")
        .file("a.css", "a{}")
        .file("gone.txt", "gone for good")
        .file("dump.sql", "create")
        .file("plain/x.txt", "x")
        .file("uploads/.htaccess", "php_flag engine off\n")
        .file("uploads/evil.php", "<?php echo 'ran';")
        .file("broken/.htaccess", "RewriteEngine On\nNoSuchDirective here\n")
        .file("broken/x.txt", "x")
        .file(
            "members/.htaccess",
            "AuthType Basic\nAuthName \"Members only\"\nAuthUserFile /nowhere/users\nRequire valid-user\n",
        )
        .php("members/index.php", INDEX)
        .allow_log("NoSuchDirective")
        .allow_log("a .htaccess file cannot be applied")
        .allow_log("AuthUserFile")
}

#[test]
fn the_server_applies_the_files() {
    run(Mode::Classic, site, |site| {
        let response = site.get("/app/a/b?x=1").expect(200);
        assert_eq!(response.header("x-seen"), Some("by rules"));
        let seen = response.json();
        assert_eq!(seen["script"], "/index.php");
        assert_eq!(seen["query"], "path=a/b&x=1");
        assert_eq!(seen["get"]["path"], "a/b");
        assert_eq!(seen["uri"], "/app/a/b?x=1");
        assert_eq!(seen["added"], "something");
        assert_eq!((&seen["memory"], &seen["display"]), (&"99M".into(), &"1".into()));
        let posted = site.send(&Request::form("/app/x", "a=b")).expect(200).json();
        assert_eq!(posted["body"], "a=b");

        let moved = site.get("/old/x%20y?q").expect(301);
        let expected = format!("http://localhost:{}/new/x%20y?q", site.port());
        assert_eq!(moved.header("location"), Some(expected.as_str()));
        let refused = site.get("/secret").expect(403);
        assert_eq!(refused.text(), "no entry");
        assert_eq!((refused.header("x-always"), refused.header("x-seen")), (Some("yes"), None));
        let _ = site.get("/dump.sql").expect(403);
        let missing = site.get("/nothing/here").expect(404);
        assert_eq!(missing.text(), "no such page: /nothing/here 404");
        let style = site.get("/a.css").expect(200);
        assert_eq!(style.header("cache-control"), Some("max-age=15778463"));
        // Directives for a file do not apply to its error page, which is a different file.
        let no_style = site.get("/none.css").expect(404);
        assert_eq!(no_style.text(), "no such page: /none.css 404");
        assert_eq!((no_style.header("cache-control"), no_style.header("x-style")), (None, None));
        assert_eq!(no_style.header("x-seen"), Some("by rules"));
        // The error page is sent completely, even if part of the file was requested.
        let part = Request::get("/gone").header("Range", "bytes=0-1").header("If-None-Match", "*");
        assert_eq!(site.send(&part).expect(410).text().trim(), "gone for good");
        let special = site.get("/a.spec").expect(200);
        assert_eq!(special.header("content-type"), Some("text/x-special"));
        assert_eq!(special.header("cache-control"), Some("max-age=100"));
        assert!(special.header("expires").is_some());
        assert_eq!(special.text(), "special");
        let _ = site.get("/plain/x.txt").expect(200);
        // In addition to the front controller.
        let redirected = site.get("/moved/x?q").expect(301);
        assert!(redirected.header("location").is_some_and(|to| to.ends_with("/index.php/x?q")));
        let slash = site.get("/plain").expect(301);
        assert!(slash.header("location").is_some_and(|to| to.ends_with("/plain/")));
    });
}

#[test]
fn protecting_rules_are_never_skipped() {
    run(Mode::Classic, site, |site| {
        let evil = site.get("/uploads/evil.php").expect(403);
        assert!(!evil.text().contains("ran") && !evil.text().contains("<?php"));
        let _ = site.get("/uploads/evil.php/x").expect(403);
        assert!(!site.get("/.htaccess").text().contains("RewriteEngine"));
        // An unknown directive may be one that protects.
        let _ = site.get("/broken/x.txt").expect(500);
        let _ = site.wait_for_log(&["broken/.htaccess:2", "NoSuchDirective"]);
        // If the password file is missing, no user is admitted.
        let _ = site.get("/members/").expect(500);
    });
}

#[test]
fn passwords_are_asked_for() {
    run(
        Mode::Classic,
        |s| site(s).allow_log("wrong user or password"),
        |site: &mut Site| {
            let users = site.place().top.join("users");
            // User `anna` with the password `password`.
            std::fs::write(&users, "anna:{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g=\n").unwrap();
            let file = format!(
                "AuthType Basic\nAuthName \"Members only\"\nAuthUserFile {}\nRequire valid-user\n",
                users.display()
            );
            std::fs::create_dir(site.file("closed")).unwrap();
            std::fs::write(site.file("closed/.htaccess"), file).unwrap();
            std::fs::copy(site.file("index.php"), site.file("closed/index.php")).unwrap();
            let asked = site.get("/closed/").expect(401);
            assert!(asked.header("www-authenticate").is_some_and(|text| text.contains("Members only")));
            let with = |credentials: &str| {
                site.send(&Request::get("/closed/").header("Authorization", &format!("Basic {credentials}")))
            };
            let _ = with("YW5uYTp3cm9uZw==").expect(401);
            assert_eq!(with("YW5uYTpwYXNzd29yZA==").expect(200).json()["user"], "anna");
        },
    );
}

#[test]
fn a_changed_file_counts_without_a_reload() {
    run(Mode::Classic, site, |site| {
        let _ = site.get("/plain/x.txt").expect(200);
        std::fs::write(site.file("plain/.htaccess"), "Require all denied\n").unwrap();
        let refused = || site.get("/plain/x.txt").status == 403;
        assert!(howdah_tests::process::eventually(howdah_tests::process::PATIENCE, refused), "{}", site.log());
        std::fs::remove_file(site.file("plain/.htaccess")).unwrap();
        let open = || site.get("/plain/x.txt").status == 200;
        assert!(howdah_tests::process::eventually(howdah_tests::process::PATIENCE, open), "{}", site.log());
    });
}

#[test]
fn without_the_setting_the_files_mean_nothing() {
    let setup = |s: Setup| s.file(".htaccess", "Require all denied\n").php("index.php", "echo 'in';");
    run(Mode::Classic, setup, |site| {
        assert_eq!(site.get_ok("/"), "in");
    });
}

/// A file that was uploaded may contain any directive.
#[test]
fn no_file_overrides_a_refusal_in_the_settings() {
    let rules = "[{ path = \"/uploads/*\", php = false }, { path = \"/private/*\", deny = true }]";
    run(
        Mode::Classic,
        |s| {
            s.setting("htaccess", "true")
                .setting("rule", rules)
                .file("uploads/.htaccess", "php_flag engine on\nAddHandler application/x-httpd-php .gif .php\n")
                .php("uploads/evil.php", "echo 'ran';")
                .file("uploads/evil.gif", "<?php echo 'ran';")
                .file("private/.htaccess", "Require all granted\n")
                .file("private/x.txt", "x")
                .php("index.php", "echo 'ran';")
        },
        |site| {
            assert_eq!(site.get_ok("/index.php"), "ran");
            for path in ["/uploads/evil.php", "/uploads/evil.gif", "/private/x.txt"] {
                let response = site.get(path);
                assert!(response.text() != "ran", "{path}");
                assert!(response.status == 403 || path == "/uploads/evil.gif", "{path}: {}", response.status);
            }
        },
    );
}
