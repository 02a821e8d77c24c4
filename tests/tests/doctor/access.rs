//! `howdah doctor` started as root for an application of other users: who can read its copy, and that the sandbox stays.

use super::{leaks, mode};
use howdah_skip::skip;
use howdah_tests::howdah::{php_program, program};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const SETTINGS: &str = "root = \"public\"\nuser = \"nobody\"\nphp.user = \"www-data\"\nsandbox = \"app\"\n";
const PAGES: [(&str, &str); 4] = [
    ("index.php", "<a href='/leak.php'>leak</a> <a href='/outside.php'>outside</a> <a href='/fine.php'>fine</a>"),
    ("leak.php", "<?php ini_set('precision', '4');"),
    ("outside.php", include_str!("php/outside.php")),
    ("fine.php", "fine"),
];

/// An application with a database, which is therefore copied, in a home directory that only PHP's user can enter.
fn application(top: &Path) -> PathBuf {
    let home = top.join("home");
    let dir = home.join("shop");
    fs::create_dir_all(dir.join("public")).unwrap();
    for (name, text) in PAGES {
        fs::write(dir.join("public").join(name), text).unwrap();
    }
    fs::write(dir.join("howdah.toml"), SETTINGS).unwrap();
    fs::write(dir.join(".env"), "DB_PASSWORD=secret").unwrap();
    fs::write(top.join("outside.txt"), "outside").unwrap();
    let made = Command::new("sqlite3").arg(dir.join("visits.sqlite")).arg("create table visit (at)").status();
    assert!(made.unwrap().success());
    assert!(Command::new("chown").args(["-R", "www-data"]).arg(&home).status().unwrap().success());
    fs::set_permissions(&home, fs::Permissions::from_mode(0o700)).unwrap();
    fs::set_permissions(top, fs::Permissions::from_mode(0o1777)).unwrap();
    dir
}

/// Whether a user of this group can read a file.
fn reads(user: &str, group: &str, file: &Path) -> bool {
    let mut command = Command::new("setpriv");
    command.args(["--reuid", user, "--regid", group, "--clear-groups", "--", "cat"]).arg(file);
    command.stderr(Stdio::null()).output().unwrap().status.success()
}

#[test]
fn as_root_only_phps_user_reaches_the_copy_and_the_sandbox_holds() {
    if !rustix::process::geteuid().is_root() {
        skip!("root", "only root can become other users");
    }
    let top = tempfile::tempdir().unwrap();
    let dir = application(top.path());
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "--"]).arg(program()).arg("doctor").arg(&dir).env_clear();
    command.args(["--modes", "worker", "--json", "-"]).env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command.env("TMPDIR", top.path()).env("HOWDAH_PHP", php_program());
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let mut said = Vec::new();
    let runs = lines
        .by_ref()
        .map(Result::unwrap)
        .inspect(|line| said.push(line.clone()))
        .any(|l| l.starts_with("worker: 1 of"));
    assert!(runs, "{said:#?}");
    let own = fs::read_dir(top.path()).unwrap().flatten().map(|entry| entry.path());
    let own = own.into_iter().find(|path| path.display().to_string().contains("howdah-doctor-")).unwrap();
    let (secret, report) = (own.join("application/.env"), own.join("worker/report/report.jsonl"));
    for file in [&secret, &report] {
        assert!(reads("www-data", "www-data", file), "PHP's user reads {}", file.display());
        for group in ["daemon", "www-data", "root"] {
            assert!(!reads("daemon", group, file), "daemon of {group} reads {}", file.display());
        }
    }
    assert!(!reads("www-data", "www-data", &own.join("worker/howdah.toml")), "PHP reads the server's settings");
    lines.for_each(drop);
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let routes: Vec<String> = leaks(mode(&report, "worker")).into_iter().map(|(route, ..)| route).collect();
    assert!(!routes.is_empty() && routes.iter().all(|route| route == "GET /leak.php"), "{report:#}");
}
