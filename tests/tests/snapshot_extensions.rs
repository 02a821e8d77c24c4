//! Snapshot mode with what extends PHP: the JIT compiler, preloading, APCu, Xdebug, extensions with threads.

use crate::snapshot_difference::equal_to_classic_mode;
use howdah_tests::process::{PATIENCE, eventually};
use howdah_tests::{Kind, Request, Setup, Site, run};
use std::path::{Path, PathBuf};

const REQUESTS: usize = 300;

#[test]
fn the_jit_compiler_leaves_no_trace() {
    equal_to_classic_mode("/leaks/request.php", ("boot", "application"), REQUESTS, |s| {
        s.ini("opcache.jit", "tracing").ini("opcache.jit_buffer_size", "32M").ini("opcache.jit_hot_func", "2")
    });
}

#[test]
fn preloaded_classes_are_as_preloaded_in_each_request() {
    equal_to_classic_mode("/leaks/request.php", ("boot", "application"), REQUESTS, |s| {
        let root = rustix::process::geteuid().is_root();
        let s = if root { s.ini("opcache.preload_user", "root") } else { s };
        s.ini("opcache.preload", "@ROOT@/leaks/late.php")
    });
}

fn booted(setup: Setup, code: &str) -> Setup {
    setup
        .workers(1)
        .ini("opcache.file_update_protection", "0")
        .setting("mode", "\"snapshot\"")
        .setting("boot", "\"../root/boot.php\"")
        .file("boot.php", format!("<?php\n{code}\n"))
}

fn script(setup: Setup, path: &str, code: &str) -> Setup {
    setup.file(path, format!("<?php\n{code}\n"))
}

/// An extension that is loaded for the test alone: `make test` unpacks its package. None where PHP loads it anyway.
fn extension(name: &str) -> Option<PathBuf> {
    let configured = std::fs::read_dir("/etc/php").into_iter().flatten().flatten().any(|version| {
        let list = std::fs::read_dir(version.path().join("embed/conf.d")).into_iter().flatten().flatten();
        list.into_iter().any(|file| file.file_name().to_string_lossy().contains(name))
    });
    let directory = std::env::var_os("HOWDAH_EXTENSIONS").map(PathBuf::from);
    (!configured).then(|| directory.unwrap_or_else(|| Path::new("/usr/lib/php").to_owned()).join(format!("{name}.so")))
}

pub(crate) fn with_extension(setup: Setup, name: &str, key: &str) -> Setup {
    match extension(name) {
        Some(path) => setup.ini(key, &path.display().to_string()),
        None => setup,
    }
}

/// With the debugger, and without the JIT compiler: where that is not disabled, PHP warns of the two together.
pub(crate) fn with_xdebug(setup: Setup) -> Setup {
    with_extension(setup, "xdebug", "zend_extension").ini("opcache.jit", "disable")
}

/// True if this machine has the extension; says so if not.
pub(crate) fn there(name: &str) -> bool {
    let there = extension(name).is_none_or(|path| path.exists());
    if !there {
        eprintln!("not run: {name} is not here, `make test` unpacks its package where the distribution has one");
    }
    there
}

#[test]
fn apcu_keeps_what_requests_store() {
    if !there("apcu") {
        return;
    }
    run(
        Kind::Classic,
        |s| {
            let s = with_extension(s, "apcu", "extension").ini("apc.enabled", "1");
            let s = booted(s, "apcu_store('boot', ['made' => 'at boot']); $n = 0;");
            script(
                s.workers(2),
                "index.php",
                "echo apcu_inc('n'), ' ', ++$n, ' ', json_encode(apcu_fetch('boot')), strlen(apcu_fetch('big') ?: ''); apcu_store('big', str_repeat('x', 70000)); if (apcu_fetch('n') % 5 === 0) { apcu_delete('gone'); apcu_store('gone', range(1, 1000)); }",
            )
        },
        |site| {
            let mut conn = site.conn();
            let first: usize = site.get_ok("/").split(' ').next().unwrap().parse().unwrap();
            for n in 1..=2000 {
                let answer = conn.exchange(&Request::get("/")).expect(200).text();
                assert_eq!(answer, format!("{} 1 {{\"made\":\"at boot\"}}70000", first + n));
            }
        },
    );
}

fn pid(site: &Site) -> String {
    site.get_ok("/pid.php")
}

#[test]
fn xdebug_develops_covers_and_traces() {
    if !there("xdebug") {
        return;
    }
    run(
        Kind::Classic,
        |s| {
            let s = with_xdebug(s);
            let s = booted(
                s.ini("xdebug.mode", "develop,coverage"),
                "class C { static $n = 0; } function f($x) { return $x + C::$n++; }",
            );
            let s = script(s, "pid.php", "echo getmypid();");
            script(
                s,
                "index.php",
                "xdebug_start_code_coverage(); for ($i = 0; $i < 50; $i++) { f($i); } $c = xdebug_get_code_coverage(); echo C::$n, ' ', count($c[__DIR__ . '/boot.php'] ?? []), ' ', xdebug_info('mode')[0]; var_dump(new C);",
            )
        },
        |site| {
            let before = pid(site);
            let first = site.get_ok("/");
            assert!(first.starts_with("50 1 "), "{first}");
            for _ in 0..500 {
                assert_eq!(site.get_ok("/"), first);
            }
            assert_eq!(pid(site), before);
        },
    );
}

/// Starts a thread, as some extensions do, that waits for ever.
const THREAD: &str = "$c = FFI::cdef('typedef unsigned long T; int pthread_create(T *t, void *a, void *start, void *x);
    int pthread_setname_np(T t, const char *n); void *dlsym(void *library, const char *name);', 'libc.so.6');
    $t = $c->new('T'); $c->pthread_create(FFI::addr($t), null, $c->dlsym(null, 'pause'), null);
    $c->pthread_setname_np($t->cdata, 'grpc_poller');";

#[test]
fn a_thread_started_at_boot_is_refused_by_name() {
    run(
        Kind::Classic,
        |s| {
            booted(s.ini("ffi.enable", "true"), THREAD)
                .expect_boot_failure()
                .expect_log("a PHP extension has started threads")
                .expect_log("ended before it was ready")
        },
        |site| {
            let _ = site.wait_for_log(&["which a snapshot cannot hold: grpc_poller"]);
            let _ = site.wait_for_log(&["ended before it was ready"]);
        },
    );
}

#[test]
fn a_thread_started_by_a_request_replaces_the_worker() {
    run(
        Kind::Classic,
        |s| {
            let s = booted(s.ini("ffi.enable", "true"), "$n = 0;");
            let s = script(s, "thread.php", &format!("{THREAD} echo 'started';"));
            script(s, "pid.php", "echo getmypid();")
        },
        |site| {
            let before = pid(site);
            assert_eq!(site.get_ok("/thread.php"), "started");
            assert!(eventually(PATIENCE, || pid(site) != before));
            let _ = site.wait_for_log(&["worker replaced", "left a thread behind"]);
        },
    );
}
