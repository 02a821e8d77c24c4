//! `howdah check | head -1`: a reader that leaves early is not an error; the command ends as if everything had been
//! read.

use howdah_tests::howdah::{php_program, program};
use howdah_tests::{Mode, run};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// A pipe without a reader.
fn unread() -> Stdio {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    writer.into()
}

/// Runs a command with readers of its output, without a reader of standard output, and without any: its exit status is
/// the same.
fn ends_as_if_read(mut command: impl FnMut() -> Command, arguments: &[&str]) {
    let mut run = |out: Stdio, err: Stdio| {
        let child = command().args(arguments).stdin(Stdio::null()).stdout(out).stderr(err).spawn().unwrap();
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!said.contains("panicked"), "{arguments:?}: {said}");
        output.status.code()
    };
    let code = run(Stdio::null(), Stdio::piped());
    // A panic exits with 101.
    assert!(code.is_some_and(|code| code != 101), "{arguments:?}: {code:?}");
    assert_eq!(run(unread(), Stdio::piped()), code, "{arguments:?}");
    assert_eq!(run(unread(), unread()), code, "{arguments:?}");
}

fn application(dir: &Path) {
    fs::create_dir_all(dir.join("public")).unwrap();
    fs::write(dir.join("public/index.php"), "<?php echo 'hello';\n").unwrap();
}

#[test]
fn commands_succeed_although_their_output_is_not_read_to_the_end() {
    let dir = tempfile::tempdir().unwrap();
    application(dir.path());
    let howdah = || {
        let mut command = Command::new(program());
        command.current_dir(dir.path()).env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("HOME", dir.path()).env("XDG_RUNTIME_DIR", dir.path()).env("TMPDIR", dir.path());
        command.env("HOWDAH_ALLOW_ROOT", "true").env("HOWDAH_PHP", php_program());
        command
    };
    let state = dir.path().join("state").display().to_string();
    let commands: &[&[&str]] = &[
        &["--version"],
        &["--help"],
        &["serve", "--help"],
        &["check"],
        &["check", "--workers", "many"],
        &["check", "--tls", "auto", "--state", "/dev/null/state"],
        &["explain", "/"],
        &["explain", "/", "--json"],
        &["init", "--list"],
        &["init", "--print"],
        &["init", "/nowhere"],
        &["doctor", "/nowhere"],
        &["completions", "bash"],
        &["trust", "--print", "--state", &state],
        &["mails", "--state", &state],
        &["mails", "--show", "9", "--state", &state],
        &["status", "--admin", "unix:/nowhere.sock"],
        &["serve", "--workers", "many"],
        &["dev", "--workers", "many"],
        &["no-such-command"],
    ];
    commands.iter().for_each(|arguments| ends_as_if_read(howdah, arguments));
}

#[test]
fn the_doctor_writes_its_report_although_its_table_is_not_read() {
    let dir = tempfile::tempdir().unwrap();
    application(dir.path());
    let status = Command::new("setpriv")
        .args(["--pdeathsig", "KILL", "--"])
        .arg(program())
        .args(["doctor", "--modes", "snapshot", "--visitors", "2", "--json", "report.json"])
        .current_dir(dir.path())
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("TMPDIR", dir.path())
        .env("HOWDAH_ALLOW_ROOT", "true")
        .env("HOWDAH_PHP", php_program())
        .stdout(unread())
        .stderr(unread())
        .status()
        .unwrap();
    assert_eq!(status.code(), Some(0));
    assert!(fs::read_to_string(dir.path().join("report.json")).is_ok_and(|report| report.contains("\"snapshot\"")));
}

#[test]
fn orders_to_a_server_count_although_their_result_is_not_read() {
    run(
        Mode::Classic,
        |s| s.php("index.php", "echo 'hello';"),
        |site| {
            let admin = format!("unix:{}", site.place().run.join("admin.sock").display());
            let howdah = || {
                let mut command = Command::new(program());
                command.env("HOWDAH_ALLOW_ROOT", "true").env("HOWDAH_ADMIN", &admin);
                command
            };
            for arguments in [&["status"][..], &["status", "--json"], &["top", "--once"], &["status", "--sandbox"]] {
                ends_as_if_read(howdah, arguments);
            }
            let reload = howdah().arg("reload").stdout(unread()).stderr(unread()).status().unwrap();
            assert!(reload.success());
            // It would run for ever.
            let watch = howdah().args(["status", "--watch"]).stdout(unread()).stderr(unread()).status().unwrap();
            assert!(watch.success());
            assert_eq!(site.get_ok("/index.php"), "hello");
            let stop = howdah().arg("stop").stdout(unread()).stderr(unread()).status().unwrap();
            assert!(stop.success());
        },
    );
}
