//! A server started at a terminal: its scripts' access to the terminal, and to the server's session.

use howdah_tests::howdah::{php_program, program};
use howdah_tests::process::{PATIENCE, eventually};
use howdah_tests::site::Port;
use howdah_tests::{Conn, Request, Target};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::os::unix::ffi::OsStringExt;
use std::process::{Child, Command, Stdio};

struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

const SCRIPT: &str = "<?php
$group = posix_getpgrp();
echo json_encode([
    'terminal' => @file_get_contents('/dev/tty', length: 0) !== false,
    'own_group' => $group !== posix_getpgid(posix_getppid()) || $group !== posix_getsid(0),
    'session' => posix_getsid(0),
]);";

#[test]
fn scripts_have_no_terminal_and_stay_in_the_servers_session() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("terminal.php"), SCRIPT).unwrap();
    let (port, admin) = (Port::hold(), directory.path().join("admin.sock"));
    let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
    grantpt(&ours).unwrap();
    unlockpt(&ours).unwrap();
    let path = OsString::from_vec(ptsname(&ours, Vec::new()).unwrap().into_bytes());
    let theirs = OpenOptions::new().read(true).write(true).open(path).unwrap();
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "--", "setsid", "--ctty"]).arg(program()).arg("serve").arg(directory.path());
    command
        .arg("--listen")
        .arg(format!("127.0.0.1:{}", port.number))
        .arg("--admin")
        .arg(format!("unix:{}", admin.display()));
    command.arg("--php").arg(php_program()).args(["--workers", "1", "--allow-root"]);
    let server =
        command.stdin(Stdio::from(theirs.try_clone().unwrap())).stdout(Stdio::from(theirs.try_clone().unwrap()));
    let server = Server(server.stderr(Stdio::from(theirs)).spawn().unwrap());
    let visitors = Target::Tcp(([127, 0, 0, 1], port.number).into());
    assert!(eventually(PATIENCE, || Conn::try_open(&visitors).is_ok()), "the server does not listen");
    let answer = Conn::open(&visitors).exchange(&Request::get("/terminal.php").close()).expect(200).json();
    assert_eq!(answer["terminal"], false, "{answer}");
    assert_eq!(answer["own_group"], true, "{answer}");
    // The kernel divides processor time between sessions.
    assert_eq!(answer["session"], server.0.id(), "{answer}");
}
