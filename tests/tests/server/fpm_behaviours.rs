//! Behaviours that PHP's own tests of PHP-FPM require (`docs/internals/fpm.md`): the same requests to `howdah-fpm` and,
//! where it can be compared, to PHP-FPM.

use howdah_skip::skip;
use howdah_tests::fpm::{Fpm, front, get, howdah_fpm, is_root, open_directory, php_fpm};
use howdah_tests::nginx::Nginx;
use howdah_tests::process::{PATIENCE, eventually, signal};
use howdah_tests::site::Port;
use howdah_tests::{Conn, Request, Response, Target, php};
use rustix::process::Signal;
use std::fs;
use std::path::Path;
use std::process::Command;

const SCRIPT: &str = php!("fpm_behaviours/script.php");

const GLOBAL: &str = "[global]\npid = fpm.pid\nerror_log = error.log\ndaemonize = no\nprocess_control_timeout = 1s\n";
const POOL: &str = "[a]\nuser = www-data\nlisten.mode = 0666\npm.status_path = /a/status\nping.path = /a/ping\n\
    catch_workers_output = ${OUTSIDE}\nclear_env = ${OUTSIDE}\nenv[FROM] = ${OUTSIDE}\n\
    php_admin_value[max_input_vars] = 20\nphp_admin_value[max_file_uploads] = 5\nphp_admin_value[html_errors] = 0\n\
    php_admin_value[log_errors] = on\nphp_admin_value[display_errors] = off\n";

fn scripts() -> tempfile::TempDir {
    let root = open_directory();
    fs::create_dir(root.path().join("a")).unwrap();
    fs::write(root.path().join("a/script.php"), format!("<?php\n{SCRIPT}")).unwrap();
    root
}

/// Starts a program with one pool of this many processes, and nginx in front of it.
fn start(program: &Path, top: &Path, root: &Path, processes: u32, more: &str) -> (Fpm, Nginx) {
    let pool = format!("{POOL}listen = a.sock\npm = static\npm.max_children = {processes}\n{more}");
    fs::write(top.join("php-fpm.conf"), format!("{GLOBAL}{pool}")).unwrap();
    let fpm = Fpm::start(program, top, &["a.sock"]);
    (fpm, front(top, &["a"], root))
}

fn send(nginx: &Nginx, request: Request) -> Response {
    let mut conn = Conn::open(&Target::Tcp(([127, 0, 0, 1], nginx.port(0)).into()));
    conn.exchange(&request.close())
}

/// A form of this many parts; with `files`, each is a file.
fn parts(count: usize, files: bool) -> Request {
    let file = if files { "; filename=\"f\"" } else { "" };
    let part = |number| format!("--b\r\nContent-Disposition: form-data; name=\"n{number}\"{file}\r\n\r\nx\r\n");
    let body = (0..count).map(part).collect::<String>() + "--b--\r\n";
    Request::post("/a/script.php?parts", "multipart/form-data; boundary=b", body)
}

#[test]
fn requests_have_the_same_responses() {
    if !is_root() {
        return;
    }
    let Some((php_fpm, _)) = php_fpm() else { skip!("php-fpm", "the server to compare with") };
    let (mine, truth, root) = (open_directory(), open_directory(), scripts());
    let mut more = format!("php_admin_value[doc_root] = {}/\n", root.path().display());
    // Only the PHP of the tests has its own extensions.
    let gmp = std::env::var_os("HOWDAH_EXTENSIONS").map(|directory| Path::new(&directory).join("gmp.so"));
    let gmp = gmp.filter(|file| file.exists() && php_fpm.ends_with("php-fpm8.2"));
    if let Some(gmp) = &gmp {
        more += &format!("php_admin_value[extension] = {}\n", gmp.display());
    }
    let responses = [(howdah_fpm(mine.path()), mine.path()), (php_fpm, truth.path())].map(|(program, top)| {
        let (fpm, nginx) = start(&program, top, root.path(), 2, &more);
        let mut responses = Vec::new();
        for request in [
            Request::get("/a/script.php?headers").header("X-Foo", "BAR").header("Foo", "foo"),
            Request::get("/a/script.php?settings"),
            parts(18, false),
            parts(30, false),
            parts(4, true),
            parts(9, true),
            // The credentials of a request without a script are forgotten.
            Request::get("/a/none.php").header("Authorization", "Basic Zm9vOg=="),
            Request::get("/a/script.php?headers"),
        ] {
            let response = send(&nginx, request);
            responses.push((response.status, response.text()));
        }
        // Another request's target is text in the status page.
        let page = std::thread::scope(|scope| {
            scope.spawn(|| get(&nginx, "/a/script.php?wait&<script>alert(2)</script>"));
            let page = || get(&nginx, "/a/status?full&html").text();
            assert!(eventually(PATIENCE, || page().contains("alert(2)")), "{}", page());
            page()
        });
        assert!(!page.contains("<script>"), "{page}");
        fpm.end();
        responses
    });
    assert_eq!(responses[0], responses[1]);
    assert_eq!(responses[0][6].0, 404);
    assert!(gmp.is_none() || responses[0][1].1.ends_with("true]"), "{:?}", responses[0][1]);
}

#[test]
fn a_process_that_blocks_signals_is_replaced_by_a_reload() {
    if !is_root() {
        return;
    }
    let (top, root) = (open_directory(), scripts());
    let (fpm, nginx) = start(&howdah_fpm(top.path()), top.path(), root.path(), 1, "");
    let deaf = get(&nginx, "/a/script.php?deaf").text();
    signal(fpm.process.id(), Signal::USR2);
    let is_new = || get(&nginx, "/a/script.php?pid").text() != deaf;
    assert!(eventually(PATIENCE, is_new), "{}", fpm.log());
    let is_gone = || !Path::new(&format!("/proc/{deaf}")).exists();
    assert!(eventually(PATIENCE, is_gone), "{}", fpm.log());
    assert_eq!(get(&nginx, "/a/ping").text(), "pong");
    fpm.end();
}

#[test]
fn an_access_log_at_standard_error_survives_both_reloads() {
    if !is_root() {
        return;
    }
    let (top, root) = (open_directory(), scripts());
    let more = "access.log = /proc/self/fd/2\naccess.format = 'asked %r%Q%q'\n";
    let (fpm, nginx) = start(&howdah_fpm(top.path()), top.path(), root.path(), 1, more);
    let output = || fs::read_to_string(top.path().join("out.log")).unwrap_or_default();
    for (number, signal_after) in [Some(Signal::USR1), Some(Signal::USR2), None].into_iter().enumerate() {
        let line = format!("asked /a/ping?{number}\n");
        let is_logged = || {
            let _ = get(&nginx, &format!("/a/ping?{number}"));
            output().contains(&line)
        };
        assert!(eventually(PATIENCE, is_logged), "{line} in {}\n{}", output(), fpm.log());
        if let Some(sent) = signal_after {
            signal(fpm.process.id(), sent);
        }
    }
    fpm.end();
}

#[test]
fn paths_of_a_pool_are_relative_to_its_prefix() {
    if !is_root() {
        return;
    }
    let (top, root) = (open_directory(), scripts());
    let prefix = top.path().join("own");
    fs::create_dir(&prefix).unwrap();
    let more = format!(
        "prefix = {}\naccess.log = access.log\nslowlog = slow.log\nrequest_slowlog_timeout = 1s\n",
        prefix.display()
    );
    let pool =
        format!("{GLOBAL}{POOL}listen = {}/a.sock\npm = static\npm.max_children = 1\n{more}", top.path().display());
    fs::write(top.path().join("php-fpm.conf"), pool).unwrap();
    let fpm = Fpm::start(&howdah_fpm(top.path()), top.path(), &["a.sock"]);
    let nginx = front(top.path(), &["a"], root.path());
    assert!(eventually(PATIENCE, || get(&nginx, "/a/ping").text() == "pong"), "{}", fpm.log());
    let is_logged = || fs::read_to_string(prefix.join("access.log")).is_ok_and(|text| text.contains("/a/ping"));
    assert!(eventually(PATIENCE, is_logged), "{}", fpm.log());
    assert!(prefix.join("slow.log").exists() && top.path().join("error.log").exists(), "{}", fpm.log());
    fpm.end();
}

#[test]
fn clients_that_are_not_allowed_run_nothing() {
    if !is_root() {
        return;
    }
    let Some((php_fpm, _)) = php_fpm() else { skip!("php-fpm", "the server to compare with") };
    let root = scripts();
    fs::write(root.path().join("a/index.php"), "<?php echo 'ran';").unwrap();
    let (mine, truth) = (open_directory(), open_directory());
    let statuses = [(howdah_fpm(mine.path()), mine.path()), (php_fpm, truth.path())].map(|(program, top)| {
        let port = Port::hold();
        let pool = format!(
            "{GLOBAL}{POOL}listen = 127.0.0.1:{}\nlisten.allowed_clients = 127.0.0.9\npm = static\npm.max_children = 1\n",
            port.number
        );
        fs::write(top.join("php-fpm.conf"), pool).unwrap();
        let fpm = Fpm::start(&program, top, &[]);
        let nginx = Nginx::start(1, |_, ports| {
            let location = |path: &str, from: &str| {
                format!(
                    "location = {path} {{ include /etc/nginx/fastcgi.conf; fastcgi_bind {from};
                       fastcgi_param SCRIPT_FILENAME $document_root/a/index.php; fastcgi_pass 127.0.0.1:{}; }}",
                    port.number
                )
            };
            let both = location("/allowed", "127.0.0.9") + &location("/other", "127.0.0.8");
            format!("server {{ listen 127.0.0.1:{}; root {}; {both} }}", ports[0], root.path().display())
        });
        assert!(eventually(PATIENCE, || get(&nginx, "/allowed").text() == "ran"), "{}", fpm.log());
        let status = get(&nginx, "/other").status;
        fpm.end();
        status
    });
    // PHP-FPM drops the connection.
    assert_eq!(statuses, [403, 502]);
}

#[test]
fn a_port_that_does_not_exist_is_a_mistake() {
    let directory = open_directory();
    let config = directory.path().join("fpm.conf");
    fs::write(&config, "[a]\nlisten = 127.0.0.1:69002\npm = static\npm.max_children = 1\n").unwrap();
    let output = Command::new(howdah_fpm(directory.path())).args(["-R", "-t", "-y"]).arg(&config).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(78), "{said}");
    assert!(said.contains("69002"), "{said}");
}
