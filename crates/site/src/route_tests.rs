//! Tests of `route`: the routes of paths, and above all that no path leads to a script's source.

use super::*;
use crate::path_parts::MAX_SCRIPTS;
use crate::sites::Sites;
use howdah_config::Settings;
use howdah_observe::{AccessLogs, Metrics};
use std::os::unix::fs::symlink;

thread_local! {
    /// Number of checks of the file system by this thread.
    pub(super) static LOOKS: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

struct Tree {
    dir: tempfile::TempDir,
    site: Arc<Site>,
}

/// A root `www` with files of all kinds, and files next to it that must not be reachable.
fn tree_with(change: impl FnOnce(&mut Settings)) -> Tree {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("www");
    for folder in ["www/sub", "www/empty", "www/.git", "www/.well-known", "www/app.php", "outside"] {
        std::fs::create_dir_all(dir.path().join(folder)).unwrap();
    }
    for file in [
        "www/a.txt",
        "www/s.php",
        "www/UP.PHP",
        "www/sub/index.php",
        "www/sub/index.html",
        "www/sub/x.css",
        "www/.env",
        "www/.git/config",
        "www/.git/hook.php",
        "www/.well-known/x",
        "www/lib.inc",
        "www/old.php5",
        "www/t.phtml",
        "www/p.phar",
        "www/dot.php.",
        "www/space.php ",
        "www/tilde.php~",
        "www/plain",
        "www/php",
        "www/c d%41.txt",
        "www/app.php/file.txt",
        "outside/secret.txt",
        "outside/evil.php",
    ] {
        std::fs::write(dir.path().join(file), "content").unwrap();
    }
    symlink("s.php", root.join("link.txt")).unwrap();
    symlink("link.txt", root.join("chain.css")).unwrap();
    symlink("a.txt", root.join("named.php")).unwrap();
    symlink("a.txt", root.join("inside.txt")).unwrap();
    symlink("../outside/secret.txt", root.join("escape.txt")).unwrap();
    symlink("../outside/evil.php", root.join("escape.php")).unwrap();
    symlink("../outside", root.join("out")).unwrap();
    symlink("nowhere", root.join("dangling.txt")).unwrap();
    symlink("sub", root.join("subl")).unwrap();
    let mut settings = Settings { root, ..Settings::default() };
    settings.front_controller = None;
    change(&mut settings);
    Tree { dir, site: site_of(settings) }
}

/// The site of settings without a `[[site]]`.
fn site_of(settings: Settings) -> Arc<Site> {
    let budgets = howdah_budget::Budgets::new(1 << 30, 1 << 30);
    let sites = Sites::new(Arc::new(settings), Metrics::new(), &AccessLogs::default(), budgets).unwrap();
    sites.all()[0].clone()
}

fn tree() -> Tree {
    tree_with(|_| ())
}

impl Tree {
    /// The outcome in short: `script NAME+INFO`, `file NAME`, `slash PATH`, or a word.
    fn route(&self, path: &str) -> String {
        match resolve(&self.site, path.as_bytes(), &Lookup::default(), None).0 {
            Route::Script(script) => {
                let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                let root = self.site.root.display().to_string();
                assert_eq!(text(&script.filename), format!("{root}{}", text(&script.name)));
                format!("script {}+{}", text(&script.name), text(&script.path_info))
            }
            Route::File(file) => {
                assert!(!self.site.withheld.by_name(file.path.as_os_str().as_bytes()), "{path}");
                assert_eq!(std::fs::canonicalize(&file.path).unwrap(), file.path);
                format!("file {}", String::from_utf8_lossy(&file.name))
            }
            Route::AddSlash(to) => format!("slash {to}"),
            Route::Listing(path) => format!("listing {}", path.display()),
            Route::NotFound => "404".to_owned(),
            Route::Forbidden => "403".to_owned(),
            Route::Unknown => "503".to_owned(),
            Route::Invalid(_) => "400".to_owned(),
        }
    }

    fn check(&self, cases: &[(&str, &str)]) {
        for (path, expected) in cases {
            assert_eq!(self.route(path), *expected, "{path}");
        }
    }
}

#[test]
fn files_scripts_and_directories() {
    tree().check(&[
        ("/a.txt", "file /a.txt"),
        ("/plain", "file /plain"),
        ("/php", "file /php"),
        ("/lib.inc", "403"),
        ("/c%20d%2541.txt", "file /c d%41.txt"),
        ("/s.php", "script /s.php+"),
        ("/UP.PHP", "403"),
        ("/sub/", "script /sub/index.php+"),
        ("/sub", "slash /sub/"),
        ("/subl", "slash /subl/"),
        ("/sub/x.css", "file /sub/x.css"),
        ("/empty/", "404"),
        ("/empty", "404"),
        ("/", "404"),
        ("/none", "404"),
        ("/a.txt/", "404"),
        ("/a.txt/x", "404"),
    ]);
}

#[test]
fn the_script_is_split_from_path_info_at_the_first_that_exists() {
    tree().check(&[
        ("/s.php/a/b", "script /s.php+/a/b"),
        ("/s.php/", "script /s.php+/"),
        ("/s.php/x.php", "script /s.php+/x.php"),
        ("/s.php/x.php/y", "script /s.php+/x.php/y"),
        ("/no.php/s.php/x", "404"),
        ("/a.txt/s.php", "404"),
        ("/a.txt/x.php/y", "404"),
        ("/UP.PHP/i", "404"),
        ("/s.PHP/i", "404"),
        // A directory may have a name like a script.
        ("/app.php/file.txt", "file /app.php/file.txt"),
        ("/app.php/none", "404"),
        // Only ASCII letters are compared without case.
        ("/s.p\u{212A}hp/x", "404"),
        ("/sub/index.php/p%20q", "script /sub/index.php+/p q"),
    ]);
}

/// Names after a script belong to the application: WebDAV, Git and ACME use names that files of a site must not have.
#[test]
fn path_info_is_not_checked_for_source_names() {
    let cases: Vec<(String, String)> = [
        "/dav/files/anna/.obsidian/app.json",
        "/.file",
        "/.git/config",
        "/a/.../b",
        "/.well-known/acme-challenge/x",
        "/howdah.toml",
        "/x.php.bak",
        "/X.PHP",
        "/a. /b.",
        "/a /",
    ]
    .iter()
    .map(|info| (format!("/s.php{}", info.replace(' ', "%20")), format!("script /s.php+{info}")))
    .collect();
    let cases: Vec<(&str, &str)> = cases.iter().map(|(path, expected)| (&**path, &**expected)).collect();
    tree().check(&cases);
    tree_with(|settings| settings.front_controller = Some("sub/index.php".to_owned())).check(&cases);
    let tree = tree();
    for (path, expected) in &cases {
        let path = decode(path.as_bytes()).unwrap();
        let Route::Script(script) = resolve_settled(&tree.site, &path, None, &Lookup::default()) else {
            panic!("{path:?}")
        };
        assert_eq!(format!("script /s.php+{}", String::from_utf8_lossy(&script.path_info)), *expected);
    }
    // Before a script they hide what is below them, and a path as a whole is decoded and normalised.
    tree.check(&[
        ("/.git/hook.php/x", "404"),
        ("/s.php/a/../b", "script /s.php+/b"),
        ("/s.php/../.env", "404"),
        ("/s.php//a%2fb", "script /s.php+/a/b"),
        ("/s.php/a%00", "400"),
    ]);
}

/// A misspelled extension never runs, not even if a `.htaccess` file makes all files scripts.
#[test]
fn other_spellings_of_a_scripts_ending_are_neither_run_nor_sent() {
    let tree = tree();
    for path in ["/UP.PHP", "/dot.php.", "/space.php ", "/tilde.php~"] {
        for php in [None, Some(true), Some(false)] {
            assert_eq!(
                resolve_settled(&tree.site, path.as_bytes(), php, &Lookup::default()),
                Route::Forbidden,
                "{path} {php:?}"
            );
        }
    }
    assert!(matches!(resolve_settled(&tree.site, b"/t.phtml", Some(true), &Lookup::default()), Route::Script(_)));
}

#[test]
fn the_target_of_a_link_below_the_root_is_known_by_its_path() {
    let real = |tree: &Tree, path: &str| match resolve(&tree.site, path.as_bytes(), &Lookup::default(), None).0 {
        Route::Script(script) => script.real,
        Route::File(file) => file.real,
        other => panic!("{path}: {other:?}"),
    };
    for policy in [Symlinks::Inside, Symlinks::Always] {
        let tree =
            tree_with(|settings| settings.static_files.follow_symlinks = howdah_config::LinkPolicy::from(policy));
        for (path, expected) in [
            ("/a.txt", None),
            ("/inside.txt", Some("/a.txt")),
            ("/subl/x.css", Some("/sub/x.css")),
            ("/s.php/i", None),
            ("/named.php", Some("/a.txt")),
        ] {
            assert_eq!(real(&tree, path).as_deref(), expected.map(str::as_bytes), "{path} {policy:?}");
        }
    }
}

#[test]
fn source_is_never_sent() {
    tree().check(&[
        ("/s.php", "script /s.php+"),
        ("/s%2ephp", "script /s.php+"),
        ("/s%2Ephp", "script /s.php+"),
        ("/%73.php", "script /s.php+"),
        ("/s.php%2f", "script /s.php+/"),
        ("/s%252ephp", "404"),
        ("/S.PHP", "404"),
        ("/s.php.", "404"),
        ("/s.php%20", "404"),
        ("/s.php%00", "400"),
        ("/s.php%00.txt", "400"),
        ("/s.php%0a", "404"),
        ("/s.php::$DATA", "404"),
        ("/s.php%5c", "404"),
        ("/s.php;", "404"),
        ("//s.php", "script /s.php+"),
        ("/./s.php", "script /s.php+"),
        ("/sub/../s.php", "script /s.php+"),
        ("/s.php/.", "script /s.php+/"),
        ("/s.php/..", "404"),
        // Files with exactly these names exist.
        ("/dot.php.", "403"),
        ("/space.php%20", "403"),
        ("/tilde.php~", "403"),
        ("/old.php5", "403"),
        ("/t.phtml", "403"),
        ("/p.phar", "403"),
        // Other names for a script.
        ("/link.txt", "403"),
        ("/chain.css", "403"),
        // A script by its name is run, never sent, whatever it leads to.
        ("/named.php", "script /named.php+"),
    ]);
}

#[test]
fn paths_cannot_leave_the_root() {
    tree().check(&[
        ("/../outside/secret.txt", "400"),
        ("/..", "400"),
        ("/sub/../../outside/secret.txt", "400"),
        ("/%2e%2e/outside/secret.txt", "400"),
        ("/..%2foutside/secret.txt", "400"),
        ("/sub/..", "404"),
        ("/sub/../sub/x.css", "file /sub/x.css"),
        ("/.../x", "404"),
        ("/%2e%2e%5coutside", "404"),
        ("relative", "400"),
        ("", "400"),
        ("/%", "400"),
        ("/%4", "400"),
        ("/%g1", "400"),
    ]);
}

#[test]
fn symbolic_links_follow_the_setting() {
    let links =
        |policy| tree_with(|settings| settings.static_files.follow_symlinks = howdah_config::LinkPolicy::from(policy));
    links(Symlinks::Inside).check(&[
        ("/inside.txt", "file /inside.txt"),
        ("/escape.txt", "404"),
        ("/escape.php", "404"),
        ("/out/secret.txt", "404"),
        ("/out/evil.php", "404"),
        ("/dangling.txt", "404"),
        ("/subl/x.css", "file /subl/x.css"),
    ]);
    links(Symlinks::Always).check(&[
        ("/escape.txt", "file /escape.txt"),
        ("/out/secret.txt", "file /out/secret.txt"),
        ("/escape.php", "script /escape.php+"),
        ("/link.txt", "403"),
    ]);
    links(Symlinks::Never).check(&[
        ("/inside.txt", "404"),
        ("/subl/x.css", "404"),
        ("/link.txt", "404"),
        ("/a.txt", "file /a.txt"),
        ("/named.php", "404"),
    ]);
}

#[test]
fn the_root_may_be_a_link_that_moves() {
    let mut tree = tree();
    let link = tree.dir.path().join("current");
    symlink("www", &link).unwrap();
    let settings = Settings { root: link.clone(), front_controller: None, ..Settings::default() };
    tree.site = site_of(settings);
    tree.check(&[("/a.txt", "file /a.txt"), ("/s.php", "script /s.php+"), ("/new.txt", "404")]);
    std::fs::create_dir(tree.dir.path().join("next")).unwrap();
    std::fs::write(tree.dir.path().join("next/new.txt"), "").unwrap();
    std::fs::remove_file(&link).unwrap();
    symlink("next", &link).unwrap();
    tree.check(&[("/a.txt", "404"), ("/new.txt", "file /new.txt")]);
}

#[test]
fn dotfiles_are_hidden_unless_allowed() {
    tree().check(&[
        ("/.env", "404"),
        ("/%2eenv", "404"),
        ("/.git/config", "404"),
        ("/.git/hook.php", "404"),
        ("/.git/hook.php/x", "404"),
        ("/sub/.hidden.php/x", "404"),
        ("/.well-known/x", "file /.well-known/x"),
        ("/sub/.well-known/x", "404"),
    ]);
    let open = tree_with(|settings| settings.static_files.dotfiles = true);
    open.check(&[
        ("/.env", "403"),
        ("/.git/config", "file /.git/config"),
        ("/.git/hook.php", "script /.git/hook.php+"),
    ]);
}

#[test]
fn the_front_controller_takes_the_rest() {
    let tree = tree_with(|settings| settings.front_controller = Some("s.php".to_owned()));
    tree.check(&[
        ("/none", "script /s.php+"),
        ("/none.php", "script /s.php+"),
        ("/none.php/x", "script /s.php+"),
        ("/", "script /s.php+"),
        ("/empty/", "script /s.php+"),
        ("/.env", "script /s.php+"),
        ("/escape.txt", "404"),
        ("/a.txt", "file /a.txt"),
        ("/t.phtml", "403"),
        ("/%00", "400"),
    ]);
    let gone = tree_with(|settings| settings.front_controller = Some("gone.php".to_owned()));
    gone.check(&[("/none", "404")]);
}

#[test]
fn only_regular_files_count() {
    let tree = tree();
    for name in ["fifo", "fifo.php"] {
        let path = tree.site.root.join(name);
        rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR, 0).unwrap();
    }
    tree.check(&[("/fifo", "404"), ("/fifo.php", "404"), ("/fifo.php/x", "404")]);
}

#[test]
fn a_redirect_stays_on_this_server() {
    let tree = tree();
    std::fs::create_dir_all(tree.site.root.join("evil.example/a b")).unwrap();
    std::fs::write(tree.site.root.join("evil.example/a b/index.html"), "").unwrap();
    tree.check(&[
        ("//evil.example/a%20b", "slash /evil.example/a%20b/"),
        ("/evil.example//a%20b", "slash /evil.example/a%20b/"),
    ]);
    assert_eq!(encode("/\\é\"<?#%".as_bytes()), "/%5C%C3%A9%22%3C%3F%23%25");
}

#[test]
fn routes_are_cached_briefly_and_absence_is_rechecked() {
    let tree = tree();
    let mut cache = RouteCache::default();
    let start = Instant::now();
    let later = start + RECHECK_INTERVAL;
    let script = cache.resolve(&tree.site, b"/s.php", &Lookup::default(), start);
    std::fs::remove_file(tree.site.root.join("s.php")).unwrap();
    assert!(Arc::ptr_eq(&script, &cache.resolve(&tree.site, b"/s.php", &Lookup::default(), start)));
    assert_eq!(*cache.resolve(&tree.site, b"/s.php", &Lookup::default(), later), Route::NotFound);
    std::fs::write(tree.site.root.join("s.php"), "").unwrap();
    assert!(matches!(*cache.resolve(&tree.site, b"/s.php", &Lookup::default(), later), Route::Script(_)));
    assert_eq!(*cache.resolve(&tree.site, b"/made.txt", &Lookup::default(), start), Route::NotFound);
    std::fs::write(tree.site.root.join("made.txt"), "").unwrap();
    assert!(matches!(*cache.resolve(&tree.site, b"/made.txt", &Lookup::default(), start), Route::File(_)));
    for i in 0..2 * MAX_CACHED {
        cache.resolve(&tree.site, format!("/{i}").as_bytes(), &Lookup::default(), start);
    }
    assert!(cache.count <= MAX_CACHED && cache.sites[0].kept.len() == cache.count);
}

#[test]
fn routes_chosen_by_htaccess_files_are_cached_by_path_and_php_settings() {
    let tree = tree();
    let mut cache = RouteCache::default();
    let (start, lookup) = (Instant::now(), Lookup::default());
    assert_eq!(*cache.resolve(&tree.site, b"/t.phtml", &lookup, start), Route::Forbidden);
    let mut settled = |php, now| cache.settled(&tree.site, b"/t.phtml", php, &lookup, now);
    let (source, script) = (settled(None, start), settled(Some(true), start));
    assert!(matches!((&*source, &*script), (Route::Forbidden, Route::Script(_))), "{source:?} {script:?}");
    let looks = LOOKS.get();
    assert!(Arc::ptr_eq(&source, &settled(None, start)) && Arc::ptr_eq(&script, &settled(Some(true), start)));
    assert_eq!(LOOKS.get(), looks);
    std::fs::remove_file(tree.site.root.join("t.phtml")).unwrap();
    assert_eq!(*settled(Some(true), start + RECHECK_INTERVAL), Route::NotFound);
}

#[test]
fn normalised_paths_are_plain() {
    let pieces =
        ["/", ".", "..", "%2e", "%2F", "a", "%", "%00", "\\", ".php", "%2e%2e", "%252e", "//", "\u{e9}", "%ff", "~"];
    let mut random = 1_u64;
    let mut accepted = 0;
    for _ in 0..20_000 {
        let mut raw = String::from("/");
        for _ in 0..8 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            raw.push_str(pieces[(random >> 33) as usize % pieces.len()]);
        }
        let Ok(path) = decode(raw.as_bytes()).and_then(|decoded| normalise(&decoded)) else { continue };
        accepted += 1;
        assert_eq!(path[0], b'/', "{raw}");
        assert!(!path.contains(&0), "{raw}");
        let inner = path[1..].strip_suffix(b"/").unwrap_or(&path[1..]);
        if !inner.is_empty() {
            for segment in inner.split(|&b| b == b'/') {
                assert!(!matches!(segment, b"" | b"." | b".."), "{raw}");
            }
        }
        let again = normalise(&path).unwrap();
        assert_eq!(again, path, "{raw}");
        assert_eq!(decode(encode(&path).as_bytes()).unwrap(), path, "{raw}");
    }
    assert!(accepted > 1000);
}

/// Number of checks of the file system for a path.
fn looks(tree: &Tree, path: &str) -> usize {
    LOOKS.set(0);
    let _ = resolve(&tree.site, path.as_bytes(), &Lookup::default(), None);
    LOOKS.get()
}

#[test]
fn a_long_path_costs_no_more_file_system_calls_than_a_short_one() {
    let tree = tree_with(|settings| settings.front_controller = Some("s.php".to_owned()));
    let short = looks(&tree, "/no.php/x");
    for size in [16_000, 64_000] {
        for unit in [
            "/x.php",
            "/.php",
            "/a.txt/x.php",
            "/app.php",
            "/s.php",
            "/sub",
            "/%2e%2e/x.php",
            "/x.PhP",
            "//x.php",
            "/./x.php",
            "/x.php%2f",
            "/subl",
            "/../x.php",
            "/empty/../app.php",
        ] {
            for start in ["", "/sub", "/app.php", "/a.txt", "/s.php", "/x.php", "/subl", "/out"] {
                for end in ["", "/", "/x", ".php"] {
                    let path = format!("{start}{}{end}", unit.repeat(size / unit.len()));
                    let cost = looks(&tree, &path);
                    assert!(cost <= short + 3, "{cost} lookups: {start}{unit}…{end}");
                }
            }
        }
    }
}

#[test]
fn directories_named_like_scripts_are_searched_up_to_a_limit() {
    let tree = tree();
    let chain = |n: usize| "/d.php".repeat(n);
    std::fs::create_dir_all(tree.site.root.join(&chain(400)[1..])).unwrap();
    for n in [MAX_SCRIPTS - 1, 100, 400] {
        std::fs::write(tree.site.root.join(&format!("{}/s.php", chain(n))[1..]), "").unwrap();
        let expected = if n < MAX_SCRIPTS { format!("script {}/s.php+/info", chain(n)) } else { "404".to_owned() };
        assert_eq!(tree.route(&format!("{}/s.php/info", chain(n))), expected, "{n}");
        assert!(looks(&tree, &format!("{}/s.php/info", chain(n))) <= MAX_SCRIPTS + 2, "{n}");
        assert_eq!(tree.route(&format!("{}/s.php", chain(n))), format!("script {}/s.php+", chain(n)), "{n}");
    }
}

#[test]
fn a_forgotten_route_is_resolved_again() {
    let tree = tree();
    let mut cache = RouteCache::default();
    let now = Instant::now();
    assert!(matches!(*cache.resolve(&tree.site, b"/a.txt", &Lookup::default(), now), Route::File(_)));
    std::fs::remove_file(tree.site.root.join("a.txt")).unwrap();
    cache.forget(&tree.site, b"/a.txt", &Lookup::default());
    assert_eq!(*cache.resolve(&tree.site, b"/a.txt", &Lookup::default(), now), Route::NotFound);
}

#[test]
fn a_path_that_no_file_can_have_may_still_be_a_script_with_path_info() {
    let info = "/x".repeat(4000);
    tree().check(&[(&format!("/s.php{info}"), &format!("script /s.php+{info}")), (&format!("/none.php{info}"), "404")]);
}
