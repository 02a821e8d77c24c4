//! `howdah check` reports all problems at once, whichever user runs it, and accepts a file as its argument.

use howdah_tests::howdah::{php_program, program};
use std::path::Path;
use std::process::Command;

fn howdah(dir: &Path, arguments: &[&str]) -> (Option<i32>, String) {
    let output = Command::new(program())
        .args(arguments)
        .current_dir(dir)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOWDAH_PHP", php_program())
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stderr) + &text(&output.stdout))
}

#[test]
fn check_reports_all_errors_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let settings = "rooot = \"public\"\nuser = \"nobody-here\"\n[log]\nerror = \"/nowhere/error.log\"\n\
                    [acme]\nnames = [\"shop.example.org\"]\nstate = \"index.php\"\n";
    std::fs::write(dir.path().join("other.toml"), settings).unwrap();
    std::fs::write(dir.path().join("index.php"), "").unwrap();
    // The file without `--config`, as for other servers.
    let (status, said) = howdah(dir.path(), &["check", "other.toml"]);
    assert_eq!(status, Some(1), "{said}");
    for error in [
        "other.toml:1: rooot: unknown key; did you mean root?",
        "there is no user \"nobody-here\"",
        "log.error: there is no directory /nowhere",
        "[acme] state: ",
    ] {
        assert!(said.contains(error), "{error} is not in {said}");
    }
}

/// No server is started, so the user that it would run as does not matter.
#[test]
fn a_request_is_explained_to_root_without_a_user() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("index.php"), "").unwrap();
    let (status, said) = howdah(dir.path(), &["explain", "http://localhost/"]);
    assert_eq!(status, Some(0), "{said}");
    assert!(said.contains("in the pool default"), "{said}");
}
