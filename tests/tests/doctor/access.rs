//! `howdah doctor` for an application that others must not read: permissions of its copy, and that the sandbox stays.

use super::{leaks, mode};
use howdah_skip::skip;
use howdah_tests::howdah::{php_program, program};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Lines};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Stdio};

const SETTINGS: &str = "root = \"public\"\nuser = \"nobody\"\nphp.user = \"www-data\"\nsandbox = \"app\"\n";
const PAGES: [(&str, &str); 4] = [
    ("index.php", "<a href='/leak.php'>leak</a> <a href='/outside.php'>outside</a> <a href='/fine.php'>fine</a>"),
    ("leak.php", "<?php ini_set('precision', '4');"),
    ("outside.php", include_str!("php/outside.php")),
    ("fine.php", "fine"),
];

/// The doctor's files that hold secrets.
const FILES: [&str; 3] = ["application/.env", "worker/report/report.jsonl", "worker/howdah.toml"];

/// An application with a database, which the doctor therefore copies, in a home directory that only `www-data` can
/// enter.
fn application(top: &Path, settings: &str) -> PathBuf {
    let home = top.join("home");
    let dir = home.join("shop");
    fs::create_dir_all(dir.join("public")).unwrap();
    for (name, text) in PAGES {
        fs::write(dir.join("public").join(name), text).unwrap();
    }
    fs::write(dir.join("howdah.toml"), settings).unwrap();
    fs::write(dir.join(".env"), "DB_PASSWORD=secret").unwrap();
    fs::write(top.join("outside.txt"), "outside").unwrap();
    let made = Command::new("sqlite3").arg(dir.join("visits.sqlite")).arg("create table visit (at)").status();
    assert!(made.unwrap().success());
    assert!(Command::new("chown").args(["-R", "www-data"]).arg(&home).status().unwrap().success());
    fs::set_permissions(&home, fs::Permissions::from_mode(0o700)).unwrap();
    fs::set_permissions(top, fs::Permissions::from_mode(0o1777)).unwrap();
    dir
}

/// True if a user of this group can read a file.
fn reads(user: &str, group: &str, file: &Path) -> bool {
    let mut command = Command::new("setpriv");
    command.args(["--reuid", user, "--regid", group, "--clear-groups", "--", "cat"]).arg(file);
    command.stderr(Stdio::null()).output().unwrap().status.success()
}

/// A running doctor, and its output.
struct Running {
    child: Child,
    lines: Lines<BufReader<ChildStderr>>,
    /// The doctor's directory.
    own: PathBuf,
}

/// Starts the doctor with these arguments of `setpriv`, and waits until it tests the application.
fn started(top: &Path, dir: &Path, user: &[&str]) -> Running {
    let mut command = Command::new("setpriv");
    command.args(user).args(["--pdeathsig", "KILL", "--"]).arg(program()).arg("doctor").arg(dir).env_clear();
    command.args(["--modes", "worker", "--json", "-"]).env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command.env("TMPDIR", top).env("HOWDAH_PHP", php_program());
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let mut said = Vec::new();
    let runs = lines
        .by_ref()
        .map(Result::unwrap)
        .inspect(|line| said.push(line.clone()))
        .any(|l| l.starts_with("worker: 1 of"));
    assert!(runs, "{said:#?}");
    let own = fs::read_dir(top).unwrap().flatten().map(|entry| entry.path());
    let own = own.into_iter().find(|path| path.display().to_string().contains("howdah-doctor-")).unwrap();
    Running { child, lines, own }
}

fn no_other_user_reads(own: &Path) {
    for file in FILES.map(|name| own.join(name)) {
        for group in ["daemon", "www-data", "root"] {
            assert!(!reads("daemon", group, &file), "daemon of {group} reads {}", file.display());
        }
    }
}

/// All others are one user here, in any group.
#[test]
fn an_ordinary_users_copy_and_settings_are_private() {
    if !rustix::process::geteuid().is_root() {
        skip!("root", "only root can switch users");
    }
    if !reads("www-data", "www-data", &program()) {
        skip!("open directories", "other users cannot execute the built programs");
    }
    let top = tempfile::tempdir().unwrap();
    let dir = application(top.path(), "root = \"public\"\n");
    let user = ["--reuid", "www-data", "--regid", "www-data", "--clear-groups"];
    let Running { child, lines, own } = started(top.path(), &dir, &user);
    for name in FILES {
        assert!(reads("www-data", "www-data", &own.join(name)), "{name}: its user");
    }
    no_other_user_reads(&own);
    lines.for_each(drop);
    assert!(child.wait_with_output().unwrap().status.success());
}

#[test]
fn as_root_only_phps_user_reaches_the_copy_and_the_sandbox_holds() {
    if !rustix::process::geteuid().is_root() {
        skip!("root", "only root can switch users");
    }
    let top = tempfile::tempdir().unwrap();
    let dir = application(top.path(), SETTINGS);
    let Running { child, lines, own } = started(top.path(), &dir, &[]);
    for (name, is_readable) in FILES.into_iter().zip([true, true, false]) {
        assert_eq!(reads("www-data", "www-data", &own.join(name)), is_readable, "{name}: PHP's user");
    }
    no_other_user_reads(&own);
    lines.for_each(drop);
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let routes: Vec<String> = leaks(mode(&report, "worker")).into_iter().map(|(route, ..)| route).collect();
    assert!(!routes.is_empty() && routes.iter().all(|route| route == "GET /leak.php"), "{report:#}");
}
