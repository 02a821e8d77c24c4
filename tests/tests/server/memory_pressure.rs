//! Idle workers end while memory is short, and are not replaced until the shortage is over. A file of the test, mounted
//! over the kernel's in the server's mount namespace, simulates memory pressure.

use howdah_skip::skip;
use howdah_tests::howdah::{php_program, program};
use howdah_tests::process::{self, PATIENCE, eventually, wait_for_exit};
use howdah_tests::site::Port;
use howdah_tests::{Conn, Request, Target};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Without the machine's control groups, whose limits would count.
const ENTER: &str = r#"mount -t tmpfs none /sys/fs/cgroup && mount --bind "$0" /proc/pressure/memory && exec "$@""#;

/// A server in a separate namespace.
struct IsolatedServer {
    process: Child,
    _port: Port,
}

impl Drop for IsolatedServer {
    fn drop(&mut self) {
        process::signal(self.process.id(), rustix::process::Signal::TERM);
        if wait_for_exit(&mut self.process, PATIENCE).is_none() {
            let _ = self.process.kill();
            let _ = self.process.wait();
        }
    }
}

fn say(file: &Path, percent: u32) {
    fs::write(file, format!("some avg10={percent}.00 avg60=0.00 avg300=0.00 total=1\n")).unwrap();
}

fn pool(admin: &Target) -> Option<Value> {
    let mut conn = Conn::try_open(admin).ok()?;
    conn.send(Request::get("/status").close().bytes());
    Some(conn.response("GET").json()["pools"][0].clone())
}

fn metrics(admin: &Target) -> String {
    Conn::open(admin).exchange(&Request::get("/metrics").close()).text()
}

#[test]
fn idle_workers_and_spare_ones_end_while_memory_is_short() {
    let mut probe = Command::new("unshare");
    probe.args(["--mount", "--propagation", "private", "mount", "-t", "tmpfs", "none", "/sys/fs/cgroup"]);
    if !probe.stderr(Stdio::null()).status().is_ok_and(|status| status.success()) {
        skip!("mount-namespace", "only root can create mount namespaces, and not in every container");
    }
    if !Path::new("/proc/pressure/memory").exists() {
        skip!("memory-pressure", "this kernel has no /proc/pressure/memory");
    }
    let dir = tempfile::tempdir().unwrap();
    let (file, port) = (dir.path().join("memory"), Port::hold());
    say(&file, 0);
    fs::create_dir(dir.path().join("public")).unwrap();
    fs::write(dir.path().join("public/index.php"), "<?php echo getmypid();").unwrap();
    let settings = format!(
        "allow_root = true\nlisten = [\"127.0.0.1:{}\"]\nadmin = \"unix:{}/admin\"\nworkers = \"1-4\"\n\
         spare_workers = 4\n[php]\nbinary = {:?}\n",
        port.number,
        dir.path().display(),
        php_program()
    );
    fs::write(dir.path().join("howdah.toml"), settings).unwrap();
    let log = fs::File::create(dir.path().join("log")).unwrap();
    let mut command = Command::new("unshare");
    command.args(["--mount", "--propagation", "private", "sh", "-c", ENTER]).arg(&file).arg(program()).arg("serve");
    let process = command.current_dir(dir.path()).stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn();
    let server = IsolatedServer { process: process.unwrap(), _port: port };
    let admin = Target::Unix(dir.path().join("admin"));
    let said = || fs::read_to_string(dir.path().join("log")).unwrap_or_default();
    let workers = || pool(&admin).map_or(0, |pool| pool["workers"].as_array().unwrap().len());
    let has = |number| eventually(PATIENCE, || workers() == number);
    assert!(has(4), "{}", said());
    say(&file, 30);
    assert!(has(1), "{} workers: {}", workers(), said());
    assert!(said().contains("memory is short: processes waited for it 30 % of the time"), "{}", said());
    let metrics = metrics(&admin);
    assert!(metrics.contains("howdah_memory_pressure_percent 30\n"), "{metrics}");
    assert!(metrics.contains("howdah_pool_workers_relieved_total{pool=\"default\"} 3\n"), "{metrics}");
    // The spare workers are started again when the pressure is over.
    say(&file, 0);
    assert!(eventually(PATIENCE, || workers() >= 3), "{} workers: {}", workers(), said());
    assert!(said().contains("memory is no longer short"), "{}", said());
    drop(server);
    assert!(said().contains("stopped"), "{}", said());
}
