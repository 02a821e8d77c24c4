//! State that servers share in a real Redis: owners and ends of locks, and recovery of lost data.

use super::*;
use crate::address::Address;
use crate::lock::{LIFE, extend};
use ::redis::Value;
use howdah_skip::skip;
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

/// A separate Redis for the test.
struct Server {
    process: Child,
    address: Address,
}

impl Server {
    /// `None` if the program is not installed.
    fn start(dir: &Path) -> Option<Self> {
        // Another process may take the port in between.
        (0..10).find_map(|_| {
            let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
            let mut command = Command::new("setpriv");
            command.args(["--pdeathsig", "KILL", "--", "redis-server", "--bind", "127.0.0.1", "--save", "", "--dir"]);
            command.arg(dir).args(["--port", &port.to_string()]);
            let process = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().ok()?;
            let address = Address::parse(&format!("redis://127.0.0.1:{port}")).unwrap();
            let mut server = Self { process, address };
            let until = Instant::now() + Duration::from_secs(60);
            while Instant::now() < until && server.process.try_wait().is_ok_and(|ended| ended.is_none()) {
                if TcpStream::connect(("127.0.0.1", port)).is_ok() {
                    return Some(server);
                }
                std::thread::sleep(Duration::from_millis(20));
            }
            None
        })
    }

    fn broker(&self) -> Broker {
        Broker::new(self.address.clone(), None).unwrap()
    }

    fn storage(&self, dir: &Path) -> Storage {
        Storage::new(StateDir::open(dir).unwrap(), Some(self.broker()), "acme:test")
    }

    fn says(&self, words: &[&str]) -> Value {
        self.broker().run(::redis::cmd(words[0]).arg(&words[1..]).take()).unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

macro_rules! redis {
    ($dir:expr) => {
        match Server::start($dir.path()) {
            Some(server) => server,
            None => skip!("redis-server", "it is not installed"),
        }
    };
}

const KEY: &str = "howdah:acme:test:l";

#[test]
fn a_lock_in_a_redis_is_for_one_and_ends_with_its_owner() {
    let dirs = [(); 3].map(|()| tempfile::tempdir().unwrap());
    let server = redis!(dirs[0]);
    let (one, two) = (server.storage(dirs[1].path()), server.storage(dirs[2].path()));
    let held = one.try_lock("l").unwrap().unwrap();
    assert!(two.try_lock("l").unwrap().is_none() && one.try_lock("l").unwrap().is_none());
    assert!(two.try_lock("other").unwrap().is_some());
    // If this server were killed now, the lock would expire.
    let Value::Int(left) = server.says(&["PTTL", KEY]) else { panic!("no number") };
    assert!(left > 0 && left <= LIFE.as_millis() as i64, "{left}");
    drop(held);
    let until = Instant::now() + Duration::from_secs(60);
    while server.says(&["EXISTS", KEY]) == Value::Int(1) {
        assert!(Instant::now() < until, "the lock stays");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(two.try_lock("l").unwrap().is_some());
}

#[test]
fn a_lock_taken_over_by_another_server_is_not_released() {
    let dir = tempfile::tempdir().unwrap();
    let server = redis!(dir);
    let broker = server.broker();
    assert!(broker.take_lock(KEY, "own", LIFE).unwrap() && extend(&broker, KEY, "own"));
    assert!(!broker.take_lock(KEY, "other", LIFE).unwrap());
    // The lock had expired and is free, so this server can take it again.
    server.says(&["DEL", KEY]);
    assert!(extend(&broker, KEY, "own"));
    assert_eq!(server.says(&["GET", KEY]), Value::BulkString(b"own".to_vec()));
    server.says(&["SET", KEY, "other"]);
    assert!(!extend(&broker, KEY, "own"));
    assert!(!broker.release_lock(KEY, "own").unwrap());
    assert_eq!(server.says(&["GET", KEY]), Value::BulkString(b"other".to_vec()));
}

#[test]
fn data_that_a_redis_has_lost_comes_back_and_its_own_is_newer_than_a_copy() {
    let dirs = [(); 3].map(|()| tempfile::tempdir().unwrap());
    let server = redis!(dirs[0]);
    let (one, two) = (server.storage(dirs[1].path()), server.storage(dirs[2].path()));
    one.write("a", b"first").unwrap();
    for storage in [&one, &two] {
        assert_eq!(storage.read_kept("a").unwrap().unwrap(), b"first");
    }
    two.write("a", b"second").unwrap();
    assert_eq!(one.read_kept("a").unwrap().unwrap(), b"second");
    server.says(&["FLUSHALL"]);
    assert_eq!(one.read_kept("a").unwrap().unwrap(), b"second");
    assert_eq!(two.read("a").unwrap().unwrap(), b"second");
    // A copy must not restore data that was removed on purpose.
    one.remove("a");
    assert_eq!(one.read_kept("a").unwrap(), None);
    drop(server);
    assert!(one.read_kept("a").is_err() && one.try_lock("l").is_err());
    assert_eq!(two.read_kept("a").unwrap().unwrap(), b"first", "the last that it had read");
}

#[test]
fn challenges_are_announced_while_pending() {
    let dir = tempfile::tempdir().unwrap();
    let server = redis!(dir);
    let (first, second) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let directory = Storage::Directory(StateDir::open(first.path()).unwrap());
    for (ours, theirs) in
        [(server.storage(first.path()), server.storage(second.path())), (directory.clone(), directory.clone())]
    {
        let (ours, theirs) = (ours.below("c").unwrap(), theirs.below("c").unwrap());
        let names = || {
            let mut names: Vec<String> = theirs.announced().unwrap().into_iter().collect();
            names.sort_unstable();
            names
        };
        assert!(names().is_empty());
        for token in ["a-b", "a", "a-b", "b-"] {
            ours.announce(token, b"proof").unwrap();
        }
        assert_eq!(names(), ["a", "a-b", "b-"]);
        assert_eq!(theirs.read("a-b").unwrap().as_deref(), Some(&b"proof"[..]));
        theirs.withdraw("a");
        theirs.withdraw("unknown");
        assert_eq!(names(), ["a-b", "b-"]);
        assert_eq!(theirs.read("a").unwrap(), None);
    }
}
