//! `howdah-fpm`: PHP-FPM's command line and configuration, compared with PHP-FPM itself if that is installed.

use howdah_skip::skip;
use howdah_tests::fpm::{Fpm, front, get, howdah_fpm, is_root, open_directory, php_fpm};
use howdah_tests::nginx::Nginx;
use howdah_tests::process::{PATIENCE, eventually, signal, wait_for_exit};
use howdah_tests::service::Manager;
use howdah_tests::site::replace_file;
use howdah_tests::{Response, php};
use rustix::process::Signal;
use serde_json::Value;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// Two pools of two users that differ in every directive that can differ.
const POOLS: &str = "\
[global]
pid = fpm.pid
error_log = error.log
daemonize = no
include = pool.d/*.conf
";

const A: &str = "\
[a]
user = www-data
group = www-data
listen = $pool.sock
listen.owner = www-data
listen.group = daemon
listen.mode = 0640
pm = static
pm.max_children = 2
pm.status_path = /$pool/status
ping.path = /$pool/ping
ping.response = \"it is $pool\"
request_slowlog_timeout = 1s
slowlog = slow.log
security.limit_extensions = .php .html
env[POOL] = $pool
php_admin_value[memory_limit] = 32M
php_flag[display_errors] = off
";

const B: &str = "\
; the second one
[b]
user = daemon
listen = b.sock
listen.mode = 0600
pm = dynamic
pm.max_children = 4
pm.start_servers = 2
pm.min_spare_servers = 1
pm.max_spare_servers = 3
pm.status_path = /b/status
ping.path = /b/ping
clear_env = no
php_value[precision] = 5
";

fn write_pools(top: &Path) {
    fs::create_dir(top.join("pool.d")).unwrap();
    fs::write(top.join("php-fpm.conf"), POOLS).unwrap();
    fs::write(top.join("pool.d/a.conf"), A).unwrap();
    fs::write(top.join("pool.d/b.conf"), B).unwrap();
}

/// Fields of the status page.
const POOL_FIELDS: &[&str] = &[
    "pool",
    "process manager",
    "start time",
    "start since",
    "accepted conn",
    "listen queue",
    "max listen queue",
    "listen queue len",
    "idle processes",
    "active processes",
    "total processes",
    "max active processes",
    "max children reached",
    "slow requests",
];
const WORKER_FIELDS: &[&str] = &[
    "pid",
    "state",
    "requests",
    "request duration",
    "request method",
    "request uri",
    "content length",
    "user",
    "script",
    "last request cpu",
    "last request memory",
];

/// The fields of a page in the order of their first occurrence.
fn order(text: &str) -> Vec<&'static str> {
    let text = text.to_lowercase();
    let place = |name: &&'static str| {
        let spelled = [name.to_string(), name.replace(' ', "-")];
        let marks = [("\"", "\":"), ("\n", ":"), ("<", ">"), ("<th>", "</th>")];
        let forms = spelled.iter().flat_map(|name| marks.map(|(before, after)| format!("{before}{name}{after}")));
        let page = format!("\n{text}");
        Some((forms.filter_map(|form| page.find(&form)).min()?, *name))
    };
    let mut found: Vec<_> = POOL_FIELDS.iter().chain(WORKER_FIELDS).filter_map(place).collect();
    found.sort_unstable();
    found.into_iter().map(|(_, name)| name).collect()
}

/// The shape of a page: its words without numbers, dates and addresses.
fn form(text: &str) -> String {
    let shape = text.replace(|c: char| c.is_ascii_digit(), "0");
    let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let mut form = months.iter().fold(shape, |text, month| text.replace(month, "MON"));
    while form.contains("00") {
        form = form.replace("00", "0");
    }
    form
}

#[test]
fn pools_of_several_users_are_served_as_by_php_fpm() {
    if !is_root() {
        return;
    }
    let Some((php_fpm, version)) = php_fpm() else { skip!("php-fpm", "the server to compare with") };
    let (mine, truth, root) = (open_directory(), open_directory(), open_directory());
    for pool in ["a", "b"] {
        fs::create_dir(root.path().join(pool)).unwrap();
        for (name, text) in [
            ("facts.php", format!("<?php\n{}", php!("fpm/facts.php"))),
            ("status.php", "<?php echo json_encode(fpm_get_status());".to_owned()),
            ("page.html", "<?php echo 'a page';".to_owned()),
            ("slow.php", format!("<?php\n{}", php!("fpm/slow.php"))),
        ] {
            fs::write(root.path().join(pool).join(name), text).unwrap();
        }
    }
    let start = |program: &Path, top: &Path| {
        write_pools(top);
        // The default location for PHP-FPM.
        symlink(format!("/etc/php/{version}/fpm/php.ini"), top.join("php.ini")).unwrap();
        let fpm = Fpm::start(program, top, &["a.sock", "b.sock"]);
        let nginx = front(top, &["a", "b"], root.path());
        (fpm, nginx)
    };
    let (ours, our_front) = start(&howdah_fpm(mine.path()), mine.path());
    let (theirs, their_front) = start(&php_fpm, truth.path());
    let both = |target: &str| [get(&our_front, target), get(&their_front, target)];
    std::thread::scope(|scope| {
        let slow = scope.spawn(|| both("/a/slow.php").map(|response| response.text()));
        for (target, field) in [("/a/facts.php", "a"), ("/b/facts.php", "outside")] {
            let [own, truth] = both(target).map(|response| response.expect(200).json());
            for name in
                ["user", "group", "env", "memory", "may_change", "display", "precision", "sapi", "finish", "cwd"]
            {
                assert_eq!(own[name], truth[name], "{target} {name} ({field})");
            }
            assert_eq!(own["cleared"], truth["cleared"], "{target}");
        }
        for (target, status) in
            [("/a/page.html", 200), ("/b/page.html", 403), ("/a/none.php", 404), ("/a/ping", 200), ("/b/ping", 200)]
        {
            let [own, truth] = both(target);
            assert_eq!((own.status, own.text()), (truth.status, truth.text()), "{target}");
            assert_eq!(own.status, status, "{target}");
        }
        for query in ["", "?json", "?xml", "?html", "?openmetrics", "?full", "?json&full", "?xml&full", "?html&full"] {
            let [own, truth] = both(&format!("/b/status{query}"));
            for field in ["content-type", "expires", "cache-control"] {
                assert_eq!(own.header(field), truth.header(field), "{query} {field}");
            }
            let [own, truth] = [own.text(), truth.text()];
            if query.contains("full") {
                assert_eq!(order(&own), order(&truth), "{query}");
                assert_eq!(order(&own).len(), POOL_FIELDS.len() + WORKER_FIELDS.len(), "{query}: {own}");
            } else {
                // PHP-FPM swaps the two comments in one place.
                let lines = |text: &str| {
                    let mut lines: Vec<String> = form(text).lines().map(str::to_owned).collect();
                    lines.sort();
                    lines
                };
                assert_eq!(lines(&own), lines(&truth), "{query}");
            }
        }
        let keys = |response: Response| {
            let status = response.expect(200).json();
            let of = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
            (of(&status), of(&status["procs"][0]), status["pool"].clone(), status["process-manager"].clone())
        };
        let [own, truth] = both("/b/status.php");
        assert_eq!(keys(own), keys(truth));
        assert_eq!(get(&our_front, "/b/status?json").json()["pool"], "b");
        assert_eq!(slow.join().unwrap(), ["done", "done"]);
    });
    let entry = |top: &Path| {
        let text = fs::read_to_string(top.join("slow.log")).unwrap_or_default();
        let text = text.replace(|c: char| c.is_ascii_hexdigit() && !c.is_ascii_uppercase(), "0");
        form(&text)
    };
    assert_eq!(entry(mine.path()), entry(truth.path()), "{}", ours.log());
    for socket in ["a.sock", "b.sock"] {
        let access = |top: &Path| {
            let found = fs::metadata(top.join(socket)).unwrap();
            (found.mode() & 0o777, found.gid())
        };
        let (own, truth) = (access(mine.path()), access(truth.path()));
        assert_eq!(own.0, truth.0, "{socket}");
        assert!(socket == "b.sock" || own == truth, "{socket}");
    }
    assert_eq!(fs::read_to_string(mine.path().join("fpm.pid")).unwrap(), ours.process.id().to_string());
    reload_and_reopen(&ours, &our_front);
    ours.end();
    theirs.end();
}

/// PHP-FPM's signals: USR2 reloads the configuration, USR1 reopens the logs.
fn reload_and_reopen(fpm: &Fpm, front: &Nginx) {
    replace_file(&fpm.top.join("pool.d/a.conf"), A.replace("= 32M", "= 48M"));
    signal(fpm.process.id(), Signal::USR2);
    let is_new = || get(front, "/a/facts.php").text().contains("\"memory\":\"48M\"");
    assert!(eventually(PATIENCE, is_new), "{}", fpm.log());
    // An invalid configuration changes nothing.
    replace_file(&fpm.top.join("pool.d/a.conf"), A.replace("= static", "= none"));
    signal(fpm.process.id(), Signal::USR2);
    assert!(eventually(PATIENCE, || fpm.log().contains("pm = none")), "{}", fpm.log());
    assert!(is_new());
    // The directory belongs to root, so only an existing file can be reopened.
    signal(fpm.process.id(), Signal::USR1);
    assert_eq!(get(front, "/b/ping").text(), "pong");
}

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

#[test]
fn debians_own_configuration_is_tested_and_started_unchanged() {
    if !is_root() {
        return;
    }
    let Some((_, version)) = php_fpm() else { skip!("php-fpm", "its configuration") };
    let directory = open_directory();
    let config = format!("/etc/php/{version}/fpm/php-fpm.conf");
    let fpm = howdah_fpm(directory.path());
    let tested = Command::new(&fpm).args(["-t", "--fpm-config", &config]).output().unwrap();
    let said = text(&tested);
    assert!(tested.status.success() && said.contains(&format!("{config} test is successful")), "{said}");
    fs::write(directory.path().join("www.php"), "<?php echo exec('id -un'), ' ', PHP_SAPI;").unwrap();
    // The directories of the configuration, as they are after a boot, and the command line of Debian's unit.
    let mounts = "mount -t tmpfs tmpfs /run && mount -t tmpfs tmpfs /var/log && mkdir /run/php && exec \"$0\" \"$@\"";
    let manager = Manager::bind(&directory.path().join("notify.sock"));
    // As with systemd's socket: the server runs as another user by then.
    fs::set_permissions(directory.path().join("notify.sock"), PermissionsExt::from_mode(0o777)).unwrap();
    let log = fs::File::create(directory.path().join("log")).unwrap();
    let mut command = Command::new("unshare");
    command.args(["--mount", "--", "setpriv", "--pdeathsig", "KILL", "--", "sh", "-c", mounts]).arg(&fpm);
    command.args(["--nodaemonize", "--fpm-config", &config]).stdin(Stdio::null()).stderr(log);
    let mut process = command.env("NOTIFY_SOCKET", directory.path().join("notify.sock")).spawn().unwrap();
    let ready = manager.until("READY=1");
    let own_root = format!("/proc/{}/root", ready.pid);
    let read = |path: &str| fs::read_to_string(format!("{own_root}{path}")).unwrap_or_default();
    assert_eq!(read(&format!("/run/php/php{version}-fpm.pid")), ready.pid.to_string());
    let nginx = Nginx::start(1, |_, ports| {
        format!(
            "server {{ listen 127.0.0.1:{}; root {}; location / {{ include /etc/nginx/fastcgi.conf;
               fastcgi_pass unix:{own_root}/run/php/php{version}-fpm.sock; }} }}",
            ports[0],
            directory.path().display()
        )
    });
    assert_eq!(get(&nginx, "/www.php").expect(200).text(), "www-data fpm-fcgi");
    // Reloads as Debian's unit does.
    signal(ready.pid, Signal::USR2);
    let _ = manager.until("RELOADING=1");
    let _ = manager.until("READY=1");
    assert_eq!(get(&nginx, "/www.php").expect(200).text(), "www-data fpm-fcgi");
    assert!(read(&format!("/var/log/php{version}-fpm.log")).contains("reload"));
    signal(ready.pid, Signal::TERM);
    let status = wait_for_exit(&mut process, PATIENCE);
    assert!(status.is_some_and(|status| status.success()), "{status:?}");
}

#[test]
fn a_wrong_configuration_or_command_line_ends_as_php_fpm_does() {
    let directory = open_directory();
    let fpm = howdah_fpm(directory.path());
    let config = directory.path().join("fpm.conf");
    let run = |text: &str, flags: &[&str]| {
        fs::write(&config, text).unwrap();
        Command::new(&fpm).arg("-R").args(flags).arg("-y").arg(&config).output().unwrap()
    };
    for (page, message) in [
        ("[global]\n", "No pool defined"),
        (
            "[a]\nlisten = a.sock\npm = static\npm.max_children = 1\nno.such = 1\n",
            "fpm.conf:5: unknown entry 'no.such'",
        ),
        ("[a]\nlisten = a.sock\npm = static\n", "[pool a] pm needs pm.max_children"),
        ("include = none.conf\n", "none.conf"),
    ] {
        let output = run(page, &["-t"]);
        let said = text(&output);
        assert_eq!(output.status.code(), Some(78), "{said}");
        assert!(said.contains(message) && said.contains("FPM initialization failed"), "{said}");
        assert_eq!(run(page, &["-F"]).status.code(), Some(78));
    }
    let output = run("", &["--no-such-flag"]);
    assert!(output.status.code() == Some(64) && text(&output).contains("Usage: "), "{}", text(&output));
    let version = run("", &["-v"]);
    assert!(version.status.success() && text(&version).starts_with("PHP 8."), "{}", text(&version));
}

#[test]
fn in_the_background_it_serves_before_the_command_ends() {
    let directory = open_directory();
    let top = directory.path();
    let config =
        "[global]\npid = fpm.pid\nerror_log = error.log\n[a]\nlisten = a.sock\npm = static\npm.max_children = 1\n";
    fs::write(top.join("fpm.conf"), config).unwrap();
    let fpm = howdah_fpm(top);
    let start = || {
        let mut command = Command::new(&fpm);
        command.args(["-D", "-R", "-p"]).arg(top).arg("-y").arg(top.join("fpm.conf")).env("TMPDIR", top);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap()
    };
    assert!(start().success(), "{}", fs::read_to_string(top.join("error.log")).unwrap_or_default());
    let pid: u32 = fs::read_to_string(top.join("fpm.pid")).unwrap().parse().unwrap();
    assert!(std::os::unix::net::UnixStream::connect(top.join("a.sock")).is_ok());
    // A second server cannot bind the socket, and reports that by its exit status.
    assert!(!start().success());
    signal(pid, Signal::TERM);
    let is_gone = || !top.join("a.sock").exists() && !top.join("fpm.pid").exists();
    assert!(eventually(PATIENCE, is_gone), "{}", fs::read_to_string(top.join("error.log")).unwrap_or_default());
}
