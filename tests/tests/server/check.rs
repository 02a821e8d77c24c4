//! `howdah check` finds problems that would make a start fail, without changing anything.

use howdah_tests::howdah::program;
use howdah_tests::{Mode, Setup, Site};
use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;

/// Success of `howdah check` with these settings, and its output.
fn check(dir: &Path, settings: &str) -> (bool, String) {
    let mut command = Command::new(program());
    command.arg("check");
    check_by(command, dir, settings)
}

fn check_by(mut command: Command, dir: &Path, settings: &str) -> (bool, String) {
    fs::create_dir_all(dir.join("public")).unwrap();
    fs::write(dir.join("howdah.toml"), format!("allow_root = true\n{settings}")).unwrap();
    let output = command.current_dir(dir).env("XDG_RUNTIME_DIR", dir).output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&said).into_owned())
}

#[test]
fn a_broken_php_ini_is_found_and_php_s_warnings_are_shown() {
    let dir = tempfile::tempdir().unwrap();
    let settings = "[php]\nconfig = \"php.ini\"\nini = { memory_limt = \"1G\", precision = 9 }\n";
    // Messages must not go to the file set in php.ini.
    fs::write(dir.path().join("php.ini"), "error_log = php.log\nextension = nothing_of_this_name\n").unwrap();
    let (fine, said) = check(dir.path(), settings);
    assert!(fine && said.contains("nothing_of_this_name") && said.contains("no setting \"memory_limt\""), "{said}");
    assert!(!dir.path().join("php.log").exists());
    fs::write(dir.path().join("php.ini"), "user_agent = \"half\n").unwrap();
    let (fine, said) = check(dir.path(), settings);
    assert!(!fine && said.contains("syntax error") && said.contains("php.ini"), "{said}");
}

#[test]
fn missing_directories_of_logs_and_sockets_are_found_and_nothing_is_made() {
    let dir = tempfile::tempdir().unwrap();
    let (log, socket) = (dir.path().join("logs/error.log"), dir.path().join("run/howdah.sock"));
    let settings =
        format!("listen = [\"unix:{}\"]\n[log]\nerror = {:?}\n", socket.display(), log.display().to_string());
    let (fine, said) = check(dir.path(), &settings);
    let missing = |path: &Path| said.contains(&format!("there is no directory {}", path.parent().unwrap().display()));
    assert!(!fine && missing(&log) && missing(&socket), "{said}");
    fs::create_dir(log.parent().unwrap()).unwrap();
    fs::create_dir(socket.parent().unwrap()).unwrap();
    let (fine, said) = check(dir.path(), &settings);
    assert!(fine && !log.exists() && !socket.exists(), "{said}");
    fs::write(&socket, "no socket").unwrap();
    let (fine, said) = check(dir.path(), &settings);
    assert!(!fine && said.contains("is not a socket"), "{said}");
}

#[test]
fn an_address_that_another_process_has_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = other.local_addr().unwrap();
    let (fine, said) = check(dir.path(), &format!("listen = [\"{address}\"]\n"));
    assert!(fine && said.contains(&format!("another process listens on {address}")), "{said}");
    // 192.0.2.0/24 is reserved for documentation.
    let (fine, said) = check(dir.path(), "listen = [\"192.0.2.1:8080\"]\n");
    assert!(!fine && said.contains("cannot listen on 192.0.2.1:8080"), "{said}");
}

#[test]
fn what_the_running_server_has_is_no_trouble_and_what_somebody_else_has_is() {
    let site = Site::start(Mode::Classic, &Setup::default().never_https());
    let output = site.howdah().command(&["check"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success() && !said.contains("another process") && !said.contains("in use"), "{said}");
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = other.local_addr().unwrap().to_string();
    let output = site.howdah().command(&["check", "--listen", &address]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let expected =
        format!("cannot listen on {address}: it is in use, and the server that runs does not have that address");
    assert!(!output.status.success() && said.contains(&expected), "{said}");
    site.finish();
}

#[test]
fn defaults_are_those_of_the_processors_that_the_server_may_use() {
    let dir = tempfile::tempdir().unwrap();
    let mut command = Command::new("taskset");
    command.args(["--cpu-list", &first_processor()]).arg(program()).arg("check");
    let (fine, said) = check_by(command, dir.path(), "");
    assert!(fine && said.lines().any(|line| line.starts_with("# Machine: 1 ")), "{said}");
    let workers = said.lines().find(|line| line.starts_with("workers = ")).unwrap();
    assert!(workers.starts_with("workers = 2"), "{said}");
}

/// A processor that this process may use.
fn first_processor() -> String {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap();
    list.trim().split([',', '-']).next().unwrap().to_owned()
}
