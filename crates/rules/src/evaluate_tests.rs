//! Tests with rules, requests, and the expected results.

use crate::testing::{SomeFiles, outcome, problems, rules, with_request};
use crate::trace::NoTrace;
use std::fmt::Write as _;

/// Checks the results of requests against the rules.
fn cases(text: &str, list: &[(&str, &str)]) {
    let rules = rules(text).unwrap_or_else(|problems| panic!("{problems:?}"));
    for (line, expected) in list {
        assert_eq!(outcome(&rules, line), *expected, "{line} with {text}");
    }
}

#[test]
fn each_condition_decides() {
    let deny = |condition: &str| format!("[[rule]]\ndeny = true\n{condition}");
    for (condition, requests) in [
        ("path = '/a'", &[("GET h/a", true), ("GET h/a/", false), ("GET h/ab", false)][..]),
        ("path = '/a/*'", &[("GET h/a/", true), ("GET h/a/b/c", true), ("GET h/a", false)]),
        ("path = ['/a', '*.bak']", &[("GET h/a", true), ("GET h/x/y.bak", true), ("GET h/b", false)]),
        ("path = '/a/*/c*.php'", &[("GET h/a/b/c1.php", true), ("GET h/a/c.php", false)]),
        ("path = '~^/(\\d+)$'", &[("GET h/12", true), ("GET h/x", false)]),
        ("path = '~^/(?!ok)'", &[("GET h/ok", false), ("GET h/no", true)]),
        ("path = ['/a', '~^/b']", &[("GET h/a", true), ("GET h/bc", true), ("GET h/c", false)]),
        ("host = '*.example.org'", &[("GET www.EXAMPLE.org/", true), ("GET example.org/", false)]),
        ("host = ['a', '~^b\\d$']", &[("GET a/", true), ("GET b7/", true), ("GET bb/", false)]),
        ("method = ['PUT', 'DELETE']", &[("PUT h/", true), ("GET h/", false)]),
        ("method = 'DELETE'", &[("delete h/", true), ("Delete h/", true), ("DELETES h/", false)]),
        (
            "not = { method = ['GET', 'post'] }",
            &[("get h/", true), ("GET h/", false), ("HEAD h/", false), ("post h/", false)],
        ),
        ("method = 'GET'", &[("GET h/", true), ("HEAD h/", true), ("POST h/", false)]),
        ("header = { user-agent = '*bot*' }", &[("GET h/ user-agent: aBOTb", true), ("GET h/", false)]),
        ("header = { x = '~^[0-9]+$', y = false }", &[("GET h/ x: 12", true), ("GET h/ x: 12 y: 1", false)]),
        ("header = { x = true }", &[("GET h/ x: a x: b", true), ("GET h/ y: a", false)]),
        ("header = { x = 'b' }", &[("GET h/ x: a x: b", true)]),
        ("query = { p = '1*' }", &[("GET h/?p=12", true), ("GET h/?q=1&p=2", false), ("GET h/?%70=%31", true)]),
        ("query = { p = '1' }", &[("GET h/?p=2&p=1", true), ("GET h/?p=1&p=2", true), ("GET h/?p[]=1", true)]),
        ("not = { query = { p = '1' } }", &[("GET h/?p=1&p=1", false), ("GET h/?p=1&p=2", true), ("GET h/", true)]),
        ("query = '~a.*b'", &[("GET h/?xa=b", true), ("GET h/?ab", true), ("GET h/ab", false), ("GET h/", false)]),
        ("query = ['a', 'b=*']", &[("GET h/?A", true), ("GET h/?b=1", true), ("GET h/?c", false)]),
        ("query = true", &[("GET h/?a", true), ("GET h/", false)]),
        ("query = false", &[("GET h/?a", false), ("GET h/", true)]),
        ("not = { header = { x = 'a' } }", &[("GET h/ x: a", false), ("GET h/ x: a x: b", true), ("GET h/", true)]),
        ("query = { p = true, q = false }", &[("GET h/?p", true), ("GET h/?p&q", false), ("GET h/", false)]),
        (
            "client = ['10.0.0.0/8', '2001:db8::1']",
            &[
                ("GET h/ from 10.9.8.7", true),
                ("GET h/ from ::ffff:10.0.0.1", true),
                ("GET h/ from 2001:db8::1", true),
                ("GET h/ from 11.0.0.1", false),
                ("GET h/ from unix", false),
            ],
        ),
        ("https = true", &[("GET https://h/", true), ("GET h/", false)]),
        ("exists = 'file'", &[("GET h/a.txt", true), ("GET h/dir/", false)]),
        ("exists = ['file', 'directory']", &[("GET h/dir/", true), ("GET h/x", false)]),
        ("exists = 'no'", &[("GET h/x", true), ("GET h/a.txt", false)]),
        (
            "path = '/a/*'\nnot = { path = '/a/b/*', client = '127.0.0.1' }",
            &[("GET h/a/x", true), ("GET h/a/b/x", false), ("GET h/a/x from 127.0.0.1", false)],
        ),
        ("not = { exists = 'file' }", &[("GET h/x", true), ("GET h/a.txt", false)]),
        ("not = { host = 'a' }", &[("GET b/", true), ("GET a/", false)]),
    ] {
        for (line, denied) in requests {
            cases(&deny(condition), &[(line, if *denied { "403" } else { "-" })]);
        }
    }
}

#[test]
fn later_rules_see_rewrites() {
    let text = r#"
        [[rule]]
        path = "/index.php"
        headers = { X-First = "1" }
        [[rule]]
        path = "~^/wiki/(?<title>.*)$"
        rewrite = "/index.php?title=${title}"
        [[rule]]
        path = "/index.php"
        query = { title = "Secret*" }
        deny = true
    "#;
    cases(
        text,
        &[
            ("GET h/wiki/Main", "/index.php ?title=Main"),
            ("GET h/wiki/A&b=c?d=e", "/index.php ?title=A%26b%3Dc&d=e"),
            ("GET h/wiki/Secret%20x", "/index.php ?title=Secret%2520x 403"),
            ("GET h/index.php", "set x-first: 1"),
            ("GET h/other", "-"),
        ],
    );
    let to = |target: &str| format!("[[rule]]\npath = '/a/*'\nrewrite = '{target}'");
    for (target, with) in [
        ("/b/$1", "/b/x ?q=1"),
        ("/b?c=$1", "/b ?c=x&q=1"),
        ("/b?", "/b"),
        ("/b?c=2?", "/b ?c=2"),
        ("/b?u=$path&$query", "/b ?u=/a/x&q=1"),
        ("/b/../c/./$1//", "/c/x/ ?q=1"),
    ] {
        cases(&to(target), &[("GET h/a/x?q=1", with)]);
    }
    cases(&to("/../$1"), &[("GET h/a/x", "500 rule[0]: it rewrites to a path that leads above the root")]);
}

#[test]
fn rewrites_in_a_loop_are_each_applied_once() {
    let text = "[[rule]]\npath = '/a*'\nrewrite = '/b$1'\n[[rule]]\npath = '/b*'\nrewrite = '/a$1'";
    cases(text, &[("GET h/ax", "/ax"), ("GET h/c", "-")]);
    let growing = "[[rule]]\npath = '/*'\nrewrite = '/$1$1$1$1$1$1$1$1'\n".repeat(2);
    cases(
        &growing,
        &[(
            &format!("GET h/{}", "x".repeat(900)),
            &format!("/{} 500 rule[1]: it rewrites to a path that is too long", "x".repeat(7200)),
        )],
    );
}

#[test]
fn a_pattern_that_takes_too_long_is_an_error_and_not_a_pass() {
    let text = "[[rule]]\npath = '~^/(?!x)(a+)+\\1$'\ndeny = true";
    cases(
        text,
        &[("GET h/aa", "403"), (&format!("GET h/{}b", "a".repeat(60)), "500 rule[0]: its pattern took too many steps")],
    );
}

#[test]
fn redirects_have_a_location() {
    for (rule, requests) in [
        (
            "https = false\nredirect = 'https://$host$path'\nstatus = 301",
            &[("GET example.org/a?b=c", "301 https://example.org/a?b=c"), ("GET https://h/", "-")][..],
        ),
        (
            "path = '/old/*'\nredirect = '/new/$1'",
            &[("GET h/old/a\\\u{e9}?c", "302 /new/a%5C%C3%A9?c"), ("GET h/old//evil.org", "302 /new//evil.org")],
        ),
        ("path = '/*'\nredirect = '/$1'", &[("GET h//evil.org", "302 /evil.org")]),
        ("redirect = '/x#top'", &[("GET h/a?b", "302 /x?b#top")]),
        ("redirect = '/x?'\nstatus = 308", &[("GET h/a?b", "308 /x")]),
        ("redirect = 'https://www.$host/'", &[("GET h/\u{e9}", "302 https://www.h/")]),
    ] {
        cases(&format!("[[rule]]\n{rule}"), requests);
    }
}

#[test]
fn each_action_is_in_the_outcome() {
    for (rule, noted) in [
        ("root = '/usr'", "in :/usr"),
        ("path = '/a/*'\nalias = '/usr'", "in /a:/usr"),
        ("path = ['/a', '/a/*']\nalias = '/usr'", "in /a:/usr"),
        ("index = ['a.php', 'b.html']", "index a.php,b.html"),
        ("front_controller = '/a/index.php'", "front /a/index.php"),
        ("front_controller = ''", "front none"),
        (
            "path = '/a/*'\ntry_files = ['$path', '/b/$1/', '/i.php?q=$1', '=404']",
            "try /a/x try /b/x/ try /i.php?q=x try 404",
        ),
        ("php = false", "php false"),
        ("pool = 'admin'", "pool admin"),
        ("env = { A = 'b' }", "A=b"),
        ("request_headers = { X = '', Y = '1' }", "> x None > y Some(\"1\")"),
        ("deadline = '2m'\nqueue_timeout = '500ms'", "deadline 120s queue 500ms"),
        ("max_body = '1K'", "body 1024"),
        ("headers = { X = '1', Y = '' }", "set x: 1 remove y"),
        ("headers = { '+X' = '1' }\ntypes = 'text/*'", "add x: 1 for text/*"),
        ("headers = { '?X' = '1' }", "set x: 1 if it is missing"),
        ("cache_control = 'no-store'", "set cache-control: no-store if it is missing"),
        ("cache_control = { 'image/*' = 'public' }", "set cache-control: public if it is missing for image/*"),
        ("cors = { origins = '*' }", "cors"),
        ("mime = { '.x' = 'a/b' }", "x is a/b"),
        ("error_pages = { 404 = '/404.html', 5xx = '/5.html' }", "page /404.html page /5.html"),
        ("listing = true", "listing true"),
        ("access_log = false", "log false"),
        ("websocket = '/chat.php'", "websocket /chat.php"),
        ("allow = '192.0.2.0/24'\nphp = true", "php true"),
        ("allow = '10.0.0.0/8'", "403"),
        ("deny = '192.0.2.1'", "403"),
        ("limit = { rate = '1/s', burst = 5, connections = 2 }", "limit"),
        ("auth = { users = { a = '{SHA}5en6G6MezRroT3XKqkdPOmY/BfQ=' } }", "auth"),
        ("deny = true\nauth = { users = { a = '{SHA}5en6G6MezRroT3XKqkdPOmY/BfQ=' } }", "auth 403"),
        ("maintenance = true", "maintenance "),
        ("maintenance = { page = '/m.html', flag = '/run/flag' }", "maintenance /m.html"),
        ("maintenance = { flag = '/run/other' }\nphp = true", "php true"),
        ("status = 410", "410"),
        ("status = 200\nbody = 'ok'", "200 b\"ok\""),
        ("proxy = 'http://127.0.0.1:1'", "proxy http://127.0.0.1:1"),
    ] {
        cases(&format!("[[rule]]\n{rule}"), &[("GET h/a/x", noted)]);
    }
}

#[test]
fn later_rules_override_earlier_ones_and_last_ends() {
    let text = r#"
        [[rule]]
        pool = "a"
        auth = { users = { a = "{SHA}5en6G6MezRroT3XKqkdPOmY/BfQ=" } }
        [[rule]]
        path = "/open/*"
        auth = false
        [[rule]]
        path = "/b/*"
        pool = "b"
        last = true
        [[rule]]
        path = ["/b/*", "/c"]
        pool = "c"
    "#;
    cases(
        text,
        &[
            ("GET h/", "auth pool a"),
            ("GET h/open/x", "pool a"),
            ("GET h/b/x", "auth pool b"),
            ("GET h/c", "auth pool c"),
        ],
    );
}

#[test]
fn settings_that_cannot_work_are_errors() {
    for (rule, says) in [
        ("dney = true", "did you mean `deny`?"),
        ("path = '/a'", "does nothing"),
        ("path = 'a'\ndeny = true", "begin it with /"),
        ("path = []\ndeny = true", "empty list"),
        ("path = '~('\ndeny = true", "regular expression: unclosed group"),
        ("host = '~['\ndeny = true", "regular expression"),
        ("method = 'G T'\ndeny = true", "not a method"),
        ("client = '10.0.0.300'\ndeny = true", "not an address or network"),
        ("header = { 'a b' = 'x' }\ndeny = true", "not a header"),
        ("not = { pth = '/' }\ndeny = true", "did you mean `path`?"),
        ("rewrite = '/$1'", "names $1, but no pattern"),
        ("path = '/a/*'\nrewrite = '/$2'", "only 1 stars or groups"),
        ("rewrite = '/$uri'", "neither a group"),
        ("rewrite = 'x'", "not a path that starts"),
        ("redirect = 'x'", "not a path that starts"),
        ("redirect = '/a b'", "%20"),
        ("redirect = '/'\nstatus = 404", "not a redirect"),
        ("status = 99", "from 200 to 599"),
        ("body = 'x'\nphp = true", "needs a `status`"),
        ("alias = '/usr'", "needs one path"),
        ("path = '/a*'\nalias = '/usr'", "needs one path"),
        ("root = '/does/not/exist'", "does not exist"),
        ("try_files = ['x']", "neither a path nor a status"),
        ("limit = { burst = 3 }", "needs a rate or connections"),
        ("limit = { rate = '5' }", "a number and a time"),
        ("auth = { realm = 'x' }", "needs a file"),
        ("auth = { file = '/does/not/exist' }", "cannot read"),
        ("auth = { users = { a = 'secret' } }", "unsupported hash"),
        ("cors = { origins = '*', credentials = true }", "every origin"),
        ("cors = { origins = 'example.org' }", "not an origin"),
        ("headers = { Content-Length = '1' }", "by the server only"),
        ("headers = { X = \"a\\nb\" }", "cannot be a header's value"),
        ("types = 'text/html'\ndeny = true", "needs `headers`"),
        ("error_pages = { 200 = '/x' }", "not a status from 400"),
        ("app = 'wordpres'", "did you mean \"wordpress\"?"),
        ("path = '*.php'\napp = 'wordpress'", "needs one path"),
        ("client = '10.0.0.1'\napp = 'wordpress'", "`host` and `path` only"),
        ("max_body = 'x'", "expected a size"),
        ("deadline = 'soon'", "expected a duration"),
        ("headers = { '+Content-Length' = '1' }", "by the server only"),
    ] {
        let found = problems(&format!("[[rule]]\n{rule}"));
        assert!(found.contains(says), "{rule}: {found}");
    }
}

#[test]
fn many_rules_of_every_kind_are_found_by_the_index() {
    let mut text = String::new();
    for at in 0..300 {
        let condition = match at % 5 {
            0 => format!("path = '/exact/{at}'"),
            1 => format!("path = '/prefix/{at}/*'"),
            2 => format!("path = '*.glob{at}'"),
            3 => format!("path = '~^/regex/{at}(/|$)'"),
            _ => format!("path = '~^/(?!x)look/{at}$'"),
        };
        let _ = writeln!(text, "[[rule]]\n{condition}\nenv = {{ R{at} = '' }}");
    }
    let rules = rules(&text).unwrap();
    for (line, found) in [
        ("GET h/exact/295", "R295="),
        ("GET h/prefix/101/x/y", "R101="),
        ("GET h/a/b.glob297", "R297="),
        ("GET h/regex/298/x", "R298="),
        ("GET h/look/299", "R299="),
        ("GET h/prefix/1/x.glob2", "R1= R2="),
        ("GET h/", "-"),
    ] {
        assert_eq!(outcome(&rules, line), found, "{line}");
    }
}

#[test]
fn a_trace_says_why_rules_match_or_not() {
    use crate::trace::Lines;
    let rules = rules("[[rule]]\nname = 'a'\npath = '/x'\nphp = false\n[[rule]]\nnot = { host = 'h' }\ndeny = true\n[[rule]]\npath = '/y'\ndeny = true\n[[rule]]\nphp = true").unwrap();
    let lines = with_request("GET h/y", |request| {
        let mut lines = Lines::default();
        rules.evaluate(request, &crate::NoFiles, &mut lines);
        lines.0
    });
    assert_eq!(
        lines,
        [
            "a: no, path is not /x",
            "rule[1]: no, host is not other than h",
            "rule[2]: matches: status 403",
            "rule[3]: not evaluated",
        ]
    );
}

#[test]
fn a_later_rule_decides_the_pool_and_a_share_persists_until_another() {
    let rules = rules(
        "[[rule]]\npool = \"all\"\n\
         [[rule]]\nname = \"api\"\npath = \"/api/*\"\npool = \"api\"\nworkers = 2\n\
         [[rule]]\npath = \"/api/old/*\"\npool = \"old\"\nlast = true\n\
         [[rule]]\npath = \"*.html\"\npool = \"pages\"\nweight = 3\n",
    )
    .unwrap();
    let numbers: Vec<_> = rules.routes().iter().map(|route| (&*route.name, route.number)).collect();
    assert_eq!(numbers, [("rule[0]", 1), ("api", 2), ("/api/old/*", 3), ("*.html", 4)]);
    assert_eq!(rules.pools().collect::<Vec<_>>(), ["all", "api", "old", "pages"]);
    for (path, pool, route, shared) in [
        ("/", "all", 1, false),
        ("/api/x", "api", 2, true),
        ("/api/x.html", "pages", 4, true),
        ("/api/old/x.html", "old", 3, true),
    ] {
        with_request(&format!("GET a{path}"), |request| {
            let outcome = rules.evaluate(request, &SomeFiles, &mut NoTrace).unwrap();
            let found = (outcome.pool.as_deref(), outcome.route.as_ref().map(|route| route.number));
            assert_eq!((found, outcome.share.is_some()), ((Some(pool), Some(route)), shared), "{path}");
        });
    }
}

#[test]
fn actions_that_contradict_each_other_are_refused() {
    let said = problems("[[rule]]\nproxy = \"a\"\npool = \"b\"\nworkers = 1\n");
    assert!(said.contains("pool: cannot be combined with `proxy`") && said.contains("workers: cannot be"), "{said}");
    assert!(problems("[[rule]]\nweight = 0\n").contains("weight: must be from 1 to 1000"));
}
