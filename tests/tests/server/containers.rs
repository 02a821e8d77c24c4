//! The container image without a container engine: its Dockerfile's statements and its settings on a read-only root, in
//! namespaces of the test.

use howdah_skip::skip;
use howdah_tests::howdah::{copy_program, php_program, program};
use howdah_tests::process::{self, PATIENCE, eventually, wait_for_exit};
use howdah_tests::site::Port;
use howdah_tests::{Conn, Request, Target, php};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

const IMAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../packaging/container");

/// Sets up the container like an engine: the Dockerfile's directories, its volumes (one that the image lacks belongs to
/// root), everything else read-only. The process has process id 1, the image's user, and no privileges beyond that
/// user's.
const ENTER: &str = r#"
set -e
mount --bind "$0" /mnt
mount -t tmpfs -o mode=0755 none /run
mount -t tmpfs -o mode=1777 none /tmp
eval "$1"
for volume in $2; do
    mkdir -p "$volume"
    mount --bind "$volume" "$volume"
done
mount -o remount,bind,ro /mnt
mount -o remount,bind,ro /
user=$3
shift 3
exec setpriv --reuid "$user" --regid "$user" --clear-groups --bounding-set=-all --no-new-privs -- "$@"
"#;

struct Container {
    process: Child,
}

impl Container {
    /// The server, which has process id 1 inside.
    fn server(&self) -> Option<u32> {
        process::children(self.process.id()).first().copied()
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        // Killing it ends all processes of the namespace.
        self.server().into_iter().for_each(|server| process::signal(server, rustix::process::Signal::KILL));
        let _ = wait_for_exit(&mut self.process, PATIENCE);
    }
}

/// Facts from the image's Dockerfile: the directories that it creates, its volumes, its user.
fn dockerfile() -> (String, String, String) {
    let text = fs::read_to_string(format!("{IMAGE}/Dockerfile")).unwrap().replace("\\\n", " ");
    let (_, last_stage) = text.rsplit_once("\nFROM ").unwrap();
    let made = last_stage.split("&&").map(|part| part.lines().next().unwrap_or_default().trim());
    let made: Vec<&str> = made.filter(|statement| statement.starts_with("install -d ")).collect();
    let value = |name: &str| last_stage.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    let volumes: Vec<String> = serde_json::from_str(value("VOLUME ")).unwrap();
    let user = value("USER ").split_once(':').unwrap().0;
    (made.join("\n"), volumes.join(" "), user.to_owned())
}

fn readable(path: &Path) {
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn the_image_serves_and_keeps_sessions_without_a_mount_on_a_read_only_root() {
    let mut probe = Command::new("unshare");
    probe.args(["--mount", "--pid", "--fork", "mount", "-t", "tmpfs", "none", "/mnt"]);
    if !probe.stderr(Stdio::null()).status().is_ok_and(|status| status.success()) {
        skip!("mount-namespace", "only root can create mount namespaces, and not in every container");
    }
    let (dir, port) = (tempfile::tempdir().unwrap(), Port::hold());
    for name in ["bin", "public"] {
        fs::create_dir(dir.path().join(name)).unwrap();
        readable(&dir.path().join(name));
    }
    readable(dir.path());
    copy_program(&program(), &dir.path().join("bin/howdah"));
    copy_program(&php_program(), &dir.path().join("bin/howdah-php"));
    fs::copy(format!("{IMAGE}/howdah.toml"), dir.path().join("howdah.toml")).unwrap();
    let visits = format!("<?php\n{}", php!("containers/visits.php"));
    fs::write(dir.path().join("public/visits.php"), visits).unwrap();
    let log = fs::File::create(dir.path().join("log")).unwrap();
    let said = || fs::read_to_string(dir.path().join("log")).unwrap();

    let (made, volumes, user) = dockerfile();
    let mut command = Command::new("unshare");
    command.args([
        "--mount",
        "--propagation",
        "private",
        "--pid",
        "--fork",
        "--kill-child",
        "--mount-proc",
        "sh",
        "-c",
        ENTER,
    ]);
    command.arg(dir.path()).args([&made, &volumes, &user]);
    command.args(["/mnt/bin/howdah", "serve", "/mnt/public", "--config", "/mnt/howdah.toml", "--workers", "1"]);
    command.arg("--listen").arg(format!("127.0.0.1:{}", port.number));
    command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command.current_dir("/").stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
    let mut container = Container { process: command.spawn().unwrap() };

    let target = Target::Tcp(([127, 0, 0, 1], port.number).into());
    let first = || {
        let mut conn = Conn::try_open(&target).ok()?;
        conn.try_send(&Request::get("/visits.php").close().bytes()).ok()?;
        conn.try_response("GET")
    };
    let mut response = None;
    let served = eventually(PATIENCE, || {
        response = first().or_else(|| response.take());
        response.is_some() || container.process.try_wait().unwrap().is_some()
    });
    let response = response.filter(|_| served).unwrap_or_else(|| panic!("{}", said())).expect(200);
    let cookie =
        response.header("set-cookie").unwrap_or_else(|| panic!("{}", said())).split(';').next().unwrap().to_owned();
    assert_eq!(response.text(), format!("{user} 1 1"));
    let again = Request::get("/visits.php").header("Cookie", &cookie).close();
    assert_eq!(Conn::open(&target).exchange(&again).expect(200).text(), format!("{user} 2 1"), "{}", said());

    // The image's health check, run inside as by an engine.
    let inside = container.server().unwrap().to_string();
    let mut check = Command::new("nsenter");
    check.args(["--target", &inside, "--mount", "--pid", "--setuid", &user, "--setgid", &user]);
    let check = check.args(["/mnt/bin/howdah", "status", "--config", "/mnt/howdah.toml", "--json"]).output().unwrap();
    assert!(check.status.success(), "{}", String::from_utf8_lossy(&check.stderr));
    process::signal(container.server().unwrap(), rustix::process::Signal::TERM);
    let status = wait_for_exit(&mut container.process, PATIENCE);
    assert!(status.is_some_and(|status| status.success()), "{status:?} {}", said());
}
