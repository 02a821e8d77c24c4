use super::*;
use crate::commands::import::loading::loaded;

fn of(inner: &str) -> String {
    let page = converted(&format!("<VirtualHost *:80>\nDocumentRoot /srv/a\n{inner}\n</VirtualHost>\n")).unwrap();
    let page = page.split("\n# The lines").next().unwrap().to_owned();
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("users"), "anna:{SHA}2jmj7l5rSw0yVb/vlWAYkK/YBwk=\n").unwrap();
    loaded(dir.path(), &page.replace("/srv/a", dir.path().to_str().unwrap()));
    page.replace('\n', " ")
}

#[test]
fn each_directive_has_its_counterpart() {
    for (inner, expected) in [
        (
            "ServerName https://a.example:443\nServerAlias b.example *.c.example",
            "[\"a.example\", \"b.example\", \"*.c.example\", \"default\"]",
        ),
        ("DirectoryIndex disabled", "index = []"),
        ("FallbackResource /app.php", "front_controller = \"app.php\""),
        ("", "front_controller = \"\""),
        ("<Directory /srv>\nAllowOverride All\n</Directory>", "htaccess = true"),
        ("LimitRequestBody 1048576", "[site.http] max_body = 1048576"),
        ("CustomLog ${APACHE_LOG_DIR}/a.log combined", "[site.log] access = \"/var/log/apache2/a.log\""),
        (
            "ServerName a.example\nphp_admin_value memory_limit 256M",
            "[site.pool] admin_ini.\"memory_limit\" = \"256M\"",
        ),
        ("php_flag display_errors on", "[pool.site0] ini.\"display_errors\" = \"1\""),
        ("<Directory /srv/a/up>\nphp_admin_flag engine off\n</Directory>", "path = [\"/up\", \"/up/*\"] php = false"),
        ("<Directory /srv/a/up>\nOptions +Indexes\n</Directory>", "path = [\"/up\", \"/up/*\"] listing = true"),
        ("<Location /s>\nRequire all denied\n</Location>", "path = [\"/s\", \"/s/*\"] deny = true"),
        ("<Location /s>\nRequire ip 10.0.0.0/8 ::1\n</Location>", "allow = [\"10.0.0.0/8\", \"::1\"]"),
        ("<Location /s>\nRequire host a.example\n</Location>", "path = [\"/s\", \"/s/*\"] deny = true"),
        (
            "<Location /s>\nRequire ip 10.1 172.16.0.0/255.240.0.0\n</Location>",
            "allow = [\"10.1.0.0/16\", \"172.16.0.0/12\"]",
        ),
        (
            "<Location /s>\n<RequireAll>\nRequire all granted\nRequire not ip 10.0.0.1\n</RequireAll>\n</Location>",
            "path = [\"/s\", \"/s/*\"] deny = [\"10.0.0.1\"]",
        ),
        (
            "<Location /s>\n<RequireAll>\nRequire expr x\nRequire ip 10.0.0.1\n</RequireAll>\n</Location>",
            "path = [\"/s\", \"/s/*\"] deny = true",
        ),
        (
            "<Location /s>\n<LimitExcept GET POST>\nRequire all denied\n</LimitExcept>\n</Location>",
            "not = { method = [\"GET\", \"POST\"] } deny = true",
        ),
        (
            "<Location /s>\n<Limit PUT>\nDeny from all\n</Limit>\n</Location>",
            "path = [\"/s\", \"/s/*\"] method = [\"PUT\"] deny = true",
        ),
        (
            "<Location /s>\nAuthUserFile /srv/a/users\nRequire ip 10.0.0.1\nRequire valid-user\n</Location>",
            "not = { client = [\"10.0.0.1\"] } auth.file = \"/srv/a/users\"",
        ),
        ("<Location /s>\nOrder deny,allow\nDeny from all\nAllow from 10.0.0.1\n</Location>", "allow = [\"10.0.0.1\"]"),
        ("<FilesMatch \"^\\.ht\">\nRequire all denied\n</FilesMatch>", "path = '~/\\.ht[^/]*$' deny = true"),
        (
            "<Directory /srv/a/b>\n<FilesMatch \\.php$>\nRequire all denied\n</FilesMatch>\n</Directory>",
            "path = '~^/b(?:/.*)?/[^/]*\\.php$' deny = true",
        ),
        ("<Files \"*.bak\">\nRequire all denied\n</Files>", "path = \"*/*.bak\" deny = true"),
        (
            "Redirect permanent /old https://b.example/new/",
            "path = \"~^/old(/.*)?$\" redirect = \"https://b.example/new$1\" status = 301",
        ),
        ("Redirect gone /old", "path = [\"/old\", \"/old/*\"] status = 410"),
        ("RedirectMatch 404 ^/\\.git", "path = '~^/\\.git' status = 404"),
        ("Alias /docs /usr/share/doc", "path = [\"/docs\", \"/docs/*\"] alias = \"/usr/share/doc\""),
        ("Header always set X-A b\nHeader unset X-B", "headers.\"X-A\" = \"b\"  [[site.rule]] headers.\"X-B\" = \"\""),
        ("ExpiresByType image/png \"access plus 1 year 2 days\"", "cache_control.\"image/png\" = \"max-age=31708800\""),
        ("ErrorDocument 404 /404.html", "error_pages.\"404\" = \"/404.html\""),
        ("ProxyPass /api http://127.0.0.1:3000/api", "path = [\"/api\", \"/api/*\"] proxy = \"http://127.0.0.1:3000\""),
        ("ProxyPass /api/ http://127.0.0.1:3000/", "path = \"~^/api(?:/(.*))?$\" rewrite = \"/$1\" proxy"),
        ("ProxyPass / ws://127.0.0.1:3000/", "[[site.rule]] proxy = \"http://127.0.0.1:3000\""),
        ("RewriteRule ^/x/(.*)$ /y.php?a=$1 [L,QSA]", "path = \"~^/x/(.*)$\" rewrite = \"/y.php?a=$1\""),
        (
            "RewriteCond %{HTTPS} off\nRewriteRule ^ https://%{HTTP_HOST}%{REQUEST_URI} [R=301]",
            "path = \"~^\" https = false redirect = \"https://$host$path\" status = 301",
        ),
        (
            "<Directory /srv/a/b>\nRewriteCond %{REQUEST_FILENAME} !-f\nRewriteRule ^(.+)$ c.php?p=$1\n</Directory>",
            "path = \"~^/b/(.+)$\" exists = \"no\" rewrite = \"/b/c.php?p=$1\"",
        ),
        (
            "<Location /p>\nAuthType Basic\nAuthName \"A b\"\nAuthUserFile /srv/a/users\nRequire user anna\n</Location>",
            "auth.realm = \"A b\" auth.file = \"/srv/a/users\" auth.only = [\"anna\"]",
        ),
    ] {
        let page = of(inner);
        assert!(page.contains(expected), "{inner}\nexpected: {expected}\nfound: {page}");
    }
}

#[test]
fn a_host_with_and_without_tls_is_one_site_and_each_line_is_reported() {
    let text = "Listen 443\n<VirtualHost *:80>\nServerName a.example\nRedirect permanent / https://a.example/\n</VirtualHost>\n\
                <VirtualHost _default_:443>\nServerName a.example\nDocumentRoot /srv/a\nSSLEngine on\nSSLCertificateFile a.pem\n\
                SSLCertificateKeyFile a.key\nBogus x\nRewriteCond %{TIME_HOUR} >12\nRewriteRule ^/a /b\n</VirtualHost>\n";
    let page = converted(text).unwrap();
    assert!(page.contains("listen = [\":80\", \"https://:443\"]"), "{page}");
    assert_eq!(page.matches("[[site]]").count(), 1, "{page}");
    assert!(page.contains("https = false\nredirect = \"https://a.example$1\"\nstatus = 301\n"), "{page}");
    for line in ["12: Bogus x: dropped: there is no counterpart", "14: RewriteRule ^/a /b: dropped: its conditions"] {
        assert!(page.contains(line), "{page}");
    }
    for number in 1..=13 {
        let is_close = text.lines().nth(number - 1).unwrap().starts_with("</");
        assert!(is_close || page.contains(&format!("\n# {number}: ")), "{number}\n{page}");
    }
    assert!(converted("<Directory /a>\n</Directory>\n").is_err() && converted("<VirtualHost *:80>").is_err());
}
