//! A server with process id 1, as in a container: its scripts have the same user and can reach the admin socket.

use howdah_skip::skip;
use howdah_tests::howdah::{php_program, program};
use howdah_tests::process::{PATIENCE, eventually};
use howdah_tests::site::Port;
use howdah_tests::{Conn, Request, Target, php};
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Command for a namespace in which the next program is process 1; when `unshare` ends, everything in it ends.
const CONTAINER: &[&str] = &["--pid", "--fork", "--kill-child", "--mount-proc", "--propagation", "private"];

struct Container(Child);

impl Drop for Container {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start(directory: &Path, port: &Port) -> Container {
    let settings = format!(
        "allow_root = true\nlisten = [\"127.0.0.1:{}\"]\nadmin = \"unix:{}/run/admin.sock\"\nroot = \"public\"\nworkers = 1\n\
         [php]\nbinary = {:?}\n",
        port.number,
        directory.display(),
        php_program()
    );
    fs::create_dir(directory.join("run")).unwrap();
    fs::create_dir(directory.join("public")).unwrap();
    fs::write(directory.join("public/orders.php"), format!("<?php {}", php!("admin/orders.php"))).unwrap();
    fs::write(directory.join("howdah.toml"), settings).unwrap();
    let log = fs::File::create(directory.join("log")).unwrap();
    let mut command = Command::new("unshare");
    command.args(CONTAINER).arg(program()).arg("serve").current_dir(directory);
    Container(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn().unwrap())
}

#[test]
fn scripts_of_process_1_cannot_order_it() {
    let probe = Command::new("unshare").args(CONTAINER).arg("true").stderr(Stdio::null()).status();
    if !probe.is_ok_and(|status| status.success()) {
        skip!("mount-namespace", "only root can create mount namespaces, and not in every container");
    }
    let directory = tempfile::tempdir().unwrap();
    let port = Port::hold();
    let mut server = start(directory.path(), &port);
    let visitors = Target::Tcp(([127, 0, 0, 1], port.number).into());
    let log = || fs::read_to_string(directory.path().join("log")).unwrap();
    assert!(eventually(PATIENCE, || Conn::try_open(&visitors).is_ok()), "{}", log());
    let ask = || Conn::open(&visitors).exchange(&Request::get("/orders.php").close());
    let answers = ask().expect(200).json();
    for (order, answer) in answers.as_object().unwrap() {
        assert!(matches!(answer.as_str(), Some("403" | "000" | "")), "{order}: {answer}");
    }
    assert_eq!(answers["POST /stop"], "403", "{answers}");
    // A command from outside (`docker exec`, another namespace) is accepted, and the server keeps running.
    let mut status = Command::new(program());
    let status = status.arg("status").arg("--admin").arg(format!("unix:{}/run/admin.sock", directory.path().display()));
    let output = status.current_dir("/").output().unwrap();
    assert!(output.status.success(), "{output:?}: {}", log());
    assert!(log().contains("the admin endpoint refuses a process that the server started"), "{}", log());
    // The kernel drops signals for which process 1 has no handler.
    signal(&server, "ALRM");
    assert!(eventually(PATIENCE, || log().contains("signal ignored signal=ALRM")), "{}", log());
    signal(&server, "USR2");
    assert!(eventually(PATIENCE, || log().contains("reload")), "{}", log());
    assert_eq!(ask().status, 200);
    signal(&server, "QUIT");
    assert_eq!(server.0.wait().unwrap().code(), Some(0), "{}", log());
    assert!(log().contains("stopped"), "{}", log());
}

/// Sends a signal to process 1 of the namespace, which is the only child of its `unshare`.
fn signal(server: &Container, name: &str) {
    let pid = server.0.id();
    let child = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
    let sent = Command::new("kill").args(["-s", name, child.trim()]).status();
    assert!(sent.is_ok_and(|status| status.success()), "{name} to {child}");
}
