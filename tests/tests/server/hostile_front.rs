//! Hostile clients and scripts at the HTTP front: limits on their cost, and data that they must never get.

use howdah_tests::howdah::{php_program, program};
use howdah_tests::process::{PATIENCE, eventually};
use howdah_tests::{Conn, Mode, Request, Site, Target, h2, php, scenario, script_scenario};
use std::os::unix::fs::symlink;
use std::process::{Command, Output, Stdio};

fn curl(site: &Site, arguments: &[&str], path: &str) -> Output {
    let url = format!("http://127.0.0.1:{}{path}", site.port());
    let common = ["-sS", "--http2-prior-knowledge", "--path-as-is", "--max-time", "120"];
    Command::new("curl").args(common).args(arguments).arg(url).output().unwrap()
}

/// All bytes up to the connection's end.
fn everything(conn: &mut Conn) -> Vec<u8> {
    std::iter::from_fn(|| conn.raw_byte()).collect()
}

fn status_over_http_2(site: &Site, arguments: &[&str], path: &str) -> String {
    let arguments = [&["-o", "/dev/null", "-w", "%{http_code}"], arguments].concat();
    String::from_utf8(curl(site, &arguments, path).stdout).unwrap()
}

/// The server's peak memory in KB.
fn peak(site: &Site) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", site.howdah().pid())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

script_scenario!(
    interim_answers_without_end_cost_the_server_no_memory,
    howdah_only = "PHP-FPM sends no interim responses",
    |s| {
        s.workers(2)
            .measures_memory()
            .php("flood.php", php!("hostile_front/interim_answers_without_end_cost_the_server_no_memory.php"))
            .php("fine.php", "echo 'fine';")
    },
    |site| {
        let before = peak(site);
        let mut silent: Vec<Conn> = (0..2).map(|_| site.conn()).collect();
        for conn in &mut silent {
            conn.send(Request::get("/flood.php").close().bytes());
        }
        // Its worker has processed all of it when it responds to the next request.
        for _ in 0..2 {
            assert_eq!(site.get_ok("/fine.php"), "fine");
        }
        for mut conn in silent {
            let all = everything(&mut conn);
            let hints = all.windows(13).filter(|part| *part == b"HTTP/1.1 103 ").count();
            assert!((1..=100).contains(&hints), "{hints}");
        }
        assert!(!curl(site, &["-i"], "/flood.php").stdout.is_empty());
        let grown = peak(site) - before;
        assert!(grown < 30_000, "{grown} KB");
    },
);

script_scenario!(
    thousands_of_header_lines_end_one_answer_with_a_5xx,
    howdah_only = "the reference's limit is 4 KB",
    |s| { s.workers(1).php("h.php", php!("hostile_front/thousands_of_header_lines_end_one_answer_with_a_5xx.php")) },
    |site| {
        for kind in ["X", "Set-Cookie"] {
            assert_eq!(site.get_ok(&format!("/h.php?k={kind}&n=990")), "end");
            for n in [1001, 30_000] {
                let path = format!("/h.php?k={kind}&n={n}");
                let status = site.get(&path).status;
                assert!(matches!(status, 500 | 502), "{n}: {status}");
                let status = status_over_http_2(site, &[], &path);
                assert!(matches!(&*status, "500" | "502"), "{n}: {status}");
                let _ = site.wait_for_log(&[&path]);
            }
        }
        assert_eq!(site.get_ok("/h.php?k=X&n=1"), "end");
    },
);

script_scenario!(
    over_http_2_an_answer_with_a_false_length_is_an_error,
    howdah_only = "the reference speaks no HTTP/2 here",
    |s| { s.workers(1).php("l.php", php!("hostile_front/over_http_2_an_answer_with_a_false_length_is_an_error.php"),) },
    |site| {
        let gate = site.gate("g");
        let ask = |n: u32| {
            let mut held = true;
            // After the first part the head is sent, with the length that the script declared.
            let (body, reset) = h2::get_or_reset(site.target(), &format!("/l.php?n={n}"), |_| {
                if std::mem::take(&mut held) {
                    gate.release();
                }
            });
            (String::from_utf8(body).unwrap(), reset)
        };
        assert_eq!(ask(10), ("0123456789".to_owned(), None));
        const INTERNAL_ERROR: Option<u32> = Some(2);
        assert_eq!(ask(5), ("01234".to_owned(), INTERNAL_ERROR));
        assert_eq!(ask(7), ("01234".to_owned(), INTERNAL_ERROR));
        // The reset overtakes data that was not written yet.
        let (body, reset) = ask(20);
        assert!("0123456789".starts_with(&body) && reset == INTERNAL_ERROR, "{body:?} {reset:?}");
    },
);

scenario!(a_file_that_was_deleted_or_changed_is_not_sent_any_more, |s| s, |site| {
    let path = site.file("f.txt");
    let large = "l".repeat(100_000);
    let mut conn = site.conn();
    let mut ask = || conn.exchange(&Request::get("/f.txt"));
    for round in 0..10 {
        for content in [format!("round {round:>4}"), format!("{large}{round:>4}")] {
            std::fs::write(&path, &content).unwrap();
            assert_eq!(ask().expect(200).text(), content);
            std::fs::remove_file(&path).unwrap();
            assert_eq!(ask().status, 404);
        }
    }
});

scenario!(
    a_file_may_be_believed_for_longer_where_the_settings_say_so,
    howdah_only = "the reference checks the file for each request",
    |s| s.file("f.txt", "content").time("static.revalidate_after", "1h"),
    |site| {
        // Files modified a moment ago are not cached; later they are.
        let mut number = 0;
        assert!(eventually(PATIENCE, || {
            number += 1;
            let before = site.get("/f.txt").text();
            std::fs::write(site.file("f.txt"), number.to_string()).unwrap();
            site.get("/f.txt").text() == before
        }));
        let believed = site.get("/f.txt").text();
        std::fs::write(site.file("f.txt"), "another").unwrap();
        assert_eq!(site.get("/f.txt").text(), believed);
        // A deployment reloads, which invalidates everything cached before.
        assert!(site.howdah().command(&["reload"]).status.success());
        assert_eq!(site.get("/f.txt").text(), "another");
    },
);

const SECRET: &str = "hunter2-in-the-settings";

scenario!(
    the_servers_own_files_are_not_sent_under_any_name,
    howdah_only = "the reference has no such files",
    |s| s.env("DB_PASSWORD", SECRET).file("page.css", "body {}").setting("log.access", "\"@TOP@/access.log\""),
    |site| {
        let toml = site.place().run.join("howdah.toml");
        assert!(std::fs::read_to_string(&toml).unwrap().contains(SECRET));
        let copy = |name: &str| std::fs::copy(&toml, site.file(name)).map(drop).unwrap();
        for name in [
            "howdah.toml",
            "HOWDAH.toml",
            "howdah.toml.gz",
            "howdah.toml.br",
            "howdah.toml.bak",
            "howdah.toml~",
            "howdah.toml.",
            "howdah.toml ",
            "old-howdah.prod.toml",
        ] {
            copy(name);
        }
        for name in ["hard.txt", "hard.css", "page.css.gz"] {
            std::fs::hard_link(&toml, site.file(name)).unwrap();
        }
        std::fs::hard_link(site.place().top.join("access.log"), site.file("log.txt")).unwrap();
        symlink("hard.txt", site.file("link.txt")).unwrap();
        symlink("howdah.toml", site.file("link2.txt")).unwrap();
        for path in [
            "/howdah.toml",
            "/%68owdah.toml",
            "/./howdah.toml",
            "//howdah.toml",
            "/HOWDAH.toml",
            "/howdah.toml.gz",
            "/howdah.toml.br",
            "/howdah.toml.bak",
            "/howdah.toml~",
            "/howdah.toml.",
            "/howdah.toml%20",
            "/old-howdah.prod.toml",
            "/hard.txt",
            "/hard.css",
            "/link.txt",
            "/link2.txt",
            "/page.css.gz",
            "/log.txt",
            "/howdah.toml?x",
            "/howdah.toml/",
        ] {
            for (method, header) in [
                ("GET", ("X-None", "1")),
                ("HEAD", ("X-None", "1")),
                ("GET", ("Range", "bytes=0-9")),
                ("GET", ("Accept-Encoding", "gzip, br")),
                ("GET", ("If-None-Match", "*")),
                ("POST", ("X-None", "1")),
            ] {
                let response = site.send(&Request::new(method, path).header(header.0, header.1));
                let code = response.status;
                assert!(matches!(code, 403 | 404), "{method} {path} {header:?}: {code}");
                assert!(!response.text().contains(SECRET), "{method} {path}");
            }
            let code = status_over_http_2(site, &[], path);
            assert!(matches!(&*code, "403" | "404"), "{path} over HTTP/2: {code}");
        }
        let page = site.send(&Request::get("/page.css").header("Accept-Encoding", "gzip")).expect(200);
        assert_eq!((page.header("content-encoding"), page.text().as_str()), (None, "body {}"));
        // An editor replaces the old file with a new one, and keeps the old one.
        let next = site.place().run.join("next");
        std::fs::write(&next, SECRET).unwrap();
        std::fs::rename(&next, &toml).unwrap();
        std::fs::hard_link(&toml, site.file("new.txt")).unwrap();
        assert_eq!((site.get("/hard.txt").status, site.get("/new.txt").status), (403, 403));
    },
);

scenario!(
    scripts_cannot_hand_the_servers_own_files_over,
    howdah_only = "the reference has no such files",
    |s| {
        s.setting("static.x_accel_redirect", "{ \"/private/\" = \"@TOP@/run\" }")
            .setting("static.x_sendfile", "[\"@TOP@/run\"]")
            .env("DB_PASSWORD", SECRET)
            .php("h.php", "header($_GET['h'] . ': ' . $_GET['v']);")
    },
    |site| {
        let run = site.place().run.clone();
        std::fs::write(run.join("fine.txt"), "fine").unwrap();
        std::fs::write(run.join("x.php.bak"), SECRET).unwrap();
        std::fs::copy(run.join("howdah.toml"), run.join("howdah.toml.gz")).unwrap();
        std::fs::hard_link(run.join("howdah.toml"), run.join("hard.txt")).unwrap();
        for (field, start) in [("X-Accel-Redirect", "/private".to_owned()), ("X-Sendfile", run.display().to_string())] {
            let ask = |name: &str| site.get(&format!("/h.php?h={field}&v={start}/{name}"));
            assert_eq!(ask("fine.txt").expect(200).text(), "fine");
            for name in ["howdah.toml", "howdah.toml.gz", "hard.txt", "x.php.bak"] {
                let response = ask(name);
                assert!(
                    response.status >= 400 && !response.text().contains(SECRET),
                    "{field} {name}: {}",
                    response.status
                );
            }
        }
    },
);

scenario!(
    copies_of_source_are_not_sent_unless_the_settings_say_so,
    howdah_only = "nginx sends them",
    |s| {
        ["x.php.bak", "x.php.txt", "x.php~1~", "lib.inc", "x.php.gz", "x.module", "x.php.html", "app.toml"]
            .iter()
            .fold(s, |s, name| s.file(name, "<?php // source"))
    },
    |site| {
        for name in
            ["x.php.bak", "X.PHP.BAK", "x.php.txt", "x.php~1~", "lib.inc", "x.php.gz", "x.module", "%78.php.bak"]
        {
            let code = site.get(&format!("/{name}")).status;
            assert!(matches!(code, 403 | 404), "{name}: {code}");
        }
        for name in ["x.php.html", "app.toml"] {
            assert_eq!(site.get(&format!("/{name}")).status, 200, "{name}");
        }
    },
);

scenario!(
    the_list_of_names_that_are_not_sent_can_be_replaced,
    howdah_only = "the setting is Howdah's",
    |s| {
        let s = s.setting("static.never_send", "[\"*.sql\", \"!public.sql\"]");
        ["x.php.txt", "lib.inc", "dump.SQL", "public.sql", "old.phtml"]
            .iter()
            .fold(s, |s, name| s.file(name, "content"))
    },
    |site| {
        for (name, status) in
            [("x.php.txt", 200), ("lib.inc", 200), ("dump.SQL", 403), ("public.sql", 200), ("old.phtml", 403)]
        {
            assert_eq!(site.get(&format!("/{name}")).status, status, "{name}");
        }
    },
);

/// A new project as a beginner sets it up: the configuration next to the first script, nothing else configured.
#[test]
fn a_configuration_in_the_document_root_is_warned_of_and_not_sent() {
    let top = tempfile::tempdir().unwrap();
    let project = top.path().join("project");
    std::fs::create_dir(&project).unwrap();
    std::fs::write(project.join("index.php"), "<?php echo 'runs';").unwrap();
    std::fs::write(project.join("howdah.toml"), format!("[php]\nenv = {{ DB_PASSWORD = \"{SECRET}\" }}\n")).unwrap();
    let port = howdah_tests::site::Port::hold();
    let listen = format!("127.0.0.1:{}", port.number);
    let admin = format!("unix:{}", top.path().join("admin.sock").display());
    let howdah = |command: &str| {
        let mut howdah = Command::new(program());
        let php = php_program().display().to_string();
        howdah.args([command, "--listen", &listen, "--admin", &admin, "--workers", "1", "--php", &php]);
        howdah.current_dir(&project).env("TMPDIR", top.path()).env("HOWDAH_ALLOW_ROOT", "true");
        howdah
    };
    let warning = "is below the document root";
    let check = howdah("check").output().unwrap();
    assert!(check.status.success());
    assert!(String::from_utf8_lossy(&check.stderr).contains(warning), "{check:?}");

    let server = howdah("serve").stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let target = Target::Tcp(listen.parse().unwrap());
    assert!(eventually(PATIENCE, || Conn::try_open(&target).is_ok()));
    let ask = |request: &Request| Conn::open(&target).exchange(request);
    let runs = ask(&Request::get("/").close());
    let answers: Vec<_> = ["/howdah.toml", "/%68owdah.toml", "/howdah.toml?x", "/HOWDAH.TOML"]
        .iter()
        .flat_map(|path| {
            [Request::get(path), Request::new("HEAD", path), Request::get(path).header("Range", "bytes=0-")]
        })
        .map(|request| ask(&request.close()))
        .collect();
    let pid = rustix::process::Pid::from_child(&server);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    let said = String::from_utf8_lossy(&server.wait_with_output().unwrap().stderr).into_owned();
    assert!(said.contains(warning), "{said}");
    assert_eq!((runs.status, runs.text().as_str()), (200, "runs"));
    for response in answers {
        assert!(!response.text().contains(SECRET));
        // Another spelling is another file, which does not exist: the front controller responds.
        assert!(
            response.status == 403 || response.text() == "runs" || response.text().is_empty(),
            "{}",
            response.status
        );
    }
}

/// Each kind of ambiguous request body coding and host, on a whole server.
#[test]
fn ambiguous_messages_are_refused() {
    howdah_tests::run(
        Mode::Classic,
        |s| s.php("b.php", "echo $_SERVER['HTTP_HOST'] ?? '-', ' ', file_get_contents('php://input');"),
        |site| {
            let raw = |head: &str, body: &str| {
                let mut conn = site.conn();
                conn.send(format!("{head}\r\nConnection: close\r\n\r\n{body}"));
                let all = String::from_utf8_lossy(&everything(&mut conn)).into_owned();
                all.split(' ').nth(1).unwrap_or_default().to_owned()
            };
            let chunked = "2\r\nhi\r\n0\r\n\r\n";
            for (coding, status) in
                [("chunked", "200"), ("gzip, chunked", "501"), ("gzip\r\nTransfer-Encoding: chunked", "501")]
            {
                let head = format!("POST /b.php HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: {coding}");
                assert_eq!(raw(&head, chunked), status, "{coding}");
            }
            for (target, host, status) in [
                ("http://a.example/b.php", "a.example", "200"),
                ("http://evil:80x/b.php", "h", "400"),
                ("http://u@h/b.php", "h", "400"),
                ("/b.php", "evil:80x", "400"),
            ] {
                assert_eq!(raw(&format!("GET {target} HTTP/1.1\r\nHost: {host}"), ""), status, "{target} {host}");
            }
            assert_eq!(status_over_http_2(site, &["-H", "Host: other"], "/b.php"), "200");
            assert_eq!(site.get("/b.php").status, 200);
        },
    );
}
