//! Several versions of PHP side by side: a `howdah-php` loads the libphp that it was built with and no other, and pools
//! name the version they need. Most of these tests need only one version; another one is simulated here.

use howdah_tests::howdah::{copy_program, php_program, program};
use howdah_tests::process::{PATIENCE, eventually};
use howdah_tests::{Mode, Request, Setup, Site, php, run};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

fn command(program: &Path, arguments: &[&str]) -> Output {
    Command::new(program).args(arguments).env("HOWDAH_ALLOW_ROOT", "true").output().unwrap()
}

fn texts(output: &Output) -> (String, String) {
    (String::from_utf8_lossy(&output.stdout).into_owned(), String::from_utf8_lossy(&output.stderr).into_owned())
}

fn capabilities_of(host: &Path) -> Value {
    serde_json::from_slice(&command(host, &["--capabilities=json"]).stdout).unwrap()
}

fn capabilities() -> Value {
    capabilities_of(&php_program())
}

fn version_of(capabilities: &Value) -> String {
    let full = capabilities["built_against"].as_str().unwrap().to_owned();
    full.rsplit_once('.').unwrap().0.to_owned()
}

fn version() -> String {
    version_of(&capabilities())
}

/// The version of a host, and the resolved path of its libphp, as printed by `which.php`.
fn identity(host: &Path) -> String {
    let capabilities = capabilities_of(host);
    let library = std::fs::canonicalize(capabilities["library"].as_str().unwrap()).unwrap();
    format!("{} {}", version_of(&capabilities), library.display())
}

/// Compiles a shared library.
fn library(place: &Path, name: &str, code: &str) -> PathBuf {
    let (source, library) = (place.join("source.c"), place.join(name));
    std::fs::write(&source, code).unwrap();
    let flags = ["-shared", "-fPIC", &format!("-Wl,-soname,{name}"), "-o"];
    let built = Command::new("cc").args(flags).arg(&library).arg(&source).output().unwrap();
    assert!(built.status.success(), "{}", texts(&built).1);
    library
}

#[test]
fn a_host_loads_its_own_libphp_whatever_else_has_that_name() {
    let place = tempfile::tempdir().unwrap();
    // The name of Debian's libraries for all versions.
    library(place.path(), "libphp.so", "");
    let expected = identity(&php_program());
    let misled = |setup: Setup| {
        setup.env("LD_LIBRARY_PATH", place.path().to_str().unwrap()).php("which.php", php!("php_versions/which.php"))
    };
    run(Mode::Classic, misled, |site| assert_eq!(site.get_ok("/which.php"), expected));
}

/// A function of newer PHP versions that overrides libphp's: callers that ask for the version get this one.
const PRETENDER: &str = "unsigned int php_version_id(void) { return 80142; }";

#[test]
fn a_host_with_another_php_reports_that_and_exits() {
    if std::env::var_os("HOWDAH_TEST_SANITIZED").is_some() {
        howdah_skip::skip!("preloading", "the sanitizer must be the first library");
    }
    let place = tempfile::tempdir().unwrap();
    let pretender = library(place.path(), "pretender.so", PRETENDER);
    let expected = format!("this howdah-php was built for PHP {} (with ", version());
    let misled = |setup: Setup| {
        setup
            .env("LD_PRELOAD", pretender.to_str().unwrap())
            .expect_boot_failure()
            .expect_log("is PHP 8.1: reinstall libphp")
            .php("a.php", "echo 'never';")
    };
    run(Mode::Classic, misled, |site| {
        assert_eq!(site.get("/a.php").status, 503);
        let log = site.wait_for_log(&[expected.as_str()]);
        assert!(!log.contains("signal"), "a signal killed PHP: {log}");
        let (status, _) = texts(&site.howdah().command(&["status"]));
        assert!(status.contains("PHP DOES NOT START") && status.contains(&expected), "{status}");
    });
    let settings = place.path().join("howdah.toml");
    std::fs::write(
        &settings,
        format!("php.binary = {:?}\nphp.env.LD_PRELOAD = {pretender:?}\nroot = \".\"\n", php_program()),
    )
    .unwrap();
    let checked = command(&program(), &["check", "--config", settings.to_str().unwrap()]);
    let (_, said) = texts(&checked);
    assert_eq!(checked.status.code(), Some(1), "{said}");
    assert!(said.contains("howdah: pool default: ") && said.contains(&expected), "{said}");
}

/// `howdah` and its host, as installed by packages.
struct Installed {
    place: tempfile::TempDir,
}

impl Installed {
    fn new() -> Self {
        let place = tempfile::tempdir().unwrap();
        let (bin, libexec) = (place.path().join("bin"), place.path().join("libexec/howdah"));
        std::fs::create_dir_all(&bin).unwrap();
        std::fs::create_dir_all(&libexec).unwrap();
        copy_program(&program(), &bin.join("howdah"));
        copy_program(&php_program(), &libexec.join(format!("howdah-php{}", version())));
        Self { place }
    }

    fn check(&self, settings: &str) -> (Option<i32>, String, String) {
        let file = self.place.path().join("howdah.toml");
        std::fs::write(&file, settings).unwrap();
        let output = Command::new(self.place.path().join("bin/howdah"))
            .args(["check", "--config"])
            .arg(&file)
            // Only what is installed here.
            .env_clear()
            .env("PATH", "/nonexistent")
            .env("HOWDAH_ALLOW_ROOT", "true")
            .output()
            .unwrap();
        let (out, err) = texts(&output);
        (output.status.code(), out, err)
    }
}

#[test]
fn a_pool_names_its_version_and_check_reports_missing_ones() {
    let installed = Installed::new();
    let version = version();
    let (status, said, errors) = installed.check(&format!("[pool.named]\nphp = \"{version}\"\n"));
    assert_eq!(status, Some(0), "{errors}");
    let host = installed.place.path().join(format!("libexec/howdah/howdah-php{version}"));
    for pool in ["default", "named"] {
        let line = said.lines().find(|line| line.starts_with(&format!("# PHP of pool {pool}: howdah-php ")));
        let line = line.unwrap_or_else(|| panic!("{said}"));
        assert!(line.contains(&format!("(PHP {version}.")) && line.ends_with(host.to_str().unwrap()), "{line}");
    }
    let (status, _, errors) = installed.check("[pool.newer]\nphp = \"8.99\"\n");
    assert_eq!(status, Some(1), "{errors}");
    assert!(errors.contains("[pool.newer] binary: there is no howdah-php8.99 in "), "{errors}");
    assert!(errors.contains(&format!("(there is: {version}); install the package howdah-php8.99")), "{errors}");
    std::fs::remove_file(host).unwrap();
    let (status, _, errors) = installed.check("");
    assert_eq!(status, Some(0), "{errors}");
    assert!(errors.contains("howdah: warning: no PHP will run: there is no howdah-php in "), "{errors}");
}

#[test]
fn status_shows_the_version_of_each_pool() {
    let second = format!("{:?}", php_program());
    let pools = |setup: Setup| {
        setup
            .setting("pool.second.php", &second)
            .setting("pool.second.workers", "1")
            .setting("rule", "[{ path = \"/second/*\", pool = \"second\" }]")
            .more_processes(2)
            .php("second/which.php", php!("php_versions/which.php"))
    };
    run(Mode::Classic, pools, |site| {
        assert!(site.get_ok("/second/which.php").starts_with(&version()));
        let (status, _) = texts(&site.howdah().command(&["status"]));
        for pool in ["default", "second"] {
            let line = format!("pool {pool} (classic mode, PHP {}.", version());
            assert!(status.contains(&line), "{status}");
        }
    });
}

/// Process ids of a pool's workers.
fn workers_of(site: &Site, name: &str) -> Vec<u64> {
    let status = site.howdah().status();
    let pool = status["pools"].as_array().unwrap().iter().find(|pool| pool["name"] == name).unwrap();
    let mut pids: Vec<u64> = pool["workers"].as_array().unwrap().iter().filter_map(|w| w["pid"].as_u64()).collect();
    pids.sort_unstable();
    pids
}

/// `make test-php84-short` runs the host of this machine's PHP in a Debian with a newer one.
#[test]
fn two_versions_serve_at_once_and_one_does_not_notice_the_others_crashes() {
    let Some(second) = std::env::var_os("HOWDAH_SECOND_PHP_BIN").map(PathBuf::from) else {
        howdah_skip::skip!("second-php", "HOWDAH_SECOND_PHP_BIN names a howdah-php of another version");
    };
    let (own, other) = (identity(&php_program()), identity(&second));
    assert_ne!(own, other);
    let binary = format!("{second:?}");
    let pools = |setup: Setup| {
        setup
            .setting("pool.second.php", &binary)
            .setting("pool.second.workers", "2")
            .setting("rule", "[{ path = \"/second/*\", pool = \"second\" }]")
            .more_processes(3)
            .expect_log("worker_died")
            .php("which.php", php!("php_versions/which.php"))
            .php("second/which.php", php!("php_versions/which.php"))
            .php("second/die.php", "exec('kill -SEGV ' . getmypid()); sleep(5);")
    };
    run(Mode::Classic, pools, |site| {
        let before = workers_of(site, "default");
        let (stop, served) = (AtomicBool::new(false), [AtomicU64::new(0), AtomicU64::new(0)]);
        let asks = |path: &str, expected: &str, served: &AtomicU64| {
            let mut conn = site.conn();
            while !stop.load(Ordering::Relaxed) {
                assert_eq!(conn.exchange(&Request::get(path)).expect(200).text(), expected);
                served.fetch_add(1, Ordering::Relaxed);
            }
        };
        std::thread::scope(|scope| {
            scope.spawn(|| asks("/which.php", &own, &served[0]));
            scope.spawn(|| asks("/second/which.php", &other, &served[1]));
            let storm = scope.spawn(|| {
                for _ in 0..5 {
                    let before = served.each_ref().map(|count| count.load(Ordering::Relaxed));
                    let go_on =
                        || served.iter().zip(before).all(|(count, before)| count.load(Ordering::Relaxed) > before + 5);
                    assert!(eventually(PATIENCE, go_on), "both serve: {served:?}");
                    assert_eq!(site.send(&Request::form("/second/die.php", "")).status, 502);
                }
            });
            let outcome = storm.join();
            stop.store(true, Ordering::Relaxed);
            outcome.unwrap();
        });
        assert_eq!(workers_of(site, "default"), before, "the other pool's workers were replaced");
        for (pool, capabilities) in [("default", capabilities()), ("second", capabilities_of(&second))] {
            let (status, _) = texts(&site.howdah().command(&["status"]));
            let line = format!("pool {pool} (classic mode, PHP {}", capabilities["php"].as_str().unwrap());
            assert!(status.contains(&line), "{line}: {status}");
        }
    });
    let installed = Installed::new();
    let name = version_of(&capabilities_of(&second));
    copy_program(&second, &installed.place.path().join(format!("libexec/howdah/howdah-php{name}")));
    let (status, said, errors) =
        installed.check(&format!("php = \"{}\"\n[pool.second]\nphp = \"{name}\"\n", version()));
    assert_eq!(status, Some(0), "{errors}");
    for (pool, version) in [("default", version()), ("second", name)] {
        let host = installed.place.path().join(format!("libexec/howdah/howdah-php{version}"));
        let line = said.lines().find(|line| line.starts_with(&format!("# PHP of pool {pool}: ")));
        assert!(line.is_some_and(|line| line.ends_with(&format!(", {}", host.display()))), "{said}");
    }
}
