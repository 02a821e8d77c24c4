//! The user that the server switches to if only PHP's is configured: the account reserved for it, if there is one.

use howdah_tests::howdah::program;
use howdah_tests::process::{PATIENCE, eventually};
use howdah_tests::{Conn, Request, Target};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;
use std::process::{Command, Stdio};

/// User id of the account in these tests.
const OWN: u32 = 64_999;

/// The server's program with these arguments, with or without the account `howdah`.
fn with_account(there: bool, directory: &Path, arguments: &[&str]) -> Command {
    for (name, line) in
        [("passwd", "howdah:x:64999:64999::/nonexistent:/usr/sbin/nologin"), ("group", "howdah:x:64999:")]
    {
        let all = fs::read_to_string(Path::new("/etc").join(name)).unwrap();
        let others = all.lines().filter(|line| !line.starts_with("howdah:"));
        let lines: Vec<&str> = others.chain(there.then_some(line)).collect();
        fs::write(directory.join(name), lines.join("\n") + "\n").unwrap();
    }
    let bind = "mount --bind passwd /etc/passwd && mount --bind group /etc/group && exec \"$0\" \"$@\"";
    let mut command = Command::new("unshare");
    command
        .args(["--mount", "--", "setpriv", "--pdeathsig", "KILL", "--", "sh", "-c", bind])
        .arg(program())
        .args(arguments)
        .current_dir(directory)
        .env("TMPDIR", directory)
        .env("XDG_RUNTIME_DIR", directory)
        .env_remove("HOWDAH_ALLOW_ROOT")
        .stdin(Stdio::null());
    command
}

fn may_be_others() -> bool {
    let may = rustix::process::geteuid().is_root()
        && Command::new("unshare").args(["--mount", "--", "true"]).status().is_ok_and(|status| status.success());
    if !may {
        howdah_skip::record("root", "only root becomes other users, in a mount namespace");
    }
    may
}

fn open_directory() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    fs::set_permissions(directory.path(), PermissionsExt::from_mode(0o755)).unwrap();
    directory
}

#[test]
fn check_reports_the_servers_user_and_the_risk_of_sharing_it() {
    if !may_be_others() {
        return;
    }
    let directory = open_directory();
    let check = |there, arguments: &[&str]| {
        let root = [directory.path().to_str().unwrap()];
        let output = with_account(there, directory.path(), &[&["check"], &root[..], arguments].concat()).output();
        let output = output.unwrap();
        let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        assert!(output.status.success(), "{said}");
        said
    };
    let said = check(true, &["--user", "www-data"]);
    assert!(said.contains("\nuser = \"howdah\"") && said.contains("\nuser = \"www-data\""), "{said}");
    assert!(!said.contains("# Users:"), "{said}");
    let said = check(false, &["--user", "www-data"]);
    assert!(said.contains("# Users: PHP of pool default runs as the server's user www-data"), "{said}");
    assert!(said.contains("create a user for the server: useradd --system"), "{said}");
    for there in [true, false] {
        fs::write(directory.path().join("howdah.toml"), "user = \"nobody\"\n").unwrap();
        let said = check(there, &["--user", "www-data"]);
        assert!(said.contains("\nuser = \"nobody\"") && !said.contains("user = \"howdah\""), "{said}");
        let said = check(there, &[]);
        assert!(said.contains("runs as the server's user nobody"), "a user in the settings is used: {said}");
        fs::remove_file(directory.path().join("howdah.toml")).unwrap();
        assert!(check(there, &["--allow-root"]).contains("runs as the server's user root"));
    }
}

/// Users of the processes with this name below `leader`.
fn users(leader: u32, name: &str) -> Vec<u32> {
    let mut users = Vec::new();
    for process in fs::read_dir("/proc").unwrap().flatten() {
        let read = |name: &str| fs::read_to_string(process.path().join(name)).unwrap_or_default();
        let is_below = {
            let mut pid = process.file_name().to_str().and_then(|pid| pid.parse::<u32>().ok());
            while let Some(at) = pid.filter(|pid| *pid > 1 && *pid != leader) {
                let stat = fs::read_to_string(format!("/proc/{at}/stat")).unwrap_or_default();
                pid = stat.rsplit_once(") ").and_then(|(_, rest)| rest.split(' ').nth(1)?.parse().ok());
            }
            pid == Some(leader)
        };
        if is_below && read("comm").trim() == name {
            let status = read("status");
            let line = status.lines().find_map(|line| line.strip_prefix("Uid:"));
            users.extend(line.and_then(|line| line.split_ascii_whitespace().next()?.parse::<u32>().ok()));
        }
    }
    users.sort_unstable();
    users.dedup();
    users
}

#[test]
fn the_server_runs_as_its_own_user_and_php_as_the_one_that_is_named() {
    if !may_be_others() {
        return;
    }
    let directory = open_directory();
    let (root, socket) = (directory.path().join("root"), directory.path().join("http.sock"));
    fs::create_dir(&root).unwrap();
    fs::write(root.join("who.php"), "<?php echo posix_getuid();").unwrap();
    fs::write(root.join("group.txt"), "for the group").unwrap();
    fs::set_permissions(root.join("group.txt"), PermissionsExt::from_mode(0o640)).unwrap();
    let www = u32::try_from(super::users::number("www-data")).unwrap();
    chown(root.join("group.txt"), Some(0), Some(www)).unwrap();
    let (listen, admin) = (format!("unix:{}", socket.display()), format!("unix:{}/admin", directory.path().display()));
    let arguments = [
        "serve",
        root.to_str().unwrap(),
        "--user",
        "www-data",
        "--listen",
        &listen,
        "--admin",
        &admin,
        "--workers",
        "1",
    ];
    let mut server = with_account(true, directory.path(), &arguments)
        .stdout(Stdio::null())
        .stderr(fs::File::create(directory.path().join("log")).unwrap())
        .spawn()
        .unwrap();
    let target = Target::Unix(socket);
    let log = || fs::read_to_string(directory.path().join("log")).unwrap();
    assert!(eventually(PATIENCE, || Conn::try_open(&target).is_ok()), "{}", log());
    let ask = |path: &str| Conn::open(&target).exchange(&Request::get(path)).expect(200).text();
    assert_eq!(ask("/who.php"), www.to_string(), "{}", log());
    assert_eq!(ask("/group.txt"), "for the group", "the server is in the group of PHP's user");
    assert_eq!(users(server.id(), "howdah"), [OWN]);
    assert!(users(server.id(), "howdah-php").iter().all(|user| *user == www));
    kill_process(Pid::from_child(&server), Signal::TERM).unwrap();
    let status = server.wait().unwrap();
    assert!(status.success(), "{status}: {}", log());
    assert!(!log().contains("scripts can signal the server"), "{}", log());
}
