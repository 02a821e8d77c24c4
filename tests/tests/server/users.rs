//! The users of the server and of each pool's PHP, and attacks of PHP on the other processes: actually tried, from PHP.
//!
//! These run as root, as in a run of the whole test suite: no other user can switch to several users.

use howdah_skip::skip;
use howdah_tests::howdah::{copy_program, program};
use howdah_tests::process::{PATIENCE, eventually};
use howdah_tests::{Setup, Site, php, scenario, script_scenario};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::process::Command;

/// All means by which a process can inspect another one or act on it. Each reports "done" or the reason for its
/// failure.
const ATTACK: &str = php!("users/attack.php");

const ATTACK_BY_PID: &str = php!("users/attack_by_pid.php");

const WHO: &str = php!("users/who.php");

/// Actions of PHP on a process of the same user that succeed even if the process is not dumpable: the kernel requires
/// nothing more.
const OF_THE_USER: [&str; 3] = ["signal", "pidfd signal", "priority"];

fn attacks(setup: Setup) -> Setup {
    setup
        .ini("ffi.enable", "true")
        .library("attack_lib.php", ATTACK)
        .php("attack.php", ATTACK_BY_PID)
        .php("b/attack.php", ATTACK_BY_PID)
        .php("who.php", WHO)
        .php("b/who.php", WHO)
}

/// The server runs as one user, its two pools as two others.
fn three_users(setup: Setup) -> Setup {
    attacks(setup)
        .needs_root()
        .open_to_users()
        .setting("user", "\"nobody\"")
        .setting("php.user", "\"www-data\"")
        .setting("pool.b.user", "\"daemon\"")
        .setting("pool.b.workers", "1")
        .setting("rule", "[{ path = \"/b/*\", pool = \"b\" }]")
        .more_processes(2)
}

/// Output of a program about users.
fn said(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().unwrap();
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

pub(crate) fn number(user: &str) -> u64 {
    said("id", &["-u", user]).parse().unwrap()
}

fn group(name: &str) -> u64 {
    said("getent", &["group", name]).split(':').nth(2).unwrap().parse().unwrap()
}

/// True if the tests run as a user that can switch to several users.
fn can_be_others() -> bool {
    rustix::process::geteuid().is_root()
}

fn owner(pid: u32) -> u64 {
    owner_if_there(pid).unwrap_or_else(|| panic!("{pid} has ended"))
}

/// In snapshot mode a worker that has attacked others is replaced after its request.
fn owner_if_there(pid: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("Uid:")).unwrap();
    let ids: Vec<u64> = line.split_ascii_whitespace().map(|id| id.parse().unwrap()).collect();
    assert!(ids.iter().all(|id| *id == ids[0]), "the process could switch users back: {line}");
    Some(ids[0])
}

fn is_dumpable(pid: u32) -> bool {
    // These files belong to the process's user if it is dumpable, otherwise to root.
    fs::metadata(format!("/proc/{pid}/mem")).is_ok_and(|mem| mem.uid() != 0)
}

/// Successful actions in an attack on a process by the script at this path.
fn done(site: &Site, path: &str, query: &str) -> Vec<String> {
    let text = site.get_ok(&format!("{path}?{query}"));
    let result: BTreeMap<String, Value> = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e}: {text}"));
    result.into_iter().filter(|(_, how)| how == "done").map(|(name, _)| name).collect()
}

/// The attack itself succeeds if it is permitted.
fn attacks_work(site: &Site, path: &str) {
    let done = done(site, path, "own");
    for name in
        ["mem", "environ", "maps", "fd", "fd 0", "cwd", "ptrace seize", "process_vm_readv", "pidfd_getfd", "kcmp"]
            .into_iter()
            .chain(OF_THE_USER)
    {
        assert!(done.iter().any(|it| it == name), "{name} is not refused to a process of the same user: {done:?}");
    }
}

script_scenario!(
    pools_of_two_users_can_access_neither_each_other_nor_the_server,
    howdah_only = "the isolation of PHP-FPM's pools is not tested",
    three_users,
    |site| {
        let server = site.howdah().pid();
        assert_eq!(owner(server), number("nobody"));
        let mut pools: BTreeMap<u64, usize> = BTreeMap::new();
        let all: Vec<u32> = site.howdah().processes().iter().map(|identity| identity.pid).collect();
        for pid in &all {
            *pools.entry(owner(*pid)).or_default() += 1;
            assert!(!is_dumpable(*pid) || owner(*pid) == 0, "{pid}");
        }
        let users = [0, number("nobody"), number("www-data"), number("daemon")];
        assert!(users.iter().all(|user| pools.contains_key(user)) && pools.len() == 4, "{pools:?}");
        assert_eq!((pools[&0], pools[&number("nobody")]), (1, 1), "one launcher, one server");
        for (path, user) in [("/attack.php", "www-data"), ("/b/attack.php", "daemon")] {
            attacks_work(site, path);
            let mut tried = 0;
            for (pid, owner) in all.iter().filter_map(|pid| Some((pid, owner_if_there(*pid)?))) {
                let own = owner == number(user);
                let expected: &[&str] = if own { &OF_THE_USER } else { &[] };
                let done = done(site, path, &format!("pid={pid}"));
                let unexpected: Vec<_> = done.iter().filter(|name| !expected.contains(&name.as_str())).collect();
                assert!(unexpected.is_empty(), "{user} did to {pid} of {owner}: {unexpected:?}");
                tried += 1;
            }
            // At least the server, its launcher and two zygotes.
            assert!(tried >= 4, "{tried} of {}", all.len());
        }
    }
);

script_scenario!(
    a_server_of_the_same_user_is_closed_to_php,
    howdah_only = "nginx and PHP-FPM are two programs",
    |s| attacks(s).started_by("daemon").needs_root(),
    |site| {
        attacks_work(site, "/attack.php");
        let all: Vec<u32> = site.howdah().processes().iter().map(|identity| identity.pid).collect();
        let mut tried = 0;
        for pid in all {
            let Some(owner) = owner_if_there(pid) else { continue };
            tried += 1;
            assert_eq!(owner, number("daemon"));
            assert!(!is_dumpable(pid));
            let done = done(site, "/attack.php", &format!("pid={pid}"));
            let unexpected: Vec<_> = done.iter().filter(|name| !OF_THE_USER.contains(&name.as_str())).collect();
            assert!(unexpected.is_empty(), "PHP did to {pid}: {unexpected:?}");
        }
        assert!(tried >= 3, "the server, the zygote and a worker");
        // `check` reports what a single user cannot be kept from. The log does so only if root could have given PHP
        // another user.
        let log = site.log();
        assert!(!log.contains("scripts can signal the server"), "{log}");
    }
);

script_scenario!(
    php_has_its_users_groups_and_no_rights_of_root,
    howdah_only = "users are Howdah's settings",
    |s| {
        three_users(s)
            .setting("pool.b.groups", "[\"video\", \"audio\"]")
            .setting("pool.b.umask", "\"0077\"")
            .setting("pool.b.no_new_privs", "true")
            .setting("pool.b.limits", "{ nofile = 321, core = \"0:1M\", fsize = \"1G\" }")
            .php("b/limits.php", php!("users/php_has_its_users_groups_and_no_rights_of_root.php"))
    },
    |site| {
        let who = |path: &str| -> Value { serde_json::from_str(&site.get_ok(path)).unwrap() };
        let capabilities = |status: &str| {
            let sets = ["CapInh", "CapPrm", "CapEff", "CapAmb"];
            status
                .lines()
                .filter(|line| sets.iter().any(|set| line.starts_with(set)))
                .all(|line| line.ends_with(":\t0000000000000000"))
        };
        let a = who("/who.php");
        let (uid, gid) = (number("www-data"), group("www-data"));
        assert_eq!((&a["uid"], &a["gid"]), (&json!([uid, uid]), &json!([gid, gid])));
        let home = said("getent", &["passwd", "www-data"]).split(':').nth(5).map(str::to_owned);
        assert_eq!((a["user"].as_str(), a["home"].as_str()), (Some("www-data"), home.as_deref()));
        assert!(!a["groups"].as_array().unwrap().contains(&0.into()), "PHP keeps root's group: {}", a["groups"]);
        let status = a["status"].as_str().unwrap();
        assert!(capabilities(status) && status.contains("NoNewPrivs:\t0"), "{status}");

        let b = who("/b/who.php");
        let mut groups: Vec<u64> = b["groups"].as_array().unwrap().iter().filter_map(Value::as_u64).collect();
        groups.sort_unstable();
        let mut named = ["video", "audio"].map(group);
        named.sort_unstable();
        assert_eq!(groups, named);
        let status = b["status"].as_str().unwrap();
        assert!(capabilities(status) && status.contains("NoNewPrivs:\t1"), "{status}");
        let limits = who("/b/limits.php");
        assert_eq!(limits["mode"].as_str(), Some("600"));
        let text = limits["limits"].as_str().unwrap();
        let words = |name: &str| -> Vec<String> {
            let line = text.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("{name}: {text}"));
            line[name.len()..].split_ascii_whitespace().take(2).map(str::to_owned).collect()
        };
        assert_eq!(words("Max open files"), ["321", "321"]);
        assert_eq!(words("Max core file size"), ["0", "1048576"]);
        assert_eq!(words("Max file size"), ["1073741824", "1073741824"]);
        // A container's root may lack the right to raise limits.
        if Command::new("prlimit").args(["--nice=20:20", "true"]).output().unwrap().status.success() {
            assert_eq!(
                words("Max nice priority"),
                ["20", "20"],
                "a process that may raise priorities restores nice values"
            );
        } else {
            howdah_skip::record("nice-limit", "root may not widen the limit of the nice value here");
        }
    }
);

/// A server whose PHP runs as another user: actions of one on the other go through the launcher.
pub(crate) fn two_users(setup: Setup) -> Setup {
    setup.needs_root().open_to_users().setting("user", "\"nobody\"").setting("php.user", "\"www-data\"")
}

scenario!(
    sockets_and_logs_belong_to_their_users,
    howdah_only = "users are Howdah's settings",
    |s| {
        let s = s.unix_listener().setting("log.access", "\"@TOP@/access.log\"").file("a.txt", "a");
        two_users(s).setting("listen_group", "\"www-data\"").setting("admin_group", "\"daemon\"")
    },
    |site| {
        let about = |path: &std::path::Path| {
            let found = fs::symlink_metadata(path).unwrap();
            (u64::from(found.uid()), u64::from(found.gid()), found.mode() & 0o777)
        };
        let run = site.place().run.clone();
        assert_eq!(about(&run.join("http.sock")), (number("nobody"), group("www-data"), 0o660));
        assert_eq!(about(&run.join("admin.sock")), (0, group("daemon"), 0o660));
        // In a directory that belongs to root: created by root, and handed over.
        let log = site.place().top.join("access.log");
        assert_eq!(about(&log), (number("nobody"), group("nogroup"), 0o640));
        let has = |file: &std::path::Path, text: &str| {
            eventually(PATIENCE, || fs::read_to_string(file).is_ok_and(|content| content.contains(text)))
        };
        assert_eq!(site.get_ok("/a.txt?before"), "a");
        assert!(has(&log, "/a.txt?before"));
        // As logrotate does with `create 0640 nobody nogroup`.
        let old = site.place().top.join("access.log.1");
        fs::rename(&log, &old).unwrap();
        fs::write(&log, "").unwrap();
        assert!(Command::new("chown").arg("nobody:nogroup").arg(&log).status().unwrap().success());
        site.howdah().signal(Signal::USR1);
        let _ = site.wait_for_log(&["logs reopened"]);
        assert_eq!(site.get_ok("/a.txt?after"), "a");
        assert!(has(&log, "/a.txt?after") && !has_now(&old, "/a.txt?after"));
    },
);

fn has_now(file: &std::path::Path, text: &str) -> bool {
    fs::read_to_string(file).is_ok_and(|content| content.contains(text))
}

#[test]
fn root_opens_no_log_where_others_could_lead_it_elsewhere() {
    if !can_be_others() {
        skip!("root", "only root can switch users");
    }
    let directory = tempfile::tempdir().unwrap();
    let (top, precious) = (directory.path(), directory.path().join("precious"));
    fs::write(&precious, "root's").unwrap();
    fs::set_permissions(top, PermissionsExt::from_mode(0o755)).unwrap();
    fs::set_permissions(&precious, PermissionsExt::from_mode(0o600)).unwrap();
    let logs = top.join("logs");
    fs::create_dir(&logs).unwrap();
    assert!(Command::new("chown").arg("daemon").arg(&logs).status().unwrap().success());
    std::os::unix::fs::symlink(&precious, logs.join("error.log")).unwrap();
    fs::hard_link(&precious, logs.join("access.log")).unwrap();
    let root = top.to_str().unwrap();
    for log in ["error", "access"] {
        let set = format!("log.{log}={}", logs.join(format!("{log}.log")).display());
        let arguments = ["serve", root, "--user", "nobody", "--listen", "127.0.0.1:0", "--set", &set];
        let (code, said) = start_as_root(top, &arguments);
        assert!(code == Some(1) && said.contains("users other than root may change"), "{set}: {said}");
        assert_eq!(fs::metadata(&precious).unwrap().uid(), 0);
        assert_eq!(fs::read_to_string(&precious).unwrap(), "root's");
    }
}

/// The server's exit status and output when root starts it like this.
fn start_as_root(directory: &std::path::Path, arguments: &[&str]) -> (Option<i32>, String) {
    let output = Command::new(program())
        .args(arguments)
        .current_dir(directory)
        .env("TMPDIR", directory)
        .env_remove("HOWDAH_ALLOW_ROOT")
        .env("XDG_RUNTIME_DIR", directory)
        .output()
        .unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8_lossy(&text).into_owned())
}

#[test]
fn root_does_not_serve_without_a_setting_about_users() {
    if !can_be_others() {
        skip!("root", "only root can switch users");
    }
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().to_str().unwrap();
    for (arguments, status) in [(["serve", root], 2), (["check", root], 1)] {
        let (code, said) = start_as_root(directory.path(), &arguments);
        assert!(
            code == Some(status) && said.contains("--allow-root") && said.contains("user = \"www-data\""),
            "{said}"
        );
    }
    let (code, said) = start_as_root(directory.path(), &["check", root, "--allow-root"]);
    assert!(code == Some(0) && said.contains("allow_root = true"), "{said}");
    assert!(said.contains("# Users: PHP of pool default runs as the server's user root"), "{said}");
    let (code, said) = start_as_root(directory.path(), &["check", root, "--user", "nobody"]);
    assert!(code == Some(0) && said.contains("user = \"nobody\""), "{said}");
    // An unprivileged user cannot switch to another one.
    fs::set_permissions(directory.path(), PermissionsExt::from_mode(0o755)).unwrap();
    let binary = directory.path().join("howdah");
    copy_program(&program(), &binary);
    let output = Command::new("setpriv")
        .args(["--reuid=daemon", "--regid=daemon", "--clear-groups", "--"])
        .arg(&binary)
        .args(["check", root, "--user", "www-data"])
        .current_dir(directory.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        output.status.code() == Some(1)
            && said.contains("only root can become www-data; the server was started by daemon"),
        "{said}"
    );
}

#[test]
fn check_reports_the_risks_of_scripts_with_the_servers_user() {
    if !can_be_others() {
        skip!("root", "only root can switch users");
    }
    let directory = tempfile::tempdir().unwrap();
    fs::set_permissions(directory.path(), PermissionsExt::from_mode(0o755)).unwrap();
    let root = directory.path().to_str().unwrap();
    let check = |users: &str| {
        fs::write(directory.path().join("howdah.toml"), format!("root = {root:?}\n{users}")).unwrap();
        let (code, said) = start_as_root(directory.path(), &["check"]);
        assert_eq!(code, Some(0), "{said}");
        said
    };
    for users in ["user = \"nobody\"", "user = \"nobody\"\nphp.user = \"nobody\"\n[pool.b]\nuser = \"daemon\""] {
        let said = check(users);
        assert!(said.contains("# Users: PHP of pool default runs as the server's user nobody\n"), "{said}");
        assert!(said.contains("private keys"), "{said}");
    }
    let said = check("user = \"nobody\"\nphp.user = \"www-data\"");
    assert!(!said.contains("# Users:"), "{said}");
}

#[test]
fn serving_as_root_is_reported() {
    if !can_be_others() {
        skip!("root", "only root can switch users");
    }
    howdah_tests::run(
        howdah_tests::Mode::Classic,
        |s| s,
        |site| {
            let log = site.log();
            assert!(
                log.contains("WARN") && log.contains("running as root is unsafe") && log.contains("PHP runs as root"),
                "{log}"
            );
        },
    );
}
