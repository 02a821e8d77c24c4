//! `howdah-fpm` and PHP-FPM with the same configuration: access logs, messages in the web server's log, signals for
//! logs, and the programs' output.

use howdah_skip::skip;
use howdah_tests::fpm::{Fpm, front, get, howdah_fpm, is_root, open_directory, php_fpm};
use howdah_tests::nginx::Nginx;
use howdah_tests::process::{PATIENCE, eventually, signal};
use howdah_tests::{Conn, Request, Target, php};
use rustix::process::Signal;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::Path;
use std::process::Command;

/// Every field of `access.format`.
const FORMAT: &str = "100%% %C %{user}C %{system}C %d %{seconds}d %{milliseconds}d %{milli}d %{microseconds}d %{micro}d \
    %{REQUEST_METHOD}e %{HTTP_X_ASKED}e %{NONE}e %f %l %m %M %{bytes}M %{kilo}M %{mega}M %n %{X-Test}o %{X-None}o %p %P \
    %q %Q %r %R %s %t %{%Y-%m-%dT%H:%M:%S%z}t %T %{%e %b}T %u";

fn configuration(more: &str) -> String {
    format!(
        "[global]\npid = fpm.pid\nerror_log = error.log\ndaemonize = no\n[a]\nuser = www-data\nlisten = a.sock\n\
         listen.owner = www-data\nlisten.mode = 0666\npm = static\npm.max_children = 1\npm.status_path = /a/status\n\
         ping.path = /a/ping\nphp_admin_value[log_errors] = on\n\
         php_admin_value[display_errors] = off\n{more}"
    )
}

/// Starts a program in a directory with this configuration, and nginx in front of it.
fn start(program: &Path, top: &Path, root: &Path, configuration: &str) -> (Fpm, Nginx) {
    fs::write(top.join("php-fpm.conf"), configuration).unwrap();
    let fpm = Fpm::start(program, top, &["a.sock"]);
    (fpm, front(top, &["a"], root))
}

/// Replaces numbers by `N` and directories by `TOP`.
fn masked(text: &str, top: &Path) -> String {
    let text = text.replace(&top.display().to_string(), "TOP");
    let mut masked = String::new();
    for letter in text.chars() {
        match letter {
            '0'..='9' if masked.ends_with('N') => {}
            '0'..='9' => masked.push('N'),
            other => masked.push(other),
        }
    }
    masked
}

fn send(nginx: &Nginx, request: &Request) -> String {
    let mut conn = Conn::open(&Target::Tcp(([127, 0, 0, 1], nginx.port(0)).into()));
    conn.exchange(&request.clone().close()).text()
}

/// Messages in nginx's error log from the server behind it, with masked numbers: nginx may receive them in parts.
fn sent_to_log(nginx: &Nginx, root: &Path) -> String {
    let log = fs::read_to_string(nginx.directory().join("error.log")).unwrap_or_default();
    let parts = log.split("FastCGI sent in stderr: \"").skip(1);
    masked(&parts.map(|part| part.split("\" while").next().unwrap_or_default()).collect::<String>(), root)
}

#[test]
fn access_logs_and_messages_are_those_of_php_fpm() {
    if !is_root() {
        return;
    }
    let Some((php_fpm, _)) = php_fpm() else { skip!("php-fpm", "the server to compare with") };
    let (mine, truth, root) = (open_directory(), open_directory(), open_directory());
    fs::create_dir(root.path().join("a")).unwrap();
    fs::write(root.path().join("a/logs.php"), format!("<?php\n{}", php!("fpm/logs.php"))).unwrap();
    let format = format!(
        "access.log = access.log\naccess.format = '{FORMAT}'\naccess.suppress_path[] = /a/ping\n\
         access.suppress_path[] = /a/none.php\n"
    );
    let sides = [(howdah_fpm(mine.path()), mine.path()), (php_fpm, truth.path())].map(|(program, top)| {
        let (fpm, nginx) = start(&program, top, root.path(), &configuration(&format));
        for request in [
            Request::get("/a/logs.php?n=3&x=%20y"),
            Request::get("/a/logs.php").header("X-Asked", "yes"),
            Request::form("/a/logs.php?n=20000", "a=body"),
            Request::get("/a/logs.php").header("Authorization", "Basic YW5uYTpzZWNyZXQ="),
            // Excluded: its log line is plain, and specified.
            Request::get("/a/ping"),
            Request::get("/a/ping?x=1"),
            Request::get("/a/none.php"),
            Request::get("/a/status"),
        ] {
            let _ = send(&nginx, &request);
        }
        let log = || fs::read_to_string(top.join("access.log")).unwrap_or_default();
        assert!(eventually(PATIENCE, || log().lines().count() == 7), "{}\n{}", log(), fpm.log());
        let said = sent_to_log(&nginx, root.path());
        fpm.end();
        (log().lines().map(|line| masked(line, root.path())).collect::<Vec<_>>(), said)
    });
    let [(own_lines, own_said), (lines, said)] = sides;
    for (own, truth) in own_lines.iter().zip(&lines) {
        let plain = |line: &str| line.replace("a \"quoted\" one", "a \\xNquoted\\xN one");
        assert_eq!(*own, plain(truth));
    }
    assert_eq!(own_said, said);
    assert!(said.starts_with("PHP message: a first message; PHP message: one of"), "{said}");
}

#[test]
fn logs_are_rotated_as_logrotate_does_it() {
    if !is_root() {
        return;
    }
    let (top, root) = (open_directory(), open_directory());
    fs::create_dir(root.path().join("a")).unwrap();
    let (fpm, nginx) =
        start(&howdah_fpm(top.path()), top.path(), root.path(), &configuration("access.log = access.log\n"));
    let read = |name: &str| fs::read_to_string(top.path().join(name)).unwrap_or_default();
    assert!(eventually(PATIENCE, || get(&nginx, "/a/ping").text() == "pong"), "{}", fpm.log());
    assert!(eventually(PATIENCE, || !read("access.log").is_empty()), "{}", fpm.log());
    for name in ["access.log", "error.log"] {
        let file = top.path().join(name);
        let before = fs::metadata(&file).unwrap();
        fs::rename(&file, file.with_extension("log.1")).unwrap();
        // As with logrotate's `create`, which gives the new file the old one's attributes.
        fs::write(&file, "").unwrap();
        fs::set_permissions(&file, before.permissions()).unwrap();
        chown(&file, Some(before.uid()), Some(before.gid())).unwrap();
        assert_eq!(before.permissions().mode() & 0o7, 0, "others may read {name}");
    }
    let pid: u32 = read("fpm.pid").parse().unwrap();
    signal(pid, Signal::USR1);
    let reopened = || {
        let _ = get(&nginx, "/a/ping");
        !read("access.log").is_empty() && !read("error.log").is_empty()
    };
    assert!(eventually(PATIENCE, reopened), "{}", read("error.log.1"));
    fpm.end();
}

/// Lines of `-tt` without times and unrelated notices.
fn dumped(program: &Path, top: &Path, config: &Path) -> Vec<String> {
    let output = Command::new(program).args(["-tt", "-p"]).arg(top).arg("-y").arg(config).output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{text}");
    let lines = text.lines().filter_map(|line| line.split_once("] NOTICE: ").map(|(_, line)| line.to_owned()));
    // If it is not set, PHP-FPM 8.2 prints it as unknown.
    lines.filter(|line| line.starts_with(['\t', '[']) && !line.contains("log_level")).collect()
}

#[test]
fn the_dump_of_a_configuration_is_that_of_php_fpm() {
    let Some((php_fpm, version)) = php_fpm() else { skip!("php-fpm", "the program to compare with") };
    let top = open_directory();
    fs::create_dir(top.path().join("log")).unwrap();
    let config = top.path().join("fpm.conf");
    let own = howdah_fpm(top.path());
    for text in [
        configuration(
            "env[ONE] = 1\nenv[TWO] = $HOME\nenv[POOL] = $pool\nphp_value[error_log] = php.log\n\
             php_value[a] = none\nphp_value[b] = \"off\"\naccess.log = log/$pool.log\n",
        ),
        include_str!("php/fpm/every_directive.conf").to_owned(),
        fs::read_to_string(format!("/etc/php/{version}/fpm/php-fpm.conf")).unwrap(),
    ] {
        fs::write(&config, text).unwrap();
        assert_eq!(dumped(&own, top.path(), &config), dumped(&php_fpm, top.path(), &config));
    }
}

#[test]
fn php_describes_itself_as_in_php_fpm() {
    let Some((php_fpm, _)) = php_fpm() else { skip!("php-fpm", "the program to compare with") };
    let top = open_directory();
    let programs = [howdah_fpm(top.path()), php_fpm];
    let said = |flags: &[&str]| {
        programs.each_ref().map(|program| {
            let output = Command::new(program).args(flags).output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            String::from_utf8_lossy(&output.stdout).into_owned()
        })
    };
    // Each has its own modules; Debian builds pcntl only for command-line and embedding programs.
    let [mine, truth] = said(&["-m"]).map(|text| {
        text.lines()
            .filter(|line| !matches!(*line, "howdah" | "cgi-fcgi" | "pcntl"))
            .map(str::to_owned)
            .collect::<Vec<_>>()
    });
    assert_eq!(mine, truth);
    let [mine, truth] = said(&["-i", "-d", "precision=9"]);
    for name in ["PHP Version", "Loaded Configuration File", "Scan this dir for additional .ini files", "precision"] {
        let line = |text: &str| {
            let found = text.lines().find(|line| line.starts_with(&format!("{name} =>")));
            found.unwrap_or_else(|| panic!("no {name}")).to_owned()
        };
        assert_eq!(line(&mine), line(&truth));
    }
}
