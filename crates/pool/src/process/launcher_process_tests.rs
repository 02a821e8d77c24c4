//! A launcher with a compromised server: it executes only settled orders.

use super::*;
use crate::process::settings_process::SETTLES;
use howdah_transport::privileges::Privileges;
use rustix::pipe::{PipeFlags, pipe_with};
use std::os::fd::BorrowedFd;
use std::process::Command;
use std::thread::JoinHandle;

struct Server {
    socket: OwnedFd,
    launcher: Option<JoinHandle<io::Result<()>>>,
    /// The pool `p`.
    settled: Program,
}

fn program(pool: &str, binary: &str) -> Program {
    let (clear_env, env, privileges) = (true, Vec::new(), Privileges::default());
    Program { pool: pool.into(), binary: binary.into(), clear_env, env, privileges }
}

fn root_program(binary: PathBuf) -> RootProgram {
    RootProgram { binary, name: "howdah".into(), arguments: Vec::new(), env: Vec::new(), without: Vec::new() }
}

impl Server {
    /// A launcher that may start `script`, run by a separate shell process, as the pool `p`.
    fn new(directory: &Path, script: &str) -> Self {
        let binary = directory.join("program");
        std::fs::write(&binary, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&binary, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let (socket, theirs) = control_socket::pair().unwrap();
        let settled = program("p", binary.to_str().unwrap());
        let server = Self { socket, launcher: Some(std::thread::spawn(move || serve(theirs))), settled };
        server.say(&ToLauncher::Program(Box::new(server.settled.clone())), &[]);
        server
    }

    fn say(&self, order: &ToLauncher, fds: &[BorrowedFd<'_>]) {
        control_socket::send(&self.socket, &serde_json::to_vec(order).unwrap(), fds, false).unwrap();
    }

    fn hear(&self) -> (u64, String) {
        within_patience(&self.socket, "the launcher's report");
        let (bytes, _) = control_socket::receive(&self.socket, false).unwrap().unwrap();
        let FromLauncher::Ended { id, end } = serde_json::from_slice(&bytes).unwrap();
        (id, end.to_string())
    }

    /// Starts the settled program and returns its output.
    fn start(&self, id: u64) -> OwnedFd {
        self.start_program(id, &self.settled)
    }

    fn start_program(&self, id: u64, program: &Program) -> OwnedFd {
        let (_ours, control) = control_socket::pair().unwrap();
        let (output, theirs) = pipe_with(PipeFlags::CLOEXEC).unwrap();
        let program = Box::new(program.clone());
        self.say(&ToLauncher::Start { id, program }, &[control.as_fd(), theirs.as_fd(), theirs.as_fd()]);
        output
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        rustix::net::shutdown(&self.socket, rustix::net::Shutdown::Both).unwrap();
        if let Some(launcher) = self.launcher.take() {
            launcher.join().unwrap().unwrap();
        }
    }
}

/// The next line, or the rest of the output.
fn first_line(output: &OwnedFd) -> String {
    let mut text = String::new();
    let mut byte = [0; 1];
    while text.len() < 1000 {
        within_patience(output, "a line");
        if !matches!(rustix::io::read(output, &mut byte), Ok(1)) || byte[0] == b'\n' {
            break;
        }
        text.push(char::from(byte[0]));
    }
    text
}

/// Fails a test after a timeout: one that hangs would hide the results of all others.
fn within_patience(fd: &OwnedFd, what: &str) {
    let patience = Timespec { tv_sec: 60, tv_nsec: 0 };
    let came = poll(&mut [PollFd::new(fd, PollFlags::IN)], Some(&patience)).unwrap();
    assert!(came > 0, "{what} did not come within {} s", patience.tv_sec);
}

#[test]
fn only_settled_programs_are_started() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::new(directory.path(), "echo started");
    let _early = server.start(1);
    server.say(&ToLauncher::Settled, &[]);
    let mark = directory.path().join("mark");
    let evil = program("evil", "/usr/bin/touch");
    server.say(&ToLauncher::Program(Box::new(evil.clone())), &[]);
    server.say(&ToLauncher::Socket { path: mark.clone(), later: false }, &[]);
    let other = Program { env: vec![("LD_PRELOAD".into(), "/tmp/evil.so".into())], ..server.settled.clone() };
    for (id, program) in [(2, &evil), (4, &other)] {
        let _never = server.start_program(id, program);
        let (heard, status) = server.hear();
        assert!(
            heard == id && status.contains("may not start that program"),
            "no report of the early start: {heard} {status}"
        );
    }
    let output = server.start(3);
    assert_eq!(first_line(&output), "started");
    assert_eq!(server.hear(), (3, "exit status: 0".to_owned()));
}

#[test]
fn only_a_socket_and_pipes_are_handed_on() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::new(directory.path(), "echo started");
    server.say(&ToLauncher::Settled, &[]);
    let file = tempfile::tempfile().unwrap();
    let (ours, control) = control_socket::pair().unwrap();
    let (_output, pipe) = pipe_with(PipeFlags::CLOEXEC).unwrap();
    let cases: [&[BorrowedFd<'_>]; 5] = [
        &[],
        &[control.as_fd(), pipe.as_fd()],
        &[file.as_fd(), pipe.as_fd(), pipe.as_fd()],
        &[control.as_fd(), pipe.as_fd(), file.as_fd()],
        &[control.as_fd(), pipe.as_fd(), pipe.as_fd(), ours.as_fd()],
    ];
    for (id, fds) in (1..).zip(cases) {
        server.say(&ToLauncher::Start { id, program: Box::new(server.settled.clone()) }, fds);
        let (heard, status) = server.hear();
        assert!(heard == id && status.contains("a socket and two pipes"), "{status}");
    }
}

#[test]
fn only_children_of_started_processes_are_signalled() {
    let directory = tempfile::tempdir().unwrap();
    // The child reads from a pipe that is never written to, so it waits forever.
    let script = format!(
        "mkfifo {0}/wait; cat {0}/wait & echo $!; wait $!; echo ended $?; exec cat {0}/wait",
        directory.path().display()
    );
    let server = Server::new(directory.path(), &script);
    server.say(&ToLauncher::Settled, &[]);
    let output = server.start(1);
    let child = Pid::from_raw(first_line(&output).parse().unwrap()).unwrap();
    let pidfd = pidfd_open(child, PidfdFlags::empty()).unwrap();

    let mut bystander = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
    let other = pidfd_open(Pid::from_child(&bystander), PidfdFlags::empty()).unwrap();
    let file = tempfile::tempfile().unwrap();
    for which in [WorkerSignal::Kill, WorkerSignal::Stack] {
        for fd in [other.as_fd(), file.as_fd()] {
            server.say(&ToLauncher::Signal { which }, &[fd]);
        }
        server.say(&ToLauncher::Signal { which }, &[]);
    }
    server.say(&ToLauncher::Kill { id: 7 }, &[]);
    server.say(&ToLauncher::Signal { which: WorkerSignal::Kill }, &[pidfd.as_fd()]);
    // Orders are carried out in turn, so earlier ones have taken effect by now.
    let mut said = first_line(&output);
    if said != "ended 137" {
        // The shell prints "Killed" first if it was already waiting.
        said = first_line(&output);
    }
    assert_eq!(said, "ended 137");
    assert!(bystander.try_wait().unwrap().is_none());
    bystander.kill().unwrap();
    bystander.wait().unwrap();
    server.say(&ToLauncher::Kill { id: 1 }, &[]);
    let (id, status) = server.hear();
    assert!(id == 1 && status.contains("signal: 9"), "{status}");
}

#[test]
fn the_number_of_processes_of_a_pool_is_limited() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::new(directory.path(), "echo started; exec sleep 600");
    server.say(&ToLauncher::Settled, &[]);
    let outputs: Vec<_> = (1..=MAX_OF_POOL as u64).map(|id| server.start(id)).collect();
    assert!(outputs.iter().all(|output| first_line(output) == "started"));
    let _more = server.start(999);
    let (id, status) = server.hear();
    assert!(id == 999 && status.contains("still running, the maximum"), "{status}");
    for id in 1..=MAX_OF_POOL as u64 {
        server.say(&ToLauncher::Kill { id }, &[]);
    }
    let ended: std::collections::BTreeSet<u64> = (0..MAX_OF_POOL).map(|_| server.hear().0).collect();
    assert_eq!(ended.len(), MAX_OF_POOL);
}

#[test]
fn leftover_processes_and_socket_files_end_with_the_server() {
    let directory = tempfile::tempdir().unwrap();
    let (ours, replaced) = (directory.path().join("ours"), directory.path().join("replaced"));
    let _listeners = [&ours, &replaced].map(|path| std::os::unix::net::UnixListener::bind(path).unwrap());
    let server = Server::new(directory.path(), "exec true");
    for path in [&ours, &replaced] {
        server.say(&ToLauncher::Socket { path: path.clone(), later: false }, &[]);
    }
    server.say(&ToLauncher::Settled, &[]);
    let _output = server.start(1);
    assert_eq!(server.hear(), (1, "exit status: 0".to_owned()), "the launcher has recorded the sockets");
    std::fs::remove_file(&replaced).unwrap();
    std::fs::write(&replaced, "another file").unwrap();
    drop(server);
    assert!(!ours.exists() && replaced.exists());
}

#[test]
fn a_root_program_that_arrives_after_the_settlement_is_ignored() {
    let place = tempfile::tempdir().unwrap();
    let server = Server::new(place.path(), "true");
    server.say(&ToLauncher::Settled, &[]);
    let (_ours, theirs) = control_socket::pair().unwrap();
    server.say(&ToLauncher::RootProgram(Box::new(root_program("/bin/true".into()))), &[]);
    server.say(&ToLauncher::StartRootProgram { id: 7 }, &[theirs.as_fd()]);
    assert_eq!(server.hear(), (7, "the launcher does not know the server's program".to_owned()));
}

#[test]
fn an_upgrade_starts_only_the_settled_program_and_only_if_root_owns_it() {
    let place = tempfile::tempdir().unwrap();
    let server = Server::new(place.path(), "true");
    let theirs = place.path().join("program");
    // Every user can write to directories for temporary files.
    server.say(&ToLauncher::RootProgram(Box::new(root_program(theirs))), &[]);
    server.say(&ToLauncher::Settled, &[]);
    let (pipe, _writer) = pipe_with(PipeFlags::CLOEXEC).unwrap();
    server.say(&ToLauncher::StartRootProgram { id: 1 }, &[pipe.as_fd()]);
    assert_eq!(server.hear(), (1, "the launcher was not given a socket".to_owned()));
    let (_ours, socket) = control_socket::pair().unwrap();
    server.say(&ToLauncher::StartRootProgram { id: 2 }, &[socket.as_fd()]);
    let (id, why) = server.hear();
    assert!(id == 2 && why.contains("users other than root can change"), "{why}");
}

#[test]
fn new_programs_are_started_once_root_has_reread_the_settings() {
    let place = tempfile::tempdir().unwrap();
    let server = Server::new(place.path(), "echo started");
    let new = Program { pool: "new".into(), ..server.settled.clone() };
    let (list, words) = (place.path().join("list"), place.path().join("words"));
    let script = format!("test -n \"${SETTLES}\" && cat {0} && ! cat {1}", list.display(), words.display());
    let reader = RootProgram { arguments: vec!["-c".into(), script.into()], ..root_program("/bin/sh".into()) };
    server.say(&ToLauncher::RootProgram(Box::new(reader)), &[]);
    server.say(&ToLauncher::Settle { id: 1 }, &[]);
    server.say(&ToLauncher::Settled, &[]);
    std::fs::write(&words, "howdah.toml: line 3: a mistake\n").unwrap();
    crate::process::settings_process::print(std::slice::from_ref(&new), std::fs::File::create(&list).unwrap()).unwrap();
    server.say(&ToLauncher::Settle { id: 2 }, &[]);
    let (id, why) = server.hear();
    assert!(id == 2 && why.contains("line 3: a mistake"), "no report of the early order: {id} {why}");
    let _never = server.start_program(3, &new);
    assert!(server.hear().1.contains("may not start that program"));
    std::fs::remove_file(&words).unwrap();
    server.say(&ToLauncher::Settle { id: 4 }, &[]);
    assert_eq!(server.hear(), (4, "exit status: 0".to_owned()));
    for (id, program) in [(5, &new), (6, &server.settled)] {
        let output = server.start_program(id, program);
        assert_eq!(first_line(&output), "started");
        assert_eq!(server.hear(), (id, "exit status: 0".to_owned()));
    }
}
