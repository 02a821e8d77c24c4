use super::*;
use crate::commands::import::loading::loaded;

fn of(inner: &str) -> String {
    let page = converted(&format!("<VirtualHost *:80>\nDocumentRoot /srv/a\n{inner}\n</VirtualHost>\n"), None).unwrap();
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
            "path = \"~^/b/(.+)$\" not = { exists = \"file\" } rewrite = \"/b/c.php?p=$1\"",
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
    let page = converted(text, None).unwrap();
    assert!(page.contains("listen = [\":80\", \"https://:443\"]"), "{page}");
    assert_eq!(page.matches("[[site]]").count(), 1, "{page}");
    assert!(page.contains("https = false\nredirect = \"https://a.example$1\"\nstatus = 301\n"), "{page}");
    for line in ["12: Bogus x: dropped: there is no counterpart", "14: RewriteRule ^/a /b: dropped: rules have no such"]
    {
        assert!(page.contains(line), "{page}");
    }
    for number in 1..=13 {
        let is_close = text.lines().nth(number - 1).unwrap().starts_with("</");
        assert!(is_close || page.contains(&format!("\n# {number}: ")), "{number}\n{page}");
    }
    assert!(
        converted("<Directory /a>\n</Directory>\n", None).is_err() && converted("<VirtualHost *:80>", None).is_err()
    );
}

#[test]
fn conditions_of_rewrites_become_those_of_rules() {
    let of = |inner: &str| {
        let page = converted(&format!("DocumentRoot /srv/a\n{inner}\n"), None).unwrap();
        let (rules, report) = page.split_once("\n# The lines").unwrap();
        (rules.replace('\n', " "), report.to_owned())
    };
    for (inner, expected) in [
        (
            "RewriteCond %{HTTP_USER_AGENT} bad [NC,OR]\nRewriteCond %{HTTP_REFERER} ^http://evil\nRewriteRule .* - [F,L]",
            "[[site.rule]] path = \"~.*\" header.\"User-Agent\" = \"~(?i)bad\" deny = true  [[site.rule]] path = \"~.*\" \
             header.\"Referer\" = \"~^http://evil\" deny = true",
        ),
        (
            "RewriteCond %{REMOTE_ADDR} !=10.0.0.1\nRewriteRule ^/a - [R=404]",
            "not = { client = [\"10.0.0.1\"] } status = 404",
        ),
        (
            "RewriteCond %{REQUEST_METHOD} ^(TRACE|TRACK)\nRewriteRule .* - [F]",
            "method = [\"TRACE\", \"TRACK\"] deny = true",
        ),
        (
            "RewriteCond %{SERVER_PORT} !^443$\nRewriteRule ^ https://a.example%{REQUEST_URI} [R]",
            "https = false redirect",
        ),
        (
            "RewriteCond %{HTTP_HOST} ^a\\. [OR]\nRewriteCond %{HTTP_HOST} =b\nRewriteCond %{HTTP_COOKIE} x\nRewriteRule ^/y /z",
            "path = \"~^/y\" host = ['~^a\\.'] header.\"Cookie\" = \"~x\" rewrite = \"/z\"  [[site.rule]] path = \"~^/y\" \
             host = [\"b\"] header",
        ),
        ("RewriteCond %{REQUEST_URI} ^/x\nRewriteRule .* - [F]", "path = \"~^/x\" deny = true"),
        // A rule without a target takes requests out of the list.
        (
            "RewriteCond %{REQUEST_FILENAME} -s [OR]\nRewriteCond %{REQUEST_FILENAME} -l [OR]\nRewriteCond %{REQUEST_FILENAME} -d\n\
             RewriteRule ^.*$ - [NC,L]\nRewriteRule ^.*$ index.php [NC,L]",
            "front_controller = \"index.php\"",
        ),
        (
            "RewriteRule ^/a - [L]\nRewriteRule ^/(.*)$ /b/$1",
            "path = \"~^/(.*)$\" not = { path = \"~^/a\" } rewrite = \"/b/$1\"",
        ),
        // A condition that has no counterpart, at a rule that refuses.
        ("RewriteCond %{TIME_HOUR} 3\nRewriteRule ^/a - [F]", "[[site.rule]] path = \"~^/a\" deny = true"),
        ("RewriteCond %{QUERY_STRING} a.*b [NC]\nRewriteRule ^/a - [F]", "query = \"~(?i)a.*b\" deny = true"),
        ("RewriteCond %{QUERY_STRING} !^$\nRewriteRule ^/a - [F]", "query = true deny = true"),
        (
            "RewriteCond %{THE_REQUEST} x\nRewriteRule ^ - [G]",
            "# ALL CLIENTS ARE REFUSED because of conditions in lines 3",
        ),
    ] {
        let (rules, report) = of(inner);
        assert!(rules.contains(expected), "{inner}\nexpected: {expected}\nfound: {rules}\n{report}");
    }
    for (inner, why) in [
        ("RewriteCond %{TIME_HOUR} 3\nRewriteRule ^ - [L]\nRewriteRule ^/x /y", "a rule before it ends the list"),
        ("RewriteRule ^/x - [C]\nRewriteRule ^/x /y", "a rule before it chains or skips"),
        ("RewriteRule ^ - [S=1]\nRewriteRule ^/x /y", "a rule before it chains or skips"),
    ] {
        let (rules, report) = of(inner);
        assert!(!rules.contains("rewrite =") && report.contains(why), "{inner}\n{rules}\n{report}");
    }
}

#[test]
fn the_innermost_directory_controls_access() {
    let of = |inner: &str| {
        let page =
            converted(&format!("DocumentRoot /srv/a\nAlias /x /opt/x\nAlias /y /opt/y\n{inner}\n"), None).unwrap();
        let (rules, report) = page.split_once("\n# The lines").unwrap();
        let rules = rules.replace('\n', " ");
        let at = rules.find("alias = \"/opt/y\"").unwrap();
        (rules[at..].replace("alias = \"/opt/y\" front_controller = \"\"   # files only", ""), report.to_owned())
    };
    let denied = |place: &str| format!("<Directory {place}>\nRequire all denied\n</Directory>\n");
    let granted = |place: &str| format!("<Directory {place}>\nRequire all granted\n</Directory>\n");
    for (inner, expected) in [
        // Debian's apache2.conf: the root is open, and what no other section opens is not.
        (denied("/") + &granted("/srv"), "  [[site.rule]] path = [\"/x\", \"/x/*\", \"/y\", \"/y/*\"] deny = true "),
        (
            denied("/") + &granted("/srv/") + &granted("/opt/x"),
            "  [[site.rule]] path = [\"/y\", \"/y/*\"] deny = true ",
        ),
        (
            denied("/") + &granted("/opt"),
            "  [[site.rule]] not = { path = [\"/x\", \"/x/*\", \"/y\", \"/y/*\"] } deny = true ",
        ),
        (denied("/srv/a") + &granted("/srv/a/b"), "  [[site.rule]] not = { path = [\"/b\", \"/b/*\"] } deny = true "),
        (denied("/opt"), "  [[site.rule]] path = [\"/x\", \"/x/*\", \"/y\", \"/y/*\"] deny = true "),
        (denied("/opt/x/z"), "  [[site.rule]] path = [\"/x/z\", \"/x/z/*\"] deny = true "),
        (denied("/") + &granted("/srv") + &granted("/opt"), " "),
    ] {
        let (rules, report) = of(&inner);
        assert_eq!(rules, expected, "{inner}{report}");
    }
    let (_, report) = of(&(denied("/") + &granted("/srv") + &granted("/opt")));
    assert!(report.contains("Require all denied: taken: no rule: inner directories override it"), "{report}");
    // Patterns of directories are reported, not followed.
    let page = converted(&format!("DocumentRoot /srv/a\n{}", denied("/srv/*/b")), None).unwrap();
    assert!(page.contains("NOT TAKEN OVER: access control in lines 3."), "{page}");
}

#[test]
fn sections_that_depend_on_modules_and_versions_are_resolved() {
    for (section, holds) in [
        ("IfModule mod_x.c", true),
        ("IfModule !mod_x.c", false),
        ("IfVersion >= 2.3", true),
        ("IfVersion < 2.3", false),
        ("IfVersion 2.4", true),
        ("IfVersion = 2.2", false),
        ("IfVersion <= 2.4", false),
        ("IfDefine none", false),
        ("IfDefine !none", true),
        ("IfDefine given", true),
    ] {
        let name = section.split(' ').next().unwrap();
        let text = format!(
            "Define given\nDocumentRoot /srv/a\n<{section}>\n<Location />\nDeny from all\n</Location>\n</{name}>\n"
        );
        let page = converted(&text, None).unwrap();
        assert!(page.contains("deny = true") == holds && !page.contains("NOT TAKEN OVER"), "{section}\n{page}");
        assert_eq!(page.contains("Deny from all: dropped: this condition does not hold"), !holds, "{section}\n{page}");
    }
}

#[test]
fn expressions_of_sections_become_the_conditions_of_rules() {
    let of = |inner: &str| {
        let page = converted(&format!("DocumentRoot /srv/a\n{inner}\n"), None).unwrap();
        let (rules, report) = page.split_once("\n# The lines").unwrap();
        (rules.replace('\n', " "), report.to_owned())
    };
    for (expression, expected) in [
        ("%{HTTP_HOST} == 'a.example'", "[[site.rule]] host = [\"a.example\"] headers.\"X-A\" = \"b\""),
        ("%{HTTP_HOST} =~ /^www\\./i && %{HTTPS} != 'on'", "host = ['~(?i)^www\\.'] https = false headers"),
        ("%{REQUEST_URI} =~ m#^/api/#", "path = \"~^/api/\" headers"),
        ("!(%{REQUEST_METHOD} in { 'GET', 'HEAD' })", "not = { method = [\"GET\", \"HEAD\"] } headers"),
        ("-R '10.0.0.0/8'", "client = [\"10.0.0.0/8\"] headers"),
        (
            "! %{REMOTE_ADDR} -ipmatch '::1' && %{REQUEST_URI} != '/a'",
            "not = { client = [\"::1\"], path = \"/a\" } headers",
        ),
        ("req('X-Key') == 'a.b'", "header.\"X-Key\" = '~^(?:a\\.b)$' headers"),
        (
            "-z %{HTTP:X-Key} || %{HTTP_USER_AGENT} =~ /bot/",
            "header.\"X-Key\" = false headers.\"X-A\" = \"b\"  [[site.rule]] header.\"User-Agent\" = \"~bot\" headers",
        ),
        (
            "-f %{REQUEST_FILENAME} && %{HTTP_REFERER} !~ /example/",
            "exists = \"file\" not = { header.\"Referer\" = \"~example\" } headers",
        ),
        ("%{HTTP:A} != 'x' && %{HTTP:A} !~ /y/i", "not = { header.\"A\" = \"~(?:^(?:x)$)|(?i:y)\" } headers"),
        ("true", "[[site.rule]] headers"),
    ] {
        let (rules, report) = of(&format!("<If \"{expression}\">\nHeader set X-A b\n</If>"));
        assert!(rules.contains(expected), "{expression}\nexpected: {expected}\nfound: {rules}");
        assert!(report.contains(": taken: the conditions of rules"), "{report}");
    }
    let chain = "<If \"%{HTTP_HOST} == 'a'\">\nHeader set X 1\n</If>\n<ElseIf \"%{HTTP_HOST} == 'b'\">\nHeader set X 2\n</ElseIf>\n\
                 <Else>\nHeader set X 3\n</Else>";
    let (rules, _) = of(chain);
    for part in [
        "host = [\"a\"] headers.\"X\" = \"1\"",
        "host = [\"b\"] not = { host = [\"a\"] } headers.\"X\" = \"2\"",
        "not = { host = [\"a\", \"b\"] } headers.\"X\" = \"3\"",
    ] {
        assert!(rules.contains(part), "{part} in {rules}");
    }
    let (rules, _) = of("<Location /x>\n<If \"%{HTTP:A} == 'b'\">\nRequire ip 10.0.0.1\n</If>\n</Location>");
    let expected = "path = [\"/x\", \"/x/*\"] header.\"A\" = \"~^(?:b)$\" allow = [\"10.0.0.1\"]";
    assert!(rules.contains(expected), "{rules}");
    // A block without a counterpart is left out as a whole, with its `Else`, and every line says so.
    let (rules, report) = of("<If \"%{TIME_HOUR} == 3\">\nRequire all granted\nHeader set X 1\n</If>");
    assert!(!rules.contains("[[site.rule]]") && report.contains("Require all granted: dropped"), "{rules}\n{report}");
    for (expression, is_read) in [
        ("%{TIME_HOUR} == 3", true),
        ("%{THE_REQUEST} =~ /a=b/", true),
        ("%{HTTP_HOST} == 'a' && %{HTTP_HOST} =~ /b/", true),
        ("%{HTTP:A} !~ /a/ && %{HTTP:B} !~ /b/", true),
        ("%{HTTP:A} =~ /.*/", true),
        ("%{HTTP_HOST} == %{SERVER_NAME}", false),
        ("%{HTTP_HOST} == 'a", false),
    ] {
        let (rules, report) = of(&format!(
            "<If \"{expression}\">\nRequire all denied\n</If>\n<Else>\n<Files x>\nHeader set X 1\n</Files>\n</Else>"
        ));
        // Without the condition, access control refuses.
        assert_eq!((rules.matches("[[site.rule]]").count(), rules.matches("deny = true").count()), (1, 1), "{rules}");
        for line in ["Require all denied: changed: all clients are refused", "Header set X 1: dropped: "] {
            assert!(report.contains(line), "{expression}: {line} in {report}");
        }
        assert!(is_read || report.contains("Else: dropped: "), "{expression}: {report}");
    }
}
