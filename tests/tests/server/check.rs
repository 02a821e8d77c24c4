//! `howdah check` finds problems that would make a start fail, without changing anything.

use howdah_tests::howdah::program;
use howdah_tests::{Mode, Setup, Site};
use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::MetadataExt;
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

/// A service that runs `check` before each start should not fill the journal.
#[test]
fn a_check_whose_output_is_the_journal_prints_one_line() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("public")).unwrap();
    fs::write(dir.path().join("howdah.toml"), "allow_root = true\n").unwrap();
    let path = dir.path().join("journal");
    let printed = |is_journal: bool| {
        let journal = fs::File::create(&path).unwrap();
        let found = journal.metadata().unwrap();
        let inode = if is_journal { found.ino() } else { found.ino() + 1 };
        let mut command = Command::new(program());
        command.arg("check").current_dir(dir.path()).env("XDG_RUNTIME_DIR", dir.path()).stdout(journal);
        let output = command.env("JOURNAL_STREAM", format!("{}:{inode}", found.dev())).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        fs::read_to_string(&path).unwrap()
    };
    let line = printed(true);
    assert!(
        line.starts_with("checked ") && line.ends_with("howdah.toml: no errors\n") && line.lines().count() == 1,
        "{line}"
    );
    assert!(printed(false).lines().count() > 20);
}

#[test]
fn missing_directories_of_logs_and_sockets_are_found_and_not_created() {
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
fn an_address_in_use_by_another_process_is_named() {
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
fn an_address_of_the_running_server_is_fine_and_one_of_another_process_is_not() {
    let site = Site::start(Mode::Classic, &Setup::default().never_https());
    let output = site.howdah().command(&["check"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success() && !said.contains("another process") && !said.contains("in use"), "{said}");
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = other.local_addr().unwrap().to_string();
    let output = site.howdah().command(&["check", "--listen", &address]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let expected = format!("cannot listen on {address}: another process than the running server uses that address");
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

/// The warnings of `howdah check` that contain `part`, with this environment.
fn warnings(dir: &Path, settings: &str, env: &[(&str, &str)], part: &str) -> Vec<String> {
    let mut command = Command::new(program());
    command.arg("check").envs(env.iter().copied());
    let (fine, said) = check_by(command, dir, settings);
    assert!(fine, "{said}");
    let warnings = said.lines().filter_map(|line| line.strip_prefix("howdah: warning: "));
    warnings.filter(|line| line.contains(part)).map(str::to_owned).collect()
}

#[test]
fn variables_that_set_nothing_are_named_once() {
    let dir = tempfile::tempdir().unwrap();
    let env = [
        ("HOWDAH_LISTEM", ":80"),
        ("HOWDAH_COLOUR", "red"),
        ("HOWDAH_PORT", "tcp://10.0.0.1:80"),
        ("HOWDAH_PORT_80_TCP_PROTO", "tcp"),
        ("HOWDAH_WORKERS", "1"),
    ];
    let found = warnings(dir.path(), "", &env, "sets nothing");
    let said = found.join("\n");
    let names = |name: &str| found.iter().filter(|line| line.contains(&format!("variable {name} "))).count();
    assert_eq!((names("HOWDAH_LISTEM"), names("HOWDAH_COLOUR")), (1, 1), "{said}");
    assert!(
        said.contains("did you mean HOWDAH_LISTEN?") && !said.contains("_PORT") && !said.contains("_WORKERS"),
        "{said}"
    );
}

#[test]
fn a_misspelt_variable_is_logged_at_the_start_and_other_names_are_not() {
    let setup = Setup::default()
        .own_env("HOWDAH_GRACCE", "1s")
        .own_env("HOWDAH_COLOUR", "red")
        .own_env("HOWDAH_SERVICE_PORT", "80")
        .expect_log("HOWDAH_GRACCE sets nothing");
    let site = Site::start(Mode::Classic, &setup);
    let log = site.howdah().log();
    assert!(
        log.contains("did you mean HOWDAH_GRACE?") && !log.contains("COLOUR") && !log.contains("SERVICE_PORT"),
        "{log}"
    );
    site.finish();
}

#[test]
fn limits_of_php_and_of_the_server_that_contradict_each_other_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let said = |settings: &str| warnings(dir.path(), settings, &[], " = ").join("\n");
    let ini = |values: &str| format!("[php]\nini = {{ {values} }}\n");
    assert_eq!(said(""), "");
    assert_eq!(said(&ini("post_max_size = \"64M\", upload_max_filesize = \"64M\"")), "");
    let found = said(&ini("upload_max_filesize = \"64M\""));
    assert!(found.contains("upload_max_filesize = 64M exceeds post_max_size = 8M"), "{found}");
    let found = said("[http]\nmax_body = \"64M\"\n");
    assert!(found.contains("http.max_body = 64M exceeds post_max_size = 8M"), "{found}");
    assert_eq!(found.lines().count(), 1, "{found}");
    assert_eq!(said("[http]\nmax_body = \"1M\"\n"), "", "a smaller limit than PHP's default is a choice");
    let found = said(&format!("{}[http]\nmax_body = \"32M\"\n", ini("post_max_size = \"64M\"")));
    assert!(found.contains("http.max_body = 32M is less than post_max_size = 64M"), "{found}");
    let found = said(&ini("max_execution_time = 300"));
    assert!(found.contains("max_execution_time = 300 exceeds deadline = 60s"), "{found}");
    assert_eq!(said(&format!("deadline = \"10m\"\n{}", ini("max_execution_time = 300"))), "");
    let site = "[pool.shop]\nini = { post_max_size = \"4M\" }\n[[site]]\nhosts = \"shop.example\"\nroot = \"public\"\n\
        pool = \"shop\"\n[site.http]\nmax_body = \"6M\"\n[[site]]\nhosts = \"other.example\"\nroot = \"public\"\n";
    let found = said(site);
    assert!(found.contains("pool shop: http.max_body of site shop.example = 6M exceeds post_max_size = 4M"), "{found}");
    assert_eq!(found.lines().count(), 1, "{found}");
}
