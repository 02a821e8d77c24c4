//! Howdah under the name `frankenphp`, used as Laravel Octane uses FrankenPHP: its environment, its admin requests.

use howdah_tests::howdah::{php_program, program};
use howdah_tests::process::{PATIENCE, eventually, wait_for_exit};
use howdah_tests::site::{free_port, replace_file};
use howdah_tests::{Conn, Request, Response, Target};
use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Everything that Octane's worker script requires, and its loop.
const WORKER: &str = include_str!("php/octane/worker.php");

/// Ends the server with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start(app: &Path, port: u16, admin: u16) -> Running {
    let public = app.join("public");
    fs::create_dir(&public).unwrap();
    fs::write(public.join("frankenphp-worker.php"), WORKER).unwrap();
    fs::write(public.join("style.css"), "a{}").unwrap();
    std::os::unix::fs::symlink(program(), app.join("frankenphp")).unwrap();
    let log = File::create(app.join("log")).unwrap();
    let child = Command::new("setpriv")
        .args(["--pdeathsig", "KILL", "--"])
        .arg(app.join("frankenphp"))
        .args(["run", "-c", "/nowhere/Caddyfile"])
        .current_dir(app)
        .envs([
            ("APP_ENV", "production"),
            ("APP_BASE_PATH", &app.to_string_lossy()),
            ("APP_PUBLIC_PATH", &public.to_string_lossy()),
            ("LARAVEL_OCTANE", "1"),
            ("MAX_REQUESTS", "500"),
            ("REQUEST_MAX_EXECUTION_TIME", "30"),
            ("CADDY_SERVER_ADMIN_HOST", "localhost"),
            ("CADDY_SERVER_ADMIN_PORT", &admin.to_string()),
            ("CADDY_SERVER_LOG_LEVEL", "WARN"),
            ("CADDY_SERVER_LOGGER", "json"),
            ("CADDY_SERVER_SERVER_NAME", &format!("http://127.0.0.1:{port}")),
            ("CADDY_SERVER_WORKER_DIRECTIVE", "num 2"),
            ("CADDY_SERVER_EXTRA_DIRECTIVES", ""),
            // Tests may run as root.
            ("HOWDAH_ALLOW_ROOT", "true"),
            ("HOWDAH_PHP", &php_program().to_string_lossy()),
        ])
        .stdin(Stdio::null())
        .stdout(log.try_clone().unwrap())
        .stderr(log)
        .spawn()
        .unwrap();
    Running(child)
}

fn ask(port: u16, request: &Request) -> Option<Response> {
    let mut conn = Conn::try_open(&Target::Tcp(([127, 0, 0, 1], port).into())).ok()?;
    conn.try_send(&request.clone().close().bytes()).ok()?;
    conn.try_response(request.method())
}

#[test]
fn octane_starts_asks_reloads_and_stops() {
    let directory = tempfile::tempdir().unwrap();
    let app = directory.path();
    let (port, admin) = (free_port(), free_port());
    let mut server = start(app, port, admin);
    let get = |path: &str| ask(port, &Request::get(path)).map(|response| response.text()).unwrap_or_default();
    let served = eventually(PATIENCE, || get("/users?x=1") == "one /users?x=1 1 30");
    assert!(served, "{}", fs::read_to_string(app.join("log")).unwrap());
    assert_eq!(get("/style.css"), "a{}");

    let config = ask(admin, &Request::get("/config/apps/frankenphp")).unwrap().expect(200);
    assert_eq!(config.json()["workers"][0]["num"], 2);
    replace_file(&app.join("public/frankenphp-worker.php"), WORKER.replace("'one'", "'two'"));
    let reload =
        Request::new("PATCH", "/config/apps/frankenphp").header("Content-Type", "application/json").body(config.text());
    assert_eq!(ask(admin, &reload).unwrap().status, 200);
    assert_eq!(get("/a"), "two /a 1 30");
    let order = |path: &str| Request::new("POST", path);
    assert_eq!(
        ask(admin, &order("/frankenphp/workers/restart")).unwrap().status,
        403,
        "any web page can send such a request"
    );
    let restart = ask(admin, &order("/frankenphp/workers/restart").header("X-Howdah", "1")).unwrap().expect(200);
    assert_eq!(restart.text(), "workers restarted successfully\n");
    assert_eq!(ask(admin, &Request::get("/frankenphp/workers/restart")).unwrap().status, 405);
    let threads = ask(admin, &Request::get("/frankenphp/threads")).unwrap().expect(200).json();
    assert!(threads["ThreadDebugStates"].as_array().is_some_and(|states| states.iter().any(|s| s["State"] == "ready")));

    // As sent by Octane's client.
    let stop = order("/stop").header("Content-Type", "application/json").body("[]");
    assert_eq!(ask(admin, &stop).unwrap().status, 200);
    let ended = wait_for_exit(&mut server.0, PATIENCE).expect("stopped");
    assert!(ended.success(), "{ended}");
}

#[test]
fn octane_finds_a_version_it_accepts() {
    let directory = tempfile::tempdir().unwrap();
    let link = directory.path().join("frankenphp");
    std::os::unix::fs::symlink(program(), &link).unwrap();
    let output = Command::new(&link).arg("build-info").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let line =
        text.lines().find(|l| l.starts_with("dep") && l.contains("github.com/dunglas/frankenphp")).expect("a line");
    let version: Vec<u32> = line.rsplit_once('v').unwrap().1.split('.').map(|n| n.parse().unwrap()).collect();
    assert!(version >= vec![1, 5, 0], "{version:?}");
    let wrong = Command::new(&link).arg("run").env_remove("APP_PUBLIC_PATH").output().unwrap();
    assert_eq!(wrong.status.code(), Some(2));
}

/// Runs `howdah init --octane` in this directory, with PATH restricted to `path`; returns success and output.
fn link(app: &Path, path: &Path, arguments: &[&str]) -> (bool, String) {
    let mut command = Command::new(program());
    let output = command
        .args(["init", "--octane"])
        .args(arguments)
        .current_dir(app)
        .env_clear()
        .env("PATH", path)
        .output()
        .unwrap();
    let said = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    (output.status.success(), said)
}

/// The link may be created before or after Octane has downloaded a FrankenPHP, which is never overwritten.
#[test]
fn the_link_for_octane_is_made_in_any_order() {
    let top = tempfile::tempdir().unwrap();
    let (app, path) = (top.path().join("app"), top.path().join("bin"));
    fs::create_dir_all(&app).unwrap();
    fs::create_dir(&path).unwrap();
    let (done, said) = link(&app, &path, &[]);
    assert!(!done && said.contains("there is no artisan in"), "{said}");
    fs::write(app.join("artisan"), "").unwrap();
    let leads = || fs::canonicalize(app.join("frankenphp")).ok() == fs::canonicalize(program()).ok();

    // Before: Octane finds the link and accepts its version. Running the command twice does no harm.
    for what in ["is a link to", "is already a link to this server"] {
        let (done, said) = link(&app, &path, &[]);
        assert!(done && said.contains(what) && leads(), "{said}");
    }
    let version = Command::new(app.join("frankenphp")).arg("build-info").output().unwrap();
    assert!(String::from_utf8_lossy(&version.stdout).contains("github.com/dunglas/frankenphp\tv1."));

    // After: the existing file stays until its replacement is confirmed.
    fs::remove_file(app.join("frankenphp")).unwrap();
    fs::write(app.join("frankenphp"), "FrankenPHP's own").unwrap();
    let (done, said) = link(&app, &path, &[]);
    assert!(!done && said.contains("is another program") && said.contains("--replace") && !leads(), "{said}");
    let (done, said) = link(&app, &path, &["--replace"]);
    assert!(done && said.contains("frankenphp.before-howdah") && leads(), "{said}");
    assert_eq!(fs::read_to_string(app.join("frankenphp.before-howdah")).unwrap(), "FrankenPHP's own");
    fs::remove_file(app.join("frankenphp")).unwrap();
    fs::write(app.join("frankenphp"), "the next").unwrap();
    let (done, said) = link(&app, &path, &["--replace"]);
    assert!(!done && said.contains("would be overwritten"), "{said}");
    assert_eq!(fs::read_to_string(app.join("frankenphp")).unwrap(), "the next");

    // A link to a missing program may be replaced.
    fs::remove_file(app.join("frankenphp")).unwrap();
    std::os::unix::fs::symlink("/nowhere/howdah", app.join("frankenphp")).unwrap();
    let (done, said) = link(top.path(), &path, &["app"]);
    assert!(done && leads(), "{said}");
}

/// Octane searches PATH first.
#[test]
fn a_frankenphp_that_octane_would_find_before_the_link_is_reported() {
    let top = tempfile::tempdir().unwrap();
    let (app, path) = (top.path().join("app"), top.path().join("bin"));
    fs::create_dir_all(&app).unwrap();
    fs::create_dir(&path).unwrap();
    fs::write(app.join("artisan"), "").unwrap();
    let other = path.join("frankenphp");
    fs::write(&other, "").unwrap();
    // It is not executable.
    assert!(link(&app, &path, &[]).0);
    fs::set_permissions(&other, fs::Permissions::from_mode(0o755)).unwrap();
    let (done, said) = link(&app, &path, &[]);
    assert!(!done && said.contains(&format!("Octane will start {}", other.display())), "{said}");
    fs::remove_file(&other).unwrap();
    std::os::unix::fs::symlink(program(), &other).unwrap();
    assert!(link(&app, &path, &[]).0, "this one may come first");
}
