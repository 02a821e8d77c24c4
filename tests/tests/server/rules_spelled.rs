//! Rules protect an alias's directory, error pages and pools' pages in every spelling of their paths, and parameters in
//! every spelling of theirs.

use howdah_tests::{Mode, Request, run};

/// Suffixes and prefixes that are added to a path.
const BEHIND: [&str; 28] = [
    "",
    "/",
    "//",
    "/x",
    "/.",
    "/..",
    "/./",
    "/x/..",
    "/x.php",
    "/index.php",
    "%2f",
    "%2fx",
    "%2e",
    "%20",
    ".",
    ";x",
    ";/x",
    "?x",
    "?json",
    "%3f",
    "#x",
    "\\",
    "%5c",
    "%00",
    "%2500",
    "%c0%af",
    "~",
    "::$DATA",
];
const BEFORE: [&str; 17] = [
    "/",
    "/.",
    "/./",
    "/%2e",
    "/x/..",
    "/x/%2e%2e",
    "/x%2f..",
    "/;x/..",
    "/%c0%ae",
    "/aliased",
    "/aliased/",
    "/aliased/..",
    "/aliased/index.php",
    "/index.php",
    "/INDEX.php",
    "http://example.org",
    "http://example.org/.",
];

fn spellings(path: &str) -> Vec<String> {
    let inner = &path[1..];
    let swapped: String =
        path.chars().map(|c| if c.is_ascii_lowercase() { c.to_ascii_uppercase() } else { c }).collect();
    let mut all = vec![
        swapped,
        path.replace(".php", ".PHP"),
        format!("/%{:02x}{}", path.as_bytes()[1], &path[2..]),
        format!("/{}", inner.replace('/', "//")),
        format!("/{}", inner.replace('/', "/./")),
        format!("/{}", inner.replace('/', "/x/../")),
        format!("/{}", inner.replace('/', "%2f")),
        format!("/{}", inner.replace('/', ";x/")),
    ];
    all.extend(BEHIND.map(|behind| format!("{path}{behind}")));
    all.extend(BEFORE.map(|before| format!("{before}{path}")));
    all
}

#[test]
fn no_spelling_reaches_protected_aliases_error_pages_or_status() {
    let rules = "[{ path = ['/aliased/setup', '/aliased/setup/*', '/errors/*', '/pool-status'], deny = true }, \
                 { path = '/aliased/*', alias = '@TOP@/elsewhere' }, \
                 { path = '/*', error_pages = { 403 = '/errors/page.php', 404 = '/errors/page.txt' } }]";
    run(
        Mode::Classic,
        |s| {
            s.http1("most clients of other versions send no such targets")
                .setting("status_path", "\"/pool-status\"")
                .setting("rule", rules)
                .allow_log("no page for the status")
                .file("../elsewhere/index.php", "<?php echo 'open';")
                .file("../elsewhere/setup/index.php", "<?php echo 'SECRET';")
                .file("../elsewhere/setup/file.txt", "SECRET")
                .file("../outside.txt", "SECRET")
                .file("errors/page.txt", "SECRET")
                .php("errors/page.php", "echo 'SECRET';")
        },
        |site| {
            let mut through = Vec::new();
            for path in [
                "/aliased/setup/",
                "/aliased/setup/index.php",
                "/aliased/setup/file.txt",
                "/aliased../outside.txt",
                "/aliased/../outside.txt",
                "/errors/page.php",
                "/errors/page.txt",
                "/pool-status",
            ] {
                for target in spellings(path) {
                    let mut conn = site.conn();
                    conn.send(format!("GET {target} HTTP/1.1\r\nHost: example.org\r\nConnection: close\r\n\r\n"));
                    let answered = conn.read_rest();
                    let text = String::from_utf8_lossy(&answered);
                    if ["SECRET", "pool:", "\"pool\"", "\r\n\r\npong"].iter().any(|secret| text.contains(secret)) {
                        through.push(target);
                    }
                }
            }
            assert!(through.is_empty(), "{through:?}");
            assert_eq!(site.get_ok("/aliased/"), "open");
            assert_eq!(site.send(&Request::get("/none")).status, 404);
        },
    );
}

/// The script is the judge: a request passes a rule only if PHP sees no such parameter.
#[test]
fn no_spelling_of_a_parameter_passes_a_rule_and_reaches_the_script() {
    let names = [
        "do_it",
        "do.it",
        "do%2eit",
        "do+it",
        "do%20it",
        "%20do_it",
        "do[it",
        "do_it%00",
        "do_it%00x",
        "Do_it",
        ".do_it",
        "do_it[]",
        "do_it[x][y]",
        "do.it[]",
        "do[it]",
        "[do_it]",
        "do__it",
        "do_it2",
        "do-it",
        "do_it]",
        "%64o_it",
    ];
    let values = ["=rm", "=%72m", "=r%6d", "=RM", "=rm&do_it=x", "", "=", "=rm%00", "==rm"];
    run(
        Mode::Classic,
        |s| {
            s.setting("rule", "[{ query = { do_it = 'rm' }, deny = true }]").php(
                "index.php",
                "$seen = (array) ($_GET['do_it'] ?? []);
                 array_walk_recursive($seen, function ($value) { if ($value === 'rm') echo 'REACHED'; });",
            )
        },
        |site| {
            let (mut through, mut refused) = (Vec::new(), 0);
            for name in names {
                for value in values {
                    for before in ["", "do_it=x&", "&", "a=1&"] {
                        let target = format!("/index.php?{before}{name}{value}");
                        let response = site.send(&Request::get(&target));
                        refused += usize::from(response.status == 403);
                        if response.text().contains("REACHED") {
                            through.push(target);
                        }
                    }
                }
            }
            assert!(through.is_empty(), "{through:?}");
            assert!(refused > 100, "{refused}");
            assert_eq!(site.get_ok("/index.php?do_it=x&do[it]=rm"), "");
        },
    );
}
