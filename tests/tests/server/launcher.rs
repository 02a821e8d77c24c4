//! A server that has dropped root's rights: its launcher's work, and data that passes between users.

use crate::server::users::{number, two_users};
use howdah_tests::process::{self, PATIENCE, eventually};
use howdah_tests::{Conn, Part, Request, multipart, scenario, script_scenario};
use rustix::process::Signal;
use std::fs;

script_scenario!(
    bodies_and_answers_of_any_size_pass_between_users,
    howdah_only = "users are Howdah's settings",
    |s| two_users(s)
        .php("echo.php", "echo strlen($body = file_get_contents('php://input')), ' ', $body;")
        .php("upload.php", "echo file_get_contents($_FILES['f']['tmp_name']);"),
    |site| {
        for size in [1, 20_000, 60_000, 3_000_000] {
            let body = "x".repeat(size);
            let answer = site.send(&Request::new("POST", "/echo.php").body(body.clone())).expect(200).text();
            assert!(answer == format!("{size} {body}"), "{size}: {}", answer.len());
        }
        let file = "y".repeat(1_000_000);
        let request =
            multipart("/upload.php", &[Part { name: "f", file: Some(("a.bin", "a/b")), content: file.as_bytes() }]);
        assert!(site.send(&request).expect(200).text() == file);
    }
);

script_scenario!(
    workers_of_another_user_are_killed_and_replaced,
    howdah_only = "users are Howdah's settings",
    |s| two_users(s)
        .workers(1)
        .setting("deadline", "\"1s\"")
        .expect_log("past the deadline")
        .allow_log("zygote exited unexpectedly")
        .allow_log("ended before")
        .allow_log("cannot order a worker: Broken pipe")
        .php("who.php", "echo getmypid(), ' ', posix_getuid();")
        .php("hang.php", "function hangs() { while (true) { strlen(str_repeat('x', 100)); } } hangs();"),
    |site| {
        let www = number("www-data").to_string();
        let worker = || {
            let text = site.get_ok("/who.php");
            let (pid, uid) = text.split_once(' ').unwrap();
            assert_eq!(uid, www);
            pid.parse::<u32>().unwrap()
        };
        let first = worker();
        assert_eq!(site.get("/hang.php").status, 504);
        // In async mode only the request is cancelled at first.
        let log = site.wait_for_log(&["PHP stack: "]);
        assert!(log.contains("hangs"), "{log}");
        let second = worker();
        assert_ne!(first, second);
        // The process that forks them, and with it all its forks.
        let parent = |pid: u32| -> u32 {
            let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
            status.lines().find_map(|line| line.strip_prefix("PPid:")).unwrap().trim().parse().unwrap()
        };
        process::signal(parent(second), Signal::KILL);
        let replaced = eventually(PATIENCE, || !process_exists(second));
        assert!(replaced, "the worker ends with its zygote");
        let third = worker();
        assert_ne!(second, third);
        let reload = site.howdah().command(&["reload"]);
        assert!(reload.status.success(), "{reload:?}");
        assert_ne!(third, worker());
    }
);

fn process_exists(pid: u32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
}

scenario!(
    no_process_of_any_user_outlives_a_killed_server,
    howdah_only = "users are Howdah's settings",
    |s| two_users(s).unix_listener().expect_exit(None).php("a.php", "echo 'a';"),
    |site| {
        let socket = site.place().run.join("http.sock");
        let all: Vec<u32> = site.howdah().processes().iter().map(|identity| identity.pid).collect();
        assert!(socket.exists() && all.len() >= 5, "{all:?}");
        site.howdah().signal(Signal::KILL);
        assert!(
            eventually(PATIENCE, || all.iter().all(|pid| !process_exists(*pid))),
            "{:?}",
            site.howdah().processes()
        );
        // The launcher, which lives a moment longer, removes the files that the server no longer can.
        assert!(!socket.exists());
    },
);

scenario!(
    a_server_that_loses_its_launcher_ends,
    howdah_only = "users are Howdah's settings",
    |s| two_users(s)
        .expect_exit(Some(1))
        .expect_log("launcher exited unexpectedly: stopping the server")
        .allow_log("ended"),
    |site| {
        let server = site.howdah().pid();
        let launcher = process::children(server);
        assert_eq!(launcher.len(), 1, "{launcher:?}");
        process::signal(launcher[0], Signal::KILL);
        assert_eq!(site.howdah_mut().wait(), Some(1));
    },
);

const ADDED: &str = r#"
hosts = "new.example"
root = "../../new"

[pool]
user = "daemon"
workers = 1
env = { POOL = "added" }
"#;

scenario!(
    a_reload_adds_a_site_whose_pool_has_another_user,
    howdah_only = "users are Howdah's settings",
    |s| two_users(s)
        .file("../run/conf.d/30-local.toml", "hosts = \"localhost\"\nroot = \"../../root\"\n")
        .file("../new/who.php", "<?php echo posix_getuid(), ' ', getenv('POOL');")
        .expect_log("reload failed")
        .expect_log("unknown-account")
        .allow_log("no site has this host"),
    |site| {
        let file = site.place().run.join("conf.d/40-new.toml");
        let who = || {
            let mut conn = Conn::open(site.target());
            conn.send("GET /who.php HTTP/1.1\r\nHost: new.example\r\nConnection: close\r\n\r\n");
            conn.response("GET").text()
        };
        let reload = |settings: &str| {
            fs::write(&file, settings).unwrap();
            site.howdah().command(&["reload"])
        };
        let daemon = number("daemon");
        for pool in ["added", "changed"] {
            let reloaded = reload(&ADDED.replace("added", pool));
            assert!(reloaded.status.success(), "{reloaded:?}{}", site.log());
            assert_eq!(who(), format!("{daemon} {pool}"));
        }
        let refused = reload(&ADDED.replace("daemon", "unknown-account"));
        assert_eq!(refused.status.code(), Some(1), "{refused:?}");
        assert_eq!(who(), format!("{daemon} changed"));
        fs::remove_file(&file).unwrap();
        assert!(site.howdah().command(&["reload"]).status.success(), "{}", site.log());
    },
);
