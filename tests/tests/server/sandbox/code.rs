//! Code: anything uploaded or written is data, and never runs.

use super::{sandboxed, shell, site, successes};
use howdah_tests::{Mode, Setup, Site, php, run, script_scenario};
use std::process::Command;
use std::sync::LazyLock;

script_scenario!(
    a_web_shell_leaves_no_code_where_code_runs,
    howdah_only = "PHP-FPM has no sandbox",
    |s| sandboxed(s).workers(1).library("lib/used.php", "return 'as it was';"),
    |site| {
        let code = php!("a_web_shell_leaves_no_code_where_code_runs.php");
        let seen = successes(
            site,
            &format!("{code} define('ROOT', $root); define('EVIL', $evil);"),
            &[
                ("a new script", "return file_put_contents(ROOT . '/new.php', EVIL) > 0;"),
                ("changing one", "return file_put_contents(ROOT . '/lib/used.php', EVIL) > 0;"),
                ("appending to one", "return fwrite(fopen(ROOT . '/lib/used.php', 'a'), EVIL) > 0;"),
                (
                    "truncating one",
                    "return FFI::cdef('int truncate(const char *, long);')->truncate(ROOT . '/lib/used.php', 0) === 0;",
                ),
                ("moving one there", "return rename(ROOT . '/uploads/e.php', ROOT . '/new.php');"),
                ("moving one over another", "return rename(ROOT . '/uploads/e.php', ROOT . '/lib/used.php');"),
                ("a hard link", "return link(ROOT . '/uploads/e.php', ROOT . '/new.php');"),
                ("a symbolic link", "return symlink(ROOT . '/uploads/e.php', ROOT . '/new.php');"),
                ("a link to elsewhere", "return symlink('/etc', ROOT . '/uploads/etc');"),
                ("deleting one", "return unlink(ROOT . '/lib/used.php');"),
                ("moving the directory", "return rename(ROOT . '/lib', ROOT . '/uploads/lib');"),
                ("a new directory", "return mkdir(ROOT . '/newdir');"),
                (
                    "settings of a directory",
                    "return file_put_contents(ROOT . '/.user.ini', 'auto_prepend_file=uploads/e.php') > 0;",
                ),
                ("the library of PHP", "return file_put_contents('/usr/share/php/evil.php', EVIL) > 0;"),
                ("a pipe", "return posix_mkfifo(ROOT . '/uploads/pipe', 0600);"),
            ],
        );
        assert_eq!(seen, Vec::<String>::new());
        assert_eq!(std::fs::read_to_string(site.file("lib/used.php")).unwrap(), "<?php\nreturn 'as it was';\n");
        assert!(site.file("uploads/e.php").is_file());
    },
);

/// Plants files for the next test in the position of an upload.
const SMUGGLE: &str = php!("smuggle.php");

/// An archive with a script in it. Created once: the scenarios of all modes run concurrently in one process.
fn archive() -> &'static [u8] {
    static ARCHIVE: LazyLock<Vec<u8>> = LazyLock::new(|| {
        let path = std::env::temp_dir().join(format!("howdah-archive-{}.phar", std::process::id()));
        let code = format!("$p = new Phar('{}'); $p['e.php'] = '<?php echo \"EV\" . \"IL\";';", path.display());
        let made = Command::new("php").args(["-d", "phar.readonly=0", "-r", &code]).status().unwrap();
        assert!(made.success());
        let bytes = std::fs::read(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        bytes
    });
    &ARCHIVE
}

/// Expressions that include these files.
const INCLUDES: [&str; 13] = [
    r#""$d/e.php""#,
    r#""$d/e.txt""#,
    r#""$d/../uploads/e.php""#,
    r#""uploads/e.php""#,
    r#""$d/../linked/e.php""#,
    r#""file://$d/e.php""#,
    r#""php://filter/resource=$d/e.php""#,
    r#""PHP://FILTER/read=string.rot13|string.rot13/resource=$d/e.php""#,
    r#""compress.zlib://$d/e.gz""#,
    r#""php://filter/resource=compress.zlib://$d/e.gz""#,
    r#""phar://$d/e.jpg/e.php""#,
    r#""phar://$d/../linked/e.jpg/e.php""#,
    r#"sys_get_temp_dir() . "/e.php""#,
];

fn included(site: &Site) -> String {
    let list = INCLUDES.join(", ");
    let code = php!("included.php", SMUGGLE = SMUGGLE, LIST = list, LEN = INCLUDES.len());
    shell(site, &code)
}

fn with_archive(setup: Setup) -> Setup {
    setup.file("archive.phar", archive()).ini("open_basedir", "")
}

fn link_uploads(site: &Site) {
    std::os::unix::fs::symlink("uploads", site.file("linked")).unwrap();
}

script_scenario!(
    an_upload_is_never_code,
    howdah_only = "PHP-FPM has no sandbox",
    |s| with_archive(sandboxed(s))
        .workers(1)
        .expect_log("sandbox: refused to run a file from a directory for data as PHP"),
    |site| {
        link_uploads(site);
        // Twice: the second time OPcache would have it.
        assert_eq!(included(site), format!("0 of {}, 1", INCLUDES.len()));
        assert_eq!(included(site), format!("0 of {}, 1", INCLUDES.len()));
    },
);

#[test]
fn without_a_sandbox_an_upload_is_code() {
    run(
        Mode::Classic,
        |s| with_archive(site(s)).workers(1),
        |site| {
            link_uploads(site);
            assert_eq!(included(site), format!("{} of {}, 1", INCLUDES.len(), INCLUDES.len()));
        },
    );
}

#[test]
fn no_request_runs_an_upload() {
    for mode in [Mode::Classic, Mode::Snapshot] {
        let setup = |s: Setup| {
            sandboxed(s)
                .workers(1)
                .setting("static.follow_symlinks", "\"always\"")
                .allow_log("Access to the script is denied")
                .expect_log("sandbox: refused to run a script in a directory that can be written to")
        };
        run(mode, setup, |site| {
            link_uploads(site);
            shell(site, php!("no_request_runs_an_upload.php"));
            assert!(site.file("uploads/sub/index.php").is_file());
            for path in [
                "/uploads/e.php",
                "/uploads/e.php/info",
                "/uploads/sub/",
                "/uploads/sub/index.php",
                "/linked/e.php",
                "/uploads/../uploads/e.php",
            ] {
                let status = site.get(path).status;
                assert!(matches!(status, 400 | 403 | 404), "{path}: {status}");
            }
            assert_eq!(site.get("/uploads/e.php").status, 403);
        });
    }
}

#[test]
fn code_that_the_application_writes_is_included_but_not_run_by_a_request() {
    run(
        Mode::Classic,
        |s| {
            site(s)
                .workers(1)
                .file("var/cache/.keep", "")
                .setting(
                    "sandbox",
                    "{ profile = \"app\", write = [\"@ROOT@/var\"], write_code = [\"@ROOT@/var/cache\"] }",
                )
                .allow_log("Access to the script is denied")
        },
        |site| {
            let code = php!("code_that_the_application_writes_is_included_but_not_run_by_a_request.php");
            let code = code.replace("__DIR__", "dirname(__DIR__) . '/root'");
            assert_eq!(shell(site, &code), "7false");
            assert_eq!(site.get("/var/cache/t.php").status, 403);
        },
    );
}
