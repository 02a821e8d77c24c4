//! Every protected path in every spelling, through the code that serves requests: nothing that must be refused is run
//! or sent. Rules of all kinds, all presets, and all examples of the guides.

use crate::fuzz_access::{AccessOutcome, TestSite, rules};
use howdah_rules::pattern::PathPattern;
use howdah_rules::{Action, Rule};
use http::Version;
use std::path::Path;

/// Spellings of a path that may lead to the same file or page. Each is a target as sent.
fn spellings(path: &str) -> Vec<String> {
    let inner = &path[1..];
    let (directory, name) = inner.rsplit_once('/').map_or(("", inner), |(directory, name)| (directory, name));
    let encoded: String = path.bytes().map(|b| if b == b'/' { "/".to_owned() } else { format!("%{b:02x}") }).collect();
    let swapped: String = path
        .chars()
        .map(|c| if c.is_ascii_lowercase() { c.to_ascii_uppercase() } else { c.to_ascii_lowercase() })
        .collect();
    let ending = name.rsplit_once('.').map_or_else(
        || path.to_owned(),
        |(_, ending)| format!("{}{}", &path[..path.len() - ending.len()], ending.to_uppercase()),
    );
    let mut all =
        vec![path.to_owned(), encoded.clone(), swapped, ending, format!("/%{:02X}{}", path.as_bytes()[1], &path[2..])];
    for behind in [
        "/",
        "//",
        "/x",
        "/x/y.php",
        "/x.txt",
        "/.x",
        "/.well-known/x",
        "/x%20",
        "/x.",
        "%2f",
        "%2Fx",
        "%2f%2e",
        "/.",
        "/./",
        "/x/..",
        "/x/../",
        "/%2e%2e/x",
        ";x",
        ";/x",
        ".",
        "..",
        "%20",
        "%20/",
        "%09",
        "%0a",
        "%00",
        "%00.txt",
        "?x",
        "?/x",
        "%3f",
        "%3fx",
        "%23",
        "#x",
        "~",
        "%5c",
        "\\",
        ";/../x",
        "%c0%af",
        "%c0%ae",
        "%2500",
        "%252f",
        "::$DATA",
        "/index.php",
        "/.php",
        ".php",
        "/index.html",
    ] {
        all.push(format!("{path}{behind}"));
    }
    for before in [
        "/",
        "/.",
        "/./",
        "/%2e",
        "/x/..",
        "/x/%2e%2e",
        "/x%2f..",
        "/;x/..",
        "/x/..;",
        "/index.php",
        "/index.php/",
        "/index.php/.",
        "/INDEX.PHP",
        "/open.php",
        "/rewritten",
        "/tried",
        "/files",
        "/link",
        "/link/..",
        "/linked",
        "http://example.org",
        "http://example.org/.",
    ] {
        all.push(format!("{before}{path}"));
    }
    all.push(format!("/{}", inner.replace('/', "//")));
    all.push(format!("/{}", inner.replace('/', "/./")));
    all.push(format!("/{}", inner.replace('/', "%2f")));
    all.push(format!("/linkdir/{name}"));
    all.push(format!("/linkdir/{name}/x"));
    if ["index.php", "index.html"].contains(&name) || name.is_empty() {
        for form in ["/{}", "/{}/", "/{}//", "/{}/.", "/{}/?x", "/{}/index.php/x", "/{}%2f", "/./{}/"] {
            all.push(form.replace("{}", directory));
        }
    }
    all
}

/// Protections that a rule can set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Guard {
    Access,
    NoPhp,
}

/// A protected path, and its protection.
struct Protected {
    guard: Guard,
    paths: Vec<PathPattern>,
    except: Vec<PathPattern>,
}

impl Protected {
    fn of(rule: &Rule) -> Option<Self> {
        let guard = rule.actions.iter().find_map(|action| match action {
            Action::Allow(_) | Action::Deny(_) | Action::Auth(Some(_)) | Action::Limit(_) => Some(Guard::Access),
            Action::Status(status, _) if status.as_u16() >= 400 => Some(Guard::Access),
            Action::Php(false) => Some(Guard::NoPhp),
            _ => None,
        })?;
        let conditions = &rule.conditions;
        let simple = conditions.header.is_empty() && conditions.query.is_empty() && conditions.client.is_empty();
        let simple = simple && conditions.https.is_none() && rule.not.client.is_empty() && rule.not.method.is_empty();
        let paths = conditions.path.clone();
        (simple && !paths.is_empty()).then(|| Self { guard, paths, except: rule.not.path.clone() })
    }

    fn holds(&self, name: &str) -> bool {
        let fits = |list: &[PathPattern]| list.iter().any(|path| path.matches(name.as_bytes()).unwrap_or(false));
        fits(&self.paths) && !fits(&self.except)
    }

    /// `php = false` applies to files only: a front controller may still respond to the path.
    fn is_breached_by(&self, fate: &AccessOutcome, files: &[String], names: &[String]) -> bool {
        match self.guard {
            Guard::Access => names.iter().any(|name| self.holds(name)),
            Guard::NoPhp => matches!(fate, AccessOutcome::Runs(_)) && files.iter().any(|name| self.holds(name)),
        }
    }
}

/// Requests all paths in all spellings. Returns the number of requests, the number that got a protected file or page,
/// and lines for some of those.
fn breaches(
    world: &TestSite,
    protected: &[Protected],
    paths: &[String],
    methods: &[&str],
    front: Option<&str>,
) -> (usize, usize, String) {
    let (mut asked, mut through, mut lines) = (0, 0, String::new());
    for path in paths {
        for target in spellings(path) {
            for method in methods {
                for version in [Version::HTTP_11, Version::HTTP_2] {
                    let Some(fate) = world.ask(method, "example.org", &target, version) else { continue };
                    asked += 1;
                    let plain = target.trim_start_matches("http://example.org");
                    let (files, names) = (world.names(&fate, plain, None), world.names(&fate, plain, front));

                    if protected.iter().any(|protected| protected.is_breached_by(&fate, &files, &names)) {
                        through += 1;
                        if through < 20 {
                            lines.push_str(&format!("{method} {target}: {fate:?}\n"));
                        }
                    }
                    if let AccessOutcome::Runs(name) | AccessOutcome::Sent(name) = &fate {
                        assert!(!name.ends_with("PHP"), "{method} {target}: {fate:?}");
                    }
                }
            }
        }
    }
    (asked, through, lines)
}

const USERS: &str =
    "auth = { realm = 'r', users = { a = '$2y$05$xZEHREeI1mL1Th6Ky4Ku3.sw.6qzbgb/eK/QUvyOkgzX72r1jvWNW' } }";

/// A site with files of all kinds, links to them, and rewrites to them by rules and `.htaccess` files.
fn site(written: &str, htaccess: bool, front: bool) -> TestSite {
    let files = [
        "/index.php",
        "/open.php",
        "/secret.php",
        "/admin/index.php",
        "/admin/x.php",
        "/admin/x.txt",
        "/admin/.well-known/x",
        "/up/x.php",
        "/up/y.PHP",
        "/up/z.txt",
        "/up/index.php",
        "/docs/index.html",
        "/.htaccess",
    ];
    let files: Vec<String> = files.iter().map(|name| (*name).to_owned()).collect();
    let links = [
        ("link", "."),
        ("linkdir", "admin"),
        ("linked.php", "secret.php"),
        ("linked.txt", "admin/x.txt"),
        ("run.php", "up/z.txt"),
    ];
    let ways = "[[rule]]\npath = '/rewritten/*'\nrewrite = '/$1'\n\
                [[rule]]\npath = '~^/tried(/.*)$'\ntry_files = ['$1', '/open.php']\n";
    let rules = rules(&format!("{written}\n{ways}{written}")).unwrap();
    let world = TestSite::new(&files, &links, |settings| {
        settings.rules = rules;
        settings.htaccess = htaccess;
        settings.front_controller = front.then(|| "index.php".to_owned());
    })
    .unwrap();
    let text = "RewriteEngine on\nRewriteRule ^files/(.*)$ /$1 [L]\nRewriteCond %{REQUEST_FILENAME} !-f\nRewriteRule . /index.php [L]\n\
                ErrorDocument 404 /admin/x.txt\n";
    std::fs::write(world.root().join(".htaccess"), if htaccess { text } else { "" }).unwrap();
    world
}

#[test]
fn protected_files_are_neither_run_nor_sent_in_any_spelling() {
    let paths: Vec<String> = [
        "/secret.php",
        "/admin/index.php",
        "/admin/x.php",
        "/admin/x.txt",
        "/admin/",
        "/admin/virtual",
        "/up/x.php",
        "/up/y.PHP",
        "/up/index.php",
        "/docs/index.html",
    ]
    .map(str::to_owned)
    .into();
    let where_ = "path = ['/secret.php', '/admin/*', '/up/x.php', '/up/index.php', '/docs/index.html']\n";
    let mut asked_in_all = 0;
    for (htaccess, front) in [(false, false), (false, true), (true, false), (true, true)] {
        for action in [
            USERS,
            "allow = '10.0.0.0/8'",
            "deny = true",
            "status = 404",
            "php = false",
            "limit = { rate = '1/h', burst = 0 }",
        ] {
            let world = site(&format!("[[rule]]\n{where_}{action}"), htaccess, front);
            let rules = rules(&format!("[[rule]]\n{where_}{action}")).unwrap();
            let protected: Vec<Protected> = rules.rules().iter().filter_map(Protected::of).collect();
            assert_eq!(protected.len(), 1);
            // Requests for another path of the same rule have used up the limit.
            for _ in 0..2 {
                let _ = world.ask("GET", "example.org", "/secret.php", Version::HTTP_11);
            }
            let front_name = front.then_some("/index.php");
            let (asked, through, lines) = breaches(&world, &protected, &paths, &["GET", "POST"], front_name);
            assert_eq!(through, 0, "{action}, .htaccess {htaccess}, front controller {front}:\n{lines}");
            assert_eq!(
                world.ask("GET", "example.org", "/open.php/x", Version::HTTP_11),
                Some(AccessOutcome::Runs("/open.php".to_owned()))
            );
            asked_in_all += asked;
        }
        // Without the rules the same requests succeed; otherwise the test would prove nothing.
        let rules = rules(&format!("[[rule]]\n{where_}deny = true")).unwrap();
        let protected: Vec<Protected> = rules.rules().iter().filter_map(Protected::of).collect();
        let open = site("[[rule]]\npath = '/none'\ndeny = true", htaccess, front);
        let (_, through, _) = breaches(&open, &protected, &paths, &["GET", "POST"], front.then_some("/index.php"));
        assert!(through > 500, "{through}");
    }
    assert!(asked_in_all > 20_000, "{asked_in_all}");
    println!("{asked_in_all} requests");
}

#[test]
fn a_host_is_the_same_however_it_is_spelled() {
    let world = site("[[rule]]\nhost = ['Admin.Example.org', '[2001:db8:0::1]']\ndeny = true", false, true);
    for (host, refused) in [
        ("admin.example.org", true),
        ("admin.example.org.", true),
        ("ADMIN.example.ORG:80", true),
        ("admin.example.org.:8080", true),
        ("admin.example.org:", true),
        ("[2001:DB8::1]", true),
        ("[2001:db8:0:0:0::1]:80", true),
        ("other.example.org", false),
    ] {
        let expected = if refused { AccessOutcome::Status(403) } else { AccessOutcome::Runs("/open.php".to_owned()) };
        for version in [Version::HTTP_11, Version::HTTP_2, Version::HTTP_3] {
            assert_eq!(world.ask("GET", host, "/open.php", version), Some(expected.clone()), "{host}");
            let target = format!("http://{host}/open.php");
            if version == Version::HTTP_11 {
                assert_eq!(world.ask("GET", "other.example.org", &target, version), Some(expected.clone()), "{target}");
            }
        }
    }
}

/// Sample paths that a pattern matches and that can be created as files.
fn samples(pattern: &PathPattern) -> Vec<String> {
    let text = match pattern {
        PathPattern::Regex(_) => return Vec::new(),
        other => other.text(),
    };
    let made = |with: &str| text.replace('*', with);
    let mut all = match pattern {
        PathPattern::Exact(_) => vec![text.clone()],
        PathPattern::Prefix(_) => [made("x.php"), made("index.php"), made("x.txt"), made("d/x.php")].into(),
        _ => [made("x"), made("x.php"), made("d/x")].into(),
    };
    all.iter_mut().filter(|path| !path.starts_with('/')).for_each(|path| path.insert(0, '/'));
    all.retain(|path| !path.ends_with('/') && !path.contains("//"));
    all
}

/// Checks the rules of a text: every path that they protect, in all spellings, on a site with these files. Returns the
/// number of requests.
fn check(name: &str, written: &str, further: &[&str]) -> Option<usize> {
    // A limit's allowance must not return while the test runs.
    let lines = written
        .lines()
        .map(|line| if line.starts_with("limit = ") { "limit = { rate = '1/h', burst = 0 }" } else { line });
    let written = &*lines.collect::<Vec<_>>().join("\n");
    let rules = rules(written).ok()?;
    let protected: Vec<Protected> = rules.rules().iter().filter_map(Protected::of).collect();
    let mut paths: Vec<String> =
        protected.iter().flat_map(|protected| protected.paths.iter().flat_map(samples)).collect();
    paths.extend(further.iter().map(|path| (*path).to_owned()));
    paths.sort();
    paths.dedup();
    if paths.is_empty() {
        return None;
    }
    // A path that is also the directory of another file cannot be created as a file.
    let files: Vec<String> = paths
        .iter()
        .filter(|path| !paths.iter().any(|other| other.starts_with(&format!("{path}/"))))
        .cloned()
        .collect();
    let front = written.contains("/index.php").then_some("/index.php");
    let files = [files, vec!["/index.php".to_owned(), "/open.php".to_owned()]].concat();
    let world = TestSite::new(&files, &[("link", ".")], |settings| {
        settings.rules = rules;
        settings.static_files.dotfiles = true;
    });
    let world = world.unwrap_or_else(|error| panic!("{name}: {error}"));
    let mut asked_in_all = 0;
    for path in paths.iter().filter(|path| !path.starts_with("/index.php")) {
        // The limits' allowances are used up, and paths that the rules allow under their own names do not count towards
        // them.
        let methods: &[&str] = if written.contains("limit") { &["POST"] } else { &["GET"] };
        let mut last = None;
        for _ in 0..2 {
            last = world.ask(methods[0], "example.org", path, Version::HTTP_11);
        }
        let last = last.unwrap();
        let (files, own) = (world.names(&last, path, None), world.names(&last, path, front));
        let mine: Vec<Protected> =
            rules_of(written).into_iter().filter(|protected| !protected.is_breached_by(&last, &files, &own)).collect();
        let (asked, through, lines) = breaches(&world, &mine, std::slice::from_ref(path), methods, front);
        assert_eq!(through, 0, "{name}, {path}:\n{lines}");
        asked_in_all += asked;
    }
    Some(asked_in_all)
}

fn rules_of(written: &str) -> Vec<Protected> {
    rules(written).unwrap().rules().iter().filter_map(Protected::of).collect()
}

#[test]
fn every_preset_holds_in_every_spelling() {
    let mut asked = 0;
    for name in howdah_rules::presets::NAMES {
        let further: &[&str] = match *name {
            "cacti" => &["/poller.php", "/cmd.php", "/script_server.php"],
            "drupal" => &["/core/x.php", "/modules/d/x.php", "/themes/x.php"],
            "joomla" => &["/components/d/x.php", "/templates/x.php"],
            "nextcloud" => &["/apps/d/x.php"],
            "laravel" | "symfony" => &["/sub/index.php", "/sub/x.php"],
            _ => &[],
        };
        asked += check(name, howdah_rules::presets::text(name).unwrap(), further)
            .unwrap_or_else(|| panic!("{name}: no paths"));
    }
    println!("{asked} requests");
    assert!(asked > 10_000, "{asked}");
}

#[test]
fn every_example_of_the_guides_holds_in_every_spelling() {
    let guides = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide");
    let (mut checked, mut asked) = (Vec::new(), 0);
    for entry in std::fs::read_dir(guides).unwrap().flatten() {
        let text = std::fs::read_to_string(entry.path()).unwrap();
        // Blocks may be indented, as parts of lists.
        let text: String = text.lines().map(|line| format!("{}\n", line.trim_start())).collect();
        for block in text.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next()) {
            for rule in block.split("[[rule]]").skip(1) {
                let rule = rule.split("\n[").next().unwrap_or_default();
                let name = format!("{}: {rule}", entry.file_name().to_string_lossy());
                if let Some(count) = check(&name, &format!("[[rule]]{rule}\n"), &[]) {
                    checked.push(name);
                    asked += count;
                }
            }
        }
    }
    println!("{asked} requests");
    assert!(checked.len() >= 6, "{checked:?}");
    assert!(checked.iter().any(|name| name.starts_with("rules.md") && name.contains("/admin")), "{checked:?}");
}

/// With a front controller, a page needs no file, so a rule that protects it must name the path both with and without
/// everything below it.
#[test]
fn no_example_leaves_the_parent_of_a_protected_path_open() {
    let guides = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide");
    for entry in std::fs::read_dir(guides).unwrap().flatten() {
        let text = std::fs::read_to_string(entry.path()).unwrap();
        let text: String = text.lines().map(|line| format!("{}\n", line.trim_start())).collect();
        for rule in text.split("[[rule]]").skip(1) {
            let rule = rule.split("\n[").next().unwrap_or_default().split("```").next().unwrap_or_default();
            let Ok(rules) = rules(&format!("[[rule]]{rule}\n")) else { continue };
            let own = rules.open_above().filter(|(rule, _)| rule.name.starts_with("rule["));
            let open: Vec<String> = own.map(|(_, path)| path).collect();
            assert!(open.is_empty(), "{}: {open:?} in {rule}", entry.file_name().to_string_lossy());
        }
    }
}
