//! `howdah check` finds what a start would trip over, before anything is touched.

use howdah_tests::howdah::program;
use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;

/// Whether `howdah check` is content with these settings, and what it says. `machine`: what this machine is taken for.
fn check(dir: &Path, settings: &str, machine: Option<&Path>) -> (bool, String) {
    fs::create_dir_all(dir.join("public")).unwrap();
    fs::write(dir.join("howdah.toml"), format!("allow_root = true\n{settings}")).unwrap();
    let mut command = Command::new(program());
    command.current_dir(dir).arg("check").env("XDG_RUNTIME_DIR", dir);
    if let Some(machine) = machine {
        command.env("HOWDAH_TEST_MACHINE", machine);
    }
    let output = command.output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&said).into_owned())
}

#[test]
fn a_broken_php_ini_is_found_and_php_s_warnings_are_shown() {
    let dir = tempfile::tempdir().unwrap();
    let settings = "[php]\nconfig = \"php.ini\"\nini = { memory_limt = \"1G\", precision = 9 }\n";
    // Messages do not go to the file that is named there.
    fs::write(dir.path().join("php.ini"), "error_log = php.log\nextension = nothing_of_this_name\n").unwrap();
    let (fine, said) = check(dir.path(), settings, None);
    assert!(fine && said.contains("nothing_of_this_name") && said.contains("no setting \"memory_limt\""), "{said}");
    assert!(!dir.path().join("php.log").exists());
    fs::write(dir.path().join("php.ini"), "user_agent = \"half\n").unwrap();
    let (fine, said) = check(dir.path(), settings, None);
    assert!(!fine && said.contains("syntax error") && said.contains("php.ini"), "{said}");
}

#[test]
fn missing_directories_of_logs_and_sockets_are_found_and_nothing_is_made() {
    let dir = tempfile::tempdir().unwrap();
    let (log, socket) = (dir.path().join("logs/error.log"), dir.path().join("run/howdah.sock"));
    let settings = format!("listen = [\"unix:{}\"]\n[log]\nerror = {:?}\n", socket.display(), log.display().to_string());
    let (fine, said) = check(dir.path(), &settings, None);
    let missing = |path: &Path| said.contains(&format!("there is no directory {}", path.parent().unwrap().display()));
    assert!(!fine && missing(&log) && missing(&socket), "{said}");
    fs::create_dir(log.parent().unwrap()).unwrap();
    fs::create_dir(socket.parent().unwrap()).unwrap();
    let (fine, said) = check(dir.path(), &settings, None);
    assert!(fine && !log.exists() && !socket.exists(), "{said}");
    fs::write(&socket, "no socket").unwrap();
    let (fine, said) = check(dir.path(), &settings, None);
    assert!(!fine && said.contains("is no socket"), "{said}");
}

#[test]
fn an_address_that_another_process_has_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = other.local_addr().unwrap();
    let (fine, said) = check(dir.path(), &format!("listen = [\"{address}\"]\n"), None);
    assert!(fine && said.contains(&format!("another process listens on {address}")), "{said}");
    // 192.0.2.0/24 is nobody's.
    let (fine, said) = check(dir.path(), "listen = [\"192.0.2.1:8080\"]\n", None);
    assert!(!fine && said.contains("cannot listen on 192.0.2.1:8080"), "{said}");
}

#[test]
fn defaults_are_those_of_the_control_group() {
    let dir = tempfile::tempdir().unwrap();
    let machine = dir.path().join("machine");
    for (path, content) in [
        ("proc/meminfo", "MemTotal: 33554432 kB\n"),
        ("proc/self/cgroup", "0::/app\n"),
        ("sys/devices/system/cpu/online", "0-31\n"),
        ("sys/fs/cgroup/app/cpu.max", "250000 100000\n"),
        ("sys/fs/cgroup/app/memory.max", "1073741824\n"),
    ] {
        let path = machine.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    let (fine, said) = check(dir.path(), "", Some(&machine));
    assert!(fine, "{said}");
    assert!(said.contains("# Machine: 3 of 32 processors (") && said.contains("app/cpu.max)"), "{said}");
    assert!(said.contains("1024 of 32768 MiB of memory (") && said.contains("app/memory.max)"), "{said}");
    let workers = said.lines().find(|line| line.starts_with("workers = ")).unwrap();
    assert!(workers.starts_with("workers = 6"), "{said}");
}
