//! Files: of the system, of neighbouring applications, of other processes.

use super::{names, sandboxed, shell, site, successes};
use howdah_tests::{Mode, Site, php, run, script_scenario};

/// `F` is replaced with the file.
const READS: &[(&str, &str)] = &[
    ("file_get_contents", "return file_get_contents(F);"),
    ("fopen for both", "return fread(fopen(F, 'r+'), 100);"),
    ("file", "return implode(file(F));"),
    ("readfile", "ob_start(); readfile(F); return ob_get_clean();"),
    ("include", "ob_start(); include F; return ob_get_clean();"),
    ("highlight_file", "return highlight_file(F, true);"),
    ("copy", "copy(F, U . '/copied'); return file_get_contents(U . '/copied');"),
    ("a wrapper", "return file_get_contents('file://' . F);"),
    ("a filter", "return file_get_contents('php://filter/resource=' . F);"),
    ("SplFileObject", "return (new SplFileObject(F))->fgets();"),
    ("curl", "$c = curl_init('file://' . F); curl_setopt($c, CURLOPT_RETURNTRANSFER, true); return curl_exec($c);"),
    ("a detour", "return file_get_contents(U . str_repeat('/..', 12) . F);"),
    ("/proc/self/root", "return file_get_contents('/proc/self/root' . F);"),
    ("/proc/self/cwd", "return file_get_contents('/proc/self/cwd' . str_repeat('/..', 12) . F);"),
    ("a hard link", "link(F, U . '/linked'); return file_get_contents(U . '/linked');"),
    ("renaming it", php!("read_after_renaming.php")),
    ("the system call", php!("read_by_system_call.php")),
];

fn reads(site: &Site, file: &str, attempts: &[(&str, &str)]) -> Vec<String> {
    let uploads = site.file("uploads").display().to_string();
    successes(
        site,
        &format!("defined('F') || define('F', '{file}'); defined('U') || define('U', '{uploads}');"),
        attempts,
    )
}

script_scenario!(
    a_web_shell_cannot_read_files_of_the_system,
    howdah_only = "PHP-FPM has no sandbox",
    |s| sandboxed(s).workers(1).expect_log("sandbox: refused file_get_contents(/etc/passwd)"),
    |site| {
        // A file whose path begins like a permitted one.
        assert_eq!(reads(site, "/etc/passwd", READS), Vec::<String>::new());
        let seen = shell(site, php!("a_web_shell_cannot_read_files_of_the_system.php"));
        assert_eq!(seen, "[]");
        // Script and request target are logged.
        let _ = site.wait_for_log(&["shell.php"]);
        let _ = site.wait_for_log(&["(/shell.php)"]);
    },
);

script_scenario!(
    a_web_shell_cannot_read_its_neighbours_files,
    howdah_only = "PHP-FPM has no sandbox",
    |s| sandboxed(s).workers(1),
    |site| {
        let secret = site.place().top.join("secret.txt").display().to_string();
        assert_eq!(reads(site, &secret, READS), Vec::<String>::new());
        assert!(std::path::Path::new(&secret).exists());
    },
);

#[test]
fn without_a_sandbox_every_function_reads_the_file() {
    run(
        Mode::Classic,
        |s| site(s).workers(1),
        |site| {
            let secret = site.place().top.join("secret.txt").display().to_string();
            assert_eq!(reads(site, &secret, READS), names(READS));
        },
    );
}

fn the_web_shell_sees_no_other_process(site: &Site) {
    let others: Vec<u32> = site.howdah().processes().iter().map(|process| process.pid).collect();
    assert!(others.len() >= 4, "{others:?}");
    let list = others.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
    let seen = shell(site, &php!("a_web_shell_sees_nothing_of_other_processes.php", LIST = list));
    assert_eq!(seen, "[\"itself\"]");
    let _ = site.wait_for_log(&["sandbox: refused system call ptrace"]);
    let _ = site.wait_for_log(&["sandbox: refused system call pidfd_getfd"]);
}

script_scenario!(
    a_web_shell_sees_nothing_of_other_processes,
    howdah_only = "PHP-FPM has no sandbox",
    |s| sandboxed(s).workers(2),
    |site| the_web_shell_sees_no_other_process(site),
);

/// The only worker here is the one that booted; the template was forked from it.
#[test]
fn a_web_shell_in_the_worker_that_booted_for_all_sees_nothing_of_the_template() {
    run(Mode::Snapshot, |s| sandboxed(s).workers(1), |site| the_web_shell_sees_no_other_process(site));
}
