//! `howdah upgrade`: another process replaces the server. No request is lost, and failures affect only the new process.

use super::http3::{self, Client};
use super::users::{number, two_users};
use howdah_tests::howdah::{copy_program, link_to_program, program};
use howdah_tests::process::{self, PATIENCE, alive, eventually};
use howdah_tests::site::{Port, replace_file};
use howdah_tests::{Conn, Mode, Request, Setup, Site, Target, h2, limit, repetitions, scenario, script_scenario};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

const WHO: &str = "usleep(500); echo getmypid();";

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// Process id of the server that responds now.
fn server(site: &Site) -> u32 {
    let status = site.howdah().status();
    u32::try_from(status["pid"].as_u64().unwrap()).unwrap()
}

/// Points the link through which the server was started to another program.
fn install(site: &Site, program: &Path) {
    let (link, new) = (link_to_program(site.place()), site.place().top.join("new-link"));
    std::os::unix::fs::symlink(program, &new).unwrap();
    std::fs::rename(new, link).unwrap();
}

/// Upgrades the server, and waits for the predecessor to end.
fn upgrade(site: &Site) {
    let before = process::identity(server(site)).unwrap();
    let output = site.howdah().command(&["upgrade"]);
    assert!(output.status.success(), "{}\nlog:\n{}", text(&output), site.howdah().log());
    assert_ne!(server(site), before.pid);
    assert!(
        eventually(PATIENCE, || !alive(before)),
        "process {} has not ended; log:\n{}",
        before.pid,
        site.howdah().log()
    );
}

/// Sends requests until a response is declared the connection's last one: the command may return before the old process
/// has notified its threads.
fn closes_with_a_response(conn: &mut Conn) {
    let last = || conn.exchange(&Request::get("/who.php")).expect(200).header("connection") == Some("close");
    assert!(eventually(PATIENCE, last), "the connection stays");
    assert!(conn.closed_by_server());
}

fn times() -> usize {
    usize::try_from(repetitions("HOWDAH_TEST_UPGRADES", 3, 1)).unwrap()
}

/// Upgrades while `client` sends requests in this many threads and counts the responses.
fn under_load(site: &Site, threads: usize, client: impl Fn(usize, &AtomicBool, &AtomicU64) + Sync) {
    let (stop, served) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        let clients: Vec<_> = (0..threads)
            .map(|number| {
                let (client, stop, served) = (&client, &stop, &served);
                scope.spawn(move || client(number, stop, served))
            })
            .collect();
        let upgrades = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            for _ in 0..times() {
                let before = served.load(Ordering::Relaxed);
                let loaded = eventually(PATIENCE, || {
                    served.load(Ordering::Relaxed) > before + 20 || clients.iter().any(|client| client.is_finished())
                });
                assert!(loaded, "no request gets a response");
                upgrade(site);
            }
        }));
        stop.store(true, Ordering::Relaxed);
        clients.into_iter().for_each(|client| client.join().unwrap());
        upgrades.unwrap();
    });
}

script_scenario!(
    an_upgrade_loses_no_request_over_http_1,
    howdah_only = "upgrade is Howdah's command",
    |s| s.workers(2).unix_listener().php("who.php", WHO),
    |site| {
        let before = site.get_ok("/who.php");
        let shared = &*site;
        under_load(shared, 5, |number, stop, served| {
            let target = if number == 4 { shared.unix() } else { shared.target().clone() };
            let mut conn = Conn::open(&target);
            while !stop.load(Ordering::Relaxed) {
                let request = if number % 2 == 0 { Request::get("/who.php") } else { Request::form("/who.php", "a=1") };
                let response = conn.exchange(&request).expect(200);
                served.fetch_add(1, Ordering::Relaxed);
                if number == 0 || response.header("connection") == Some("close") {
                    conn = Conn::open(&target);
                }
            }
        });
        assert_ne!(site.get_ok("/who.php"), before);
        site.howdah_mut().follow();
    },
);

scenario!(
    an_upgrade_loses_no_request_over_http_2,
    howdah_only = "upgrade is Howdah's command",
    |s| s.workers(2).https().php("who.php", WHO),
    |site| {
        let shared = &*site;
        under_load(shared, 3, |_, stop, served| {
            let paths = vec!["/who.php".to_owned(); 8];
            while !stop.load(Ordering::Relaxed) {
                let answers = h2::get_all(shared.target(), &paths, |_| {});
                assert!(answers.iter().all(|answer| answer.ok));
                served.fetch_add(8, Ordering::Relaxed);
            }
        });
        site.howdah_mut().follow();
    },
);

scenario!(
    an_upgrade_loses_no_request_over_http_3,
    howdah_only = "upgrade is Howdah's command",
    // Equal for all workers of a server, and different for two servers.
    |s| http3::http3(s).workers(2).php("server.php", "echo posix_getppid();"),
    |site| {
        let mut clients: Vec<Client> = (0..2).map(|_| Client::talking(site, &["load", "/server.php"])).collect();
        for client in &mut clients {
            assert_eq!(client.line(), "seen");
        }
        for _ in 0..times() {
            upgrade(site);
            for client in &mut clients {
                assert_eq!(client.line(), "seen", "each connection reaches the new process");
            }
        }
        for client in clients {
            let told = client.end();
            assert_eq!(told["seen"].as_u64(), Some(times() as u64 + 1), "{told}");
        }
        site.howdah_mut().follow();
    },
);

scenario!(
    a_long_response_over_http_3_outlives_an_upgrade,
    howdah_only = "upgrade is Howdah's command",
    |s| http3::http3(s).workers(1).php("long.php", "require 'gate.php'; gate('g'); echo str_repeat('x', 3000000);"),
    |site| {
        let gate = site.gate("g");
        let mut client = Client::start(site, &["drain", "/long.php"]);
        assert_eq!(client.line(), "running");
        let held = gate.wait();
        let output = site.howdah().command(&["upgrade"]);
        assert!(output.status.success(), "{}", text(&output));
        // New clients reach the new process meanwhile.
        assert_eq!(http3::run(site, &["get", "/hello.php"])["text"], "hello");
        held.release();
        // The client's acknowledgements reach the old process only through the new one.
        let told = client.end();
        assert_eq!((&told["status"], &told["length"]), (&200.into(), &3_000_000.into()), "{told}");
        site.howdah_mut().follow();
    },
);

scenario!(
    connections_close_with_their_next_response,
    howdah_only = "upgrade is Howdah's command",
    |s| s.workers(2).php("who.php", WHO).php("hold.php", "require 'gate.php'; gate('g'); echo 'finished';"),
    |site| {
        let gate = site.gate("g");
        let mut used = site.conn();
        let before = used.exchange(&Request::get("/who.php")).expect(200).text();
        let (mut unused, mut held) = (site.conn(), site.conn());
        held.send(Request::get("/hold.php").bytes());
        let waiting = gate.wait();
        let old = site.howdah().pid();
        let output = site.howdah().command(&["upgrade"]);
        assert!(output.status.success(), "{}", text(&output));
        assert!(text(&output).contains(&format!("process {old} finishes its requests")), "{}", text(&output));
        let _ = site.wait_for_log(&[&format!("process {} has taken over", server(site))]);
        assert_ne!(site.get_ok("/who.php"), before, "new connections reach the new process");
        for conn in [&mut used, &mut unused] {
            closes_with_a_response(conn);
        }
        let again = site.howdah().command(&["upgrade"]);
        assert_eq!(again.status.code(), Some(1));
        assert!(text(&again).contains(&format!("process {old} still has connections")), "{}", text(&again));
        waiting.release();
        assert_eq!(held.response("GET").expect(200).text(), "finished");
        site.howdah_mut().follow();
    },
);

scenario!(
    the_time_to_drain_has_an_end,
    howdah_only = "upgrade is Howdah's command",
    |s| s
        .workers(1)
        .time("drain", "300ms")
        .setting("grace", "\"300ms\"")
        .expect_log("grace period")
        .expect_exit(None)
        .php("hold.php", "require 'gate.php'; gate('g'); echo 'finished';"),
    |site| {
        let gate = site.gate("g");
        let (mut idle, mut held) = (site.conn(), site.conn());
        let _ = idle.exchange(&Request::get("/ready.txt")).expect(200);
        held.send(Request::get("/hold.php").bytes());
        let waiting = gate.wait();
        let output = site.howdah().command(&["upgrade"]);
        assert!(output.status.success(), "{}", text(&output));
        assert!(idle.closed_by_server() && held.closed_by_server());
        site.howdah_mut().follow();
        drop(waiting);
    },
);

/// Installs a program that is not a server, for the scenarios about failures.
fn install_stand_in(site: &Site, script: &str) {
    let path = site.place().top.join("stand-in");
    replace_file(&path, format!("#!/bin/sh\n{script}\n"));
    std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    install(site, &path);
}

fn settings(site: &Site) -> PathBuf {
    site.place().run.join("howdah.toml")
}

fn refused(site: &Site, why: &str) {
    let output = site.howdah().command(&["upgrade"]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output));
    assert!(
        text(&output).contains(why) && text(&output).contains("the old process keeps serving"),
        "{}",
        text(&output)
    );
    assert_eq!(server(site), site.howdah().pid());
    let unix = Conn::open(&site.unix()).exchange(&Request::get("/hello.php")).expect(200).text();
    assert_eq!((site.get_ok("/hello.php"), unix), ("hello".to_owned(), "hello".to_owned()));
}

/// The server of these scenarios logs each failure.
fn failing(setup: Setup) -> Setup {
    setup.workers(1).unix_listener().linked_program().expect_log("upgrade failed").php("hello.php", "echo 'hello';")
}

scenario!(
    a_new_process_that_does_not_become_ready_leaves_the_old_one_as_it_was,
    howdah_only = "upgrade is Howdah's command",
    |s| failing(s).allow_log("no such").allow_log("cannot start").allow_log("howdah.toml").limit("boot_timeout", 1500),
    |site| {
        let too_slow = format!("was not ready within {:?} (twice `boot_timeout`)", 2 * limit(1500));
        for (script, why) in [
            ("exit 3", "has ended before it was ready: exit status: 3"),
            ("kill -SEGV $$", "signal: 11"),
            ("exec sleep 1000", &too_slow),
        ] {
            install_stand_in(site, script);
            refused(site, why);
        }
        install(site, Path::new("/does/not/exist"));
        refused(site, &format!("cannot start {}", link_to_program(site.place()).display()));
        install(site, &program());
        let good = std::fs::read(settings(site)).unwrap();
        replace_file(&settings(site), [&good[..], b"grace = \"a while\"\n"].concat());
        refused(site, "grace: expected a duration");
        replace_file(&settings(site), &good);
    },
);

scenario!(
    one_upgrade_at_a_time,
    howdah_only = "upgrade is Howdah's command",
    |s| failing(s).limit("boot_timeout", 2500),
    |site| {
        install_stand_in(site, "exec sleep 1000");
        std::thread::scope(|scope| {
            let first = scope.spawn(|| site.howdah().command(&["upgrade"]));
            let _ = site.wait_for_log(&["upgrade: starting"]);
            let second = site.howdah().command(&["upgrade"]);
            assert_eq!(second.status.code(), Some(1));
            assert!(text(&second).contains("an upgrade is already in progress"), "{}", text(&second));
            let reload = scope.spawn(|| site.howdah().command(&["reload"]));
            assert_eq!(first.join().unwrap().status.code(), Some(1));
            let reload = reload.join().unwrap();
            assert!(reload.status.success(), "the reload runs after the failed upgrade: {}", text(&reload));
        });
        install(site, &program());
        upgrade(site);
        site.howdah_mut().follow();
    },
);

scenario!(
    the_program_that_is_installed_now_takes_over,
    howdah_only = "upgrade is Howdah's command",
    |s| s.workers(1).linked_program().php("hello.php", "echo 'hello';"),
    |site| {
        let directory = site.place().top.join("release");
        std::fs::create_dir(&directory).unwrap();
        let next = directory.join("howdah");
        copy_program(&program(), &next);
        install(site, &next);
        upgrade(site);
        site.howdah_mut().follow();
        let running = |site: &Site| std::fs::read_link(format!("/proc/{}/exe", site.howdah().pid())).unwrap();
        assert_eq!(running(site), next);
        assert_eq!(site.get_ok("/hello.php"), "hello");
        // As a package manager does: the new file gets the name of the old one, which is gone then.
        let newer = directory.join("newer");
        copy_program(&program(), &newer);
        std::fs::rename(&newer, &next).unwrap();
        upgrade(site);
        site.howdah_mut().follow();
        assert_eq!(running(site), next);
    },
);

scenario!(
    no_order_names_the_program_that_is_started,
    howdah_only = "upgrade is Howdah's command",
    |s| s.workers(1).php("hello.php", "echo 'hello';"),
    |site| {
        let mark = site.place().top.join("started");
        let other = site.place().top.join("other");
        replace_file(&other, format!("#!/bin/sh\n: > {}\n", mark.display()));
        std::fs::set_permissions(&other, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let order = Request::new("POST", &format!("/upgrade?binary={}", other.display())).header("X-Howdah", "1");
        let refused = Conn::open(&site.howdah().admin()).exchange(&order).expect(400).text();
        assert!(refused.contains("no parameters"), "{refused}");
        assert!(!mark.exists(), "{} was started", other.display());
        assert_eq!(server(site), site.howdah().pid());
    },
);

/// True if only root can write to the program and the directories above it.
fn only_root_can_replace(program: &Path) -> bool {
    program.canonicalize().unwrap().ancestors().chain(program.ancestors()).all(|path| {
        let found = std::fs::metadata(path).unwrap();
        found.uid() == 0 && found.mode() & 0o022 == 0
    })
}

fn refused_to_root(site: &Site) {
    let output = site.howdah().command(&["upgrade"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output).contains("users other than root can change"), "{}", text(&output));
}

scenario!(
    an_upgrade_without_roots_rights_starts_a_server_that_drops_them_too,
    howdah_only = "users are Howdah's settings",
    |s| two_users(s).unix_listener().expect_log("upgrade failed").php("who.php", "echo posix_getuid();"),
    |site| {
        let www = number("www-data").to_string();
        if !only_root_can_replace(&program()) {
            refused_to_root(site);
            return;
        }
        for round in 0..2 {
            let before = site.howdah().processes();
            upgrade(site);
            site.howdah_mut().follow();
            let gone = eventually(PATIENCE, || !before.iter().any(|process| alive(*process)));
            assert!(gone, "the launcher and PHP of the old server end with it ({round})");
            let status = std::fs::read_to_string(format!("/proc/{}/status", site.howdah().pid())).unwrap();
            let uid = status.lines().find_map(|line| line.strip_prefix("Uid:")).unwrap().trim().to_owned();
            assert_eq!(uid.split('\t').next(), Some(number("nobody").to_string().as_str()), "{status}");
            let unix = Conn::open(&site.unix()).exchange(&Request::get("/who.php")).expect(200).text();
            assert_eq!((site.get_ok("/who.php"), unix), (www.clone(), www.clone()));
        }
        let good = std::fs::read(settings(site)).unwrap();
        replace_file(&settings(site), [&good[..], b"grace = \"a while\"\n"].concat());
        let failed = site.howdah().command(&["upgrade"]);
        assert!(text(&failed).contains("grace: expected a duration"), "{}", text(&failed));
        let unix = Conn::open(&site.unix()).exchange(&Request::get("/who.php")).expect(200).text();
        assert_eq!(unix, www, "the failed process has left the socket file alone");
    },
);

/// A separate site, whose PHP does not start.
const BROKEN: &str = r#"
hosts = "new.example"
root = "../../new"

[pool]
mode = "worker"
script = "../../new/broken.php"
"#;

scenario!(
    an_upgrade_whose_php_does_not_start_keeps_the_old_process,
    howdah_only = "upgrade is Howdah's command",
    |s| failing(s)
        .allow_log("broken now")
        .allow_log("ended before it")
        .file("../run/conf.d/30-local.toml", "hosts = \"localhost\"\nroot = \"../../root\"\n")
        .file("../new/broken.php", "<?php throw new Exception('broken now');"),
    |site| {
        let more = site.place().run.join("conf.d/40-new.toml");
        std::fs::write(&more, BROKEN).unwrap();
        refused(site, "pool new.example: ");
        std::fs::remove_file(&more).unwrap();
        upgrade(site);
        site.howdah_mut().follow();
    },
);

#[test]
fn reloads_before_and_after_upgrades_are_kept() {
    let second = Port::hold();
    let setup = Setup::default().workers(1).addresses_in_file().never_https().php("who.php", WHO);
    let mut site = Site::start(Mode::Classic, &setup);
    let toml = settings(&site);
    let first = format!("127.0.0.1:{}", site.port());
    let rest = std::fs::read_to_string(&toml).unwrap();
    let rest: Vec<_> = rest.lines().filter(|line| !line.starts_with("listen = ")).collect();
    let listen = |addresses: &str| replace_file(&toml, format!("listen = [{addresses}]\n{}\n", rest.join("\n")));
    let other = Target::Tcp(([127, 0, 0, 1], second.number).into());
    let reload = |site: &Site| assert!(site.howdah().command(&["reload"]).status.success(), "{}", site.howdah().log());

    listen(&format!("\"{first}\", \"127.0.0.1:{}\"", second.number));
    reload(&site);
    let mut idle = Conn::open(&other);
    let before = idle.exchange(&Request::get("/who.php")).expect(200).text();
    let output = site.howdah().command(&["upgrade"]);
    assert!(output.status.success(), "{}", text(&output));
    closes_with_a_response(&mut idle);
    site.howdah_mut().follow();
    let after = Conn::open(&other).exchange(&Request::get("/who.php")).expect(200).text();
    assert_eq!(site.get_ok("/who.php"), after);
    assert_ne!(before, after);

    listen(&format!("\"{first}\""));
    reload(&site);
    assert!(eventually(PATIENCE, || Conn::try_open(&other).is_err()), "the new process has closed it for good");
    assert_ne!(site.get_ok("/who.php"), after);
    upgrade(&site);
    site.howdah_mut().follow();
    assert!(Conn::try_open(&other).is_err());
    assert!(site.get_ok("/who.php").parse::<u32>().is_ok());
    site.finish();
}
