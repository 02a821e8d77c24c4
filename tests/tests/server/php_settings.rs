//! Sources of PHP's settings; and that all workers share one OPcache.

use howdah_tests::process::{PATIENCE, eventually};
use howdah_tests::{Request, Setup, Site, php, scenario, script_scenario};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

script_scenario!(
    ini_settings_of_the_command_line_win,
    |s| {
        s.ini("memory_limit", "77M")
            .ini("date.timezone", "Europe/Vienna")
            .ini("error_reporting", "E_ALL & ~E_NOTICE")
            .ini("user_agent", "\"a = b; c\"")
            .ini("short_open_tag", "off")
            .ini("arg_separator.output", "&amp;")
            .php("i.php", php!("php_settings/ini_settings_of_the_command_line_win.php"))
    },
    |site| {
        let seen = site.get("/i.php").expect(200).json();
        assert_eq!(seen, serde_json::json!(["77M", "Europe/Vienna", true, "a = b; c", "", "&amp;"]));
    },
);

script_scenario!(
    ini_settings_of_the_configuration_file_work,
    howdah_only = "howdah.toml is Howdah's",
    |s| s.setting("php.ini", "{ memory_limit = \"55M\", display_errors = false, precision = 7 }").php(
        "i.php",
        "echo json_encode([ini_get('memory_limit'), (bool) ini_get('display_errors'), ini_get('precision')]);"
    ),
    |site| assert_eq!(site.get_ok("/i.php"), r#"["55M",false,"7"]"#),
);

// Regression: each of these once cut off all settings after it.
script_scenario!(
    settings_reach_php_whole_whatever_they_hold,
    howdah_only = "howdah.toml is Howdah's",
    |s| {
        s.setting(
            "php.ini",
            concat!(
                r#"{ "arg_separator.output" = "tcp://h?a=1&b=2", docref_root = "'half", "#,
                r#"error_append_string = "it's \"so\"\n${HOME} \\", error_prepend_string = "a = b; c", "#,
                r#"precision = 7, "zlib.output_compression_level" = 3 }"#
            ),
        )
        .setting("php.admin_ini", r#"{ "session.save_path" = "2;/tmp=x", user_agent = "${PATH}\n[x]" }"#)
        .php("i.php", php!("php_settings/settings_reach_php_whole_whatever_they_hold.php"))
    },
    |site| {
        let seen = site.get("/i.php").expect(200).json();
        let expected = serde_json::json!([
            "tcp://h?a=1&b=2",
            "'half",
            "it's \"so\"\n${HOME} \\",
            "a = b; c",
            "7",
            "3",
            "2;/tmp=x",
            "${PATH}\n[x]"
        ]);
        assert_eq!(seen, expected);
    },
);

script_scenario!(
    extensions_and_php_ini_are_debians,
    |s| { s.php("e.php", php!("php_settings/extensions_and_php_ini_are_debians.php")) },
    |site| {
        let seen = site.get("/e.php").expect(200).json();
        assert!(seen[0].as_str().is_some_and(|p| p.starts_with("/etc/php/") && p.ends_with("/php.ini")), "{seen}");
        for i in 1..5 {
            assert_eq!(seen[i], true, "{seen}");
        }
    },
);

script_scenario!(
    user_ini_files_count_for_their_directory,
    not_worker = "they apply when a script starts, and a worker script starts once",
    |s| s
        .never_behind_nginx("nginx sends the files themselves")
        .file(".user.ini", "precision = 5\nupload_max_filesize = 3M\n")
        .file("sub/.user.ini", "precision = 6\n")
        .php("a.php", "echo ini_get('precision'), ini_get('upload_max_filesize');")
        .php("sub/a.php", "echo ini_get('precision'), ini_get('upload_max_filesize');"),
    |site| {
        for _ in 0..3 {
            assert_eq!(site.get_ok("/a.php"), "53M");
            assert_eq!(site.get_ok("/sub/a.php"), "63M");
        }
        assert_eq!(site.get_ok("/sub/a.php/info"), "63M");
        let shown = site.get("/.user.ini");
        assert!(site.is_reference() || shown.status == 404 || shown.status == 403, "{}", shown.status);
    },
);

script_scenario!(
    the_pools_environment_reaches_scripts,
    |s| {
        s.env("APP_ENV", "testing")
            .env("APP_TEXT", "a b=c")
            .workers(1)
            .php("e.php", php!("php_settings/the_pools_environment_reaches_scripts.php"))
    },
    |site| {
        assert_eq!(site.get_ok("/e.php"), r#"["testing","testing","a b=c",true]"#);
        // The effect of putenv() persists in a worker, like all state of the process.
        let then = if site.keeps_state() { "changed" } else { "testing" };
        for _ in 0..2 {
            assert_eq!(site.get_ok("/e.php"), format!(r#"["{then}","{then}","a b=c",true]"#));
        }
    },
);

script_scenario!(
    request_variables_are_in_getenv_too,
    |s| {
        s.never_behind_nginx("its variables are nginx's, the script's name among them")
            .php("e.php", php!("php_settings/request_variables_are_in_getenv_too.php"))
    },
    |site| {
        let seen = site.send(&Request::get("/e.php?q=1").header("X-A", "b")).expect(200).json();
        // The request's script in a worker pool is the one that loops, whichever files it includes.
        let script = if site.keeps_state() { "/worker.php" } else { "/e.php" };
        assert_eq!(seen, serde_json::json!(["GET", "q=1", "b", script]));
    },
);

fn with_default_opcache(setup: Setup) -> Setup {
    setup.ini("opcache.enable", "1").ini("opcache.validate_timestamps", "1").ini("opcache.revalidate_freq", "0")
}

fn with_opcache(setup: Setup) -> Setup {
    with_default_opcache(setup)
        .ini("opcache.file_update_protection", "0")
        .php("o.php", php!("php_settings/with_opcache.php"))
}

script_scenario!(
    opcache_is_on_and_shared_by_all_workers,
    |s| with_opcache(s).workers(4).php("shared.php", "echo getmypid();"),
    |site| {
        assert!(!site.get_ok("/shared.php").is_empty());
        let site = &*site;
        let mut workers = std::collections::BTreeSet::new();
        for _ in 0..50 {
            // Several concurrent requests, none so short that it is queued behind another one: more than one worker
            // responds.
            let answers: Vec<_> = std::thread::scope(|scope| {
                let asks: Vec<_> = (0..4).map(|_| scope.spawn(|| site.get("/o.php").expect(200).json())).collect();
                asks.into_iter().map(|a| a.join().unwrap()).collect()
            });
            for seen in answers {
                assert_eq!(seen[0], true, "OPcache is on: {seen}");
                assert_eq!(seen[1], true, "all workers have code that one compiled: {seen}");
                workers.insert(seen[2].to_string());
            }
            if workers.len() > 1 {
                return;
            }
        }
        panic!("only one worker responded");
    },
);

script_scenario!(
    a_changed_script_is_seen,
    not_worker = "code stays as it was loaded until a reload",
    |s| with_opcache(s).php("v.php", "echo 'old';"),
    |site| {
        for _ in 0..4 {
            assert_eq!(site.get_ok("/v.php"), "old");
        }
        howdah_tests::site::replace_file(&site.file("v.php"), "<?php echo 'new';");
        let file = std::fs::File::options().write(true).open(site.file("v.php")).unwrap();
        file.set_modified(SystemTime::now() - Duration::from_secs(100)).unwrap();
        for _ in 0..4 {
            assert_eq!(site.get_ok("/v.php"), "new");
        }
    },
);

/// Files that scripts include, as applications do with their settings.
fn with_young_files(setup: Setup) -> Setup {
    with_default_opcache(setup)
        .workers(2)
        .php("said.php", "echo include 'words.php'; echo (int) opcache_is_script_cached(__DIR__ . '/words.php');")
}

/// OPcache compares whole seconds: if it caches a file that has just changed, another change in the same second is
/// hidden.
fn sees_each_of_two_changes_in_a_second(site: &Site) {
    let file = site.file("words.php");
    let second = SystemTime::now() + Duration::from_secs(60);
    for n in 0..4 {
        std::fs::write(&file, format!("<?php return 'words {n} ';")).unwrap();
        std::fs::File::options().write(true).open(&file).unwrap().set_modified(second).unwrap();
        for _ in 0..4 {
            assert_eq!(site.get_ok("/said.php"), format!("words {n} 0"));
        }
    }
}

script_scenario!(a_file_that_changes_twice_in_a_second_is_seen_each_time, with_young_files, |site| {
    sees_each_of_two_changes_in_a_second(site)
},);

script_scenario!(a_file_that_was_written_since_the_boot_is_cached_once_it_is_old_enough, with_young_files, |site| {
    std::fs::write(site.file("words.php"), "<?php return 'words ';").unwrap();
    let cached = eventually(PATIENCE, || site.get_ok("/said.php") == "words 1");
    assert!(cached, "{}", site.get_ok("/said.php"));
},);

script_scenario!(
    opcache_reset_is_harmless,
    |s| with_opcache(s)
        .workers(3)
        .php("reset.php", "opcache_reset(); echo 'reset';")
        .php("a.php", "require_once 'b.php'; echo b();")
        .library("b.php", "function b() { return 'b'; }"),
    |site| {
        let site = &*site;
        std::thread::scope(|scope| {
            for thread in 0..3 {
                scope.spawn(move || {
                    for n in 0..40 {
                        if thread == 0 && n % 10 == 0 {
                            assert_eq!(site.get_ok("/reset.php"), "reset");
                        }
                        assert_eq!(site.get_ok("/a.php"), "b");
                    }
                });
            }
        });
    },
);

// Workers keep OPcache's lock between requests (shim/sapi/opcache_lock.c).
scenario!(
    opcache_restarts_under_load_and_at_rest,
    |s| with_opcache(s)
        .workers(3)
        .php("reset.php", "opcache_reset(); echo 'reset';")
        .php("restarts.php", "echo opcache_get_status(false)['opcache_statistics']['manual_restarts'] ?? 'none';")
        .php("a.php", "echo 'a';"),
    |site| {
        let (site, stop) = (&*site, &AtomicBool::new(false));
        let restarts = |number| eventually(PATIENCE, || site.get_ok("/restarts.php") == number);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(move || {
                    while !stop.load(Ordering::Relaxed) {
                        assert_eq!(site.get_ok("/a.php"), "a");
                    }
                });
            }
            let reset = site.get("/reset.php");
            let restarted = reset.status == 200 && restarts("1");
            stop.store(true, Ordering::Relaxed);
            assert!(restarted, "no restart while all workers have requests");
        });
        assert_eq!(site.get_ok("/reset.php"), "reset");
        assert!(restarts("2"), "no restart while the other workers are idle");
    },
);

script_scenario!(
    admin_settings_are_the_administrators,
    howdah_only = "PHP-FPM has them in its pool's configuration",
    |s| {
        s.setting("php.ini", "{ precision = 4, memory_limit = \"50M\" }")
            .setting(
                "php.admin_ini",
                "{ precision = 7, max_execution_time = 33, open_basedir = \"..:/tmp:/dev\", no_such_setting = 1 }",
            )
            .file(".user.ini", "precision = 5\nmax_execution_time = 5\n")
            .allow_log("admin_ini: PHP has no setting")
            .php("a.php", php!("php_settings/admin_settings_are_the_administrators.php"))
    },
    |site| {
        for _ in 0..3 {
            let seen = site.get("/a.php").expect(200).json();
            let expected = serde_json::json!(["7", false, "7", "33", false, "50M", "51M", "0.3333333", 4, false]);
            assert_eq!(seen, expected);
        }
        let _ = site.wait_for_log(&["admin_ini: PHP has no setting \"no_such_setting\""]);
    },
);

script_scenario!(
    each_pool_has_its_own_admin_settings,
    howdah_only = "PHP-FPM has them in its pools' configuration",
    not_worker = "the scenario's script is the default pool's",
    not_snapshot = "the scenario's script is the default pool's",
    |s| s
        .more_processes(2)
        .setting("php.admin_ini", "{ precision = 7 }")
        .setting("pool.own.workers", "1")
        .setting("pool.own.admin_ini", "{ serialize_precision = 5 }")
        .setting("rule", r#"[{ path = "/own/*", pool = "own" }]"#)
        .php("a.php", "echo json_encode([ini_set('precision', 3), ini_set('serialize_precision', 4) !== false]);")
        .php("own/a.php", "echo json_encode([ini_set('precision', 3), ini_set('serialize_precision', 4) !== false]);"),
    |site| {
        assert_eq!(site.get_ok("/a.php"), "[false,true]");
        assert_eq!(site.get_ok("/own/a.php"), "[false,false]");
    },
);
