//! `howdah-fpm` and PHP-FPM with the same configuration: responses of scripts that fail, and processor times of requests.

use howdah_skip::skip;
use howdah_tests::fpm::{Fpm, front, get, howdah_fpm, is_root, open_directory, php_fpm};
use howdah_tests::nginx::Nginx;
use howdah_tests::php;
use howdah_tests::process::{PATIENCE, eventually};
use std::fs;
use std::path::Path;

const SCRIPT: &str = php!("fpm_responses/script.php");

/// Starts a program with one pool, and nginx in front of it.
fn start(program: &Path, top: &Path, root: &Path, more: &str) -> (Fpm, Nginx) {
    let pool = "[global]\nerror_log = error.log\ndaemonize = no\n[a]\nuser = www-data\nlisten = a.sock\n\
                listen.mode = 0666\npm = static\npm.max_children = 1\nphp_admin_value[display_errors] = off\n";
    fs::write(top.join("php-fpm.conf"), format!("{pool}{more}")).unwrap();
    let fpm = Fpm::start(program, top, &["a.sock"]);
    (fpm, front(top, &["a"], root))
}

fn scripts() -> tempfile::TempDir {
    let root = open_directory();
    fs::create_dir(root.path().join("a")).unwrap();
    fs::write(root.path().join("a/script.php"), format!("<?php\n{SCRIPT}")).unwrap();
    root
}

#[test]
fn a_script_that_fails_has_the_header_of_php_ini_as_under_php_fpm() {
    if !is_root() {
        return;
    }
    let Some((php_fpm, _)) = php_fpm() else { skip!("php-fpm", "the server to compare with") };
    let root = scripts();
    for (header, status) in [("HTTP/1.1 550 PHP Error", 550), ("X-Failed: yes", 500)] {
        let (mine, truth) = (open_directory(), open_directory());
        let all = [(howdah_fpm(mine.path()), mine.path()), (php_fpm.clone(), truth.path())].map(|(program, top)| {
            let more = format!(
                "php_admin_value[output_buffering] = 0\nphp_admin_value[fastcgi.error_header] = \"{header}\"\n"
            );
            let (fpm, nginx) = start(&program, top, root.path(), &more);
            let responses = ["throw", "fatal", "exit", "early", "finished", "none"].map(|what| {
                let response = get(&nginx, &format!("/a/script.php?{what}"));
                (response.status, response.header("x-failed").map(str::to_owned), response.text())
            });
            fpm.end();
            responses
        });
        assert_eq!(all[0], all[1], "{header}");
        assert_eq!(all[0][0].0, status);
        assert_eq!(all[0].clone().map(|(status, ..)| status)[2..], [200; 4]);
    }
}

#[test]
fn access_logs_distinguish_processor_time_in_php_and_in_the_kernel() {
    if !is_root() {
        return;
    }
    let (top, root) = (open_directory(), scripts());
    let format = "access.log = access.log\naccess.format = '%q %{user}C %{system}C %C %M'\n";
    let (fpm, nginx) = start(&howdah_fpm(top.path()), top.path(), root.path(), format);
    // The start of the process does not count.
    assert!(eventually(PATIENCE, || get(&nginx, "/a/script.php?none").status == 200), "{}", fpm.log());
    for what in ["compute", "calls", "sleep"] {
        assert_eq!(get(&nginx, &format!("/a/script.php?{what}")).status, 200);
    }
    let log = || fs::read_to_string(top.path().join("access.log")).unwrap_or_default();
    let lines =
        || -> Vec<String> { log().lines().filter(|line| !line.starts_with("none")).map(str::to_owned).collect() };
    assert!(eventually(PATIENCE, || lines().len() == 3), "{}\n{}", log(), fpm.log());
    let numbers = |line: &str| -> Vec<f64> { line.split(' ').skip(1).map(|word| word.parse().unwrap()).collect() };
    for line in lines() {
        let [user, system, total, memory] = numbers(&line)[..] else { panic!("{line}") };
        assert!((user + system - total).abs() < 0.02 && total <= 101.0 && memory > 1e5, "{line}");
        let fits = match line.split(' ').next().unwrap() {
            "compute" => user > 3.0 * system && user > 1.0,
            "calls" => system > user / 4.0 && system > 1.0,
            _ => total < 50.0,
        };
        assert!(fits, "{}", log());
    }
    fpm.end();
}
