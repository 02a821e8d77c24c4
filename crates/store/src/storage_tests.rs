//! State that servers share in a real Redis and a real NATS: owners and ends of locks, and recovery of lost data.

use super::*;
use crate::address::Address;
use crate::broker::Kind;
use crate::lock::extend;
use crate::values::{LOCK_LIFE, wait};
use ::redis::Value;
use async_nats::jetstream::stream;
use howdah_skip::skip;
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A separate broker for the test.
struct Server {
    process: Child,
    address: Address,
}

impl Server {
    /// `None` if the program is not installed.
    fn start(program: &str, dir: &Path) -> Option<Self> {
        // Another process may take the port in between.
        (0..10).find_map(|_| {
            let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
            let mut command = Command::new("setpriv");
            command.args(["--pdeathsig", "KILL", "--", program]);
            let scheme = match program {
                "nats-server" => {
                    command.args(["-a", "127.0.0.1", "-js", "-sd"]).arg(dir).args(["-p", &port.to_string()]);
                    "nats"
                }
                _ => {
                    command.args(["--bind", "127.0.0.1", "--save", "", "--dir"]).arg(dir);
                    command.args(["--port", &port.to_string()]);
                    "redis"
                }
            };
            let process = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().ok()?;
            let address = Address::parse(&format!("{scheme}://127.0.0.1:{port}")).unwrap();
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

    /// Runs a command of Redis.
    fn says(&self, words: &[&str]) -> Value {
        let broker = self.broker();
        let Kind::Redis { values, .. } = broker.kind() else { panic!("not Redis") };
        let (redis, command) = (values.clone(), ::redis::cmd(words[0]).arg(&words[1..]).take());
        wait(broker.runtime(), async move { redis.run(&command, Duration::from_secs(60)).await }).unwrap()
    }

    fn lose_data(&self) {
        let broker = self.broker();
        let Kind::Nats(nats) = broker.kind() else {
            self.says(&["FLUSHALL"]);
            return;
        };
        let nats = nats.clone();
        let lose =
            async move { nats.context().await?.delete_key_value("howdah-values").await.map_err(io::Error::other) };
        wait(broker.runtime(), lose).unwrap();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Starts a broker, or skips the test.
macro_rules! start {
    ($program:literal, $dir:expr) => {
        match Server::start($program, $dir.path()) {
            Some(server) => server,
            None => skip!($program, "it is not installed"),
        }
    };
}

/// Runs tests with each broker.
macro_rules! with_each_broker {
    ($($test:ident)*) => {
        mod redis {
            $(#[test]
            fn $test() {
                let dir = tempfile::tempdir().unwrap();
                super::$test(start!("redis-server", dir));
            })*
            use super::*;
        }
        mod nats {
            $(#[test]
            fn $test() {
                let dir = tempfile::tempdir().unwrap();
                super::$test(start!("nats-server", dir));
            })*
            use super::*;
        }
    };
}

with_each_broker! {
    a_lock_is_for_one_and_ends_with_its_owner
    a_lock_taken_over_by_another_server_is_not_released
    lost_data_comes_back_and_the_brokers_own_is_newer_than_a_copy
    challenges_are_announced_while_pending
}

const KEY: &str = "howdah:acme:test:l";

fn a_lock_is_for_one_and_ends_with_its_owner(server: Server) {
    let dirs = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let (one, two) = (server.storage(dirs[0].path()), server.storage(dirs[1].path()));
    let held = one.try_lock("l").unwrap().unwrap();
    assert!(two.try_lock("l").unwrap().is_none() && one.try_lock("l").unwrap().is_none());
    assert!(two.try_lock("other").unwrap().is_some());
    drop(held);
    let until = Instant::now() + Duration::from_secs(60);
    while two.try_lock("l").unwrap().is_none() {
        assert!(Instant::now() < until, "the lock stays");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// If a server were killed while it holds a lock, the lock would expire.
#[test]
fn a_lock_in_redis_expires_unless_it_is_extended() {
    let dirs = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let server = start!("redis-server", dirs[0]);
    let _held = server.storage(dirs[1].path()).try_lock("l").unwrap().unwrap();
    let Value::Int(left) = server.says(&["PTTL", KEY]) else { panic!("no number") };
    assert!(left > 0 && left <= LOCK_LIFE.as_millis() as i64, "{left}");
}

#[test]
fn a_lock_in_nats_expires_unless_it_is_extended() {
    let dir = tempfile::tempdir().unwrap();
    let server = start!("nats-server", dir);
    let broker = server.broker();
    assert!(broker.values().take_lock("other", "own").unwrap());
    let Kind::Nats(nats) = broker.kind() else { panic!("not NATS") };
    let life = |nats: std::sync::Arc<crate::nats::Nats>, shorter: Option<Duration>| async move {
        let context = nats.context().await?;
        if let Some(max_age) = shorter {
            let mut stream = context.get_stream("KV_howdah-locks").await.map_err(io::Error::other)?;
            let config = stream.info().await.map_err(io::Error::other)?.config.clone();
            context
                .update_stream(stream::Config { max_age, duplicate_window: max_age, ..config })
                .await
                .map_err(io::Error::other)?;
        }
        let store = context.get_key_value("howdah-locks").await.map_err(io::Error::other)?;
        Ok(store.status().await.map_err(io::Error::other)?.max_age())
    };
    assert_eq!(wait(broker.runtime(), life(nats.clone(), None)).unwrap(), LOCK_LIFE);
    let short = Duration::from_millis(500);
    assert_eq!(wait(broker.runtime(), life(nats.clone(), Some(short))).unwrap(), short);
    assert!(broker.values().take_lock(KEY, "own").unwrap());
    let until = Instant::now() + Duration::from_secs(60);
    while !broker.values().take_lock(KEY, "other").unwrap() {
        assert!(Instant::now() < until, "the lock stays");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(!broker.values().extend_lock(KEY, "own").unwrap());
}

fn a_lock_taken_over_by_another_server_is_not_released(server: Server) {
    let broker = server.broker();
    let values = broker.values();
    assert!(values.take_lock(KEY, "own").unwrap() && extend(&broker, KEY, "own"));
    assert!(values.take_lock(KEY, "own").unwrap(), "asked again after a lost reply");
    assert!(!values.take_lock(KEY, "other").unwrap());
    // As if the lock had expired: it is free, so `extend` takes it again.
    values.release_lock(KEY, "own").unwrap();
    assert!(!values.extend_lock(KEY, "own").unwrap());
    assert!(extend(&broker, KEY, "own"));
    assert!(!values.take_lock(KEY, "other").unwrap());
    values.release_lock(KEY, "own").unwrap();
    assert!(values.take_lock(KEY, "other").unwrap());
    assert!(!extend(&broker, KEY, "own"));
    values.release_lock(KEY, "own").unwrap();
    assert!(values.extend_lock(KEY, "other").unwrap());
}

fn lost_data_comes_back_and_the_brokers_own_is_newer_than_a_copy(server: Server) {
    let dirs = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let (one, two) = (server.storage(dirs[0].path()), server.storage(dirs[1].path()));
    one.write("a", b"first").unwrap();
    for storage in [&one, &two] {
        assert_eq!(storage.read_kept("a").unwrap().unwrap(), b"first");
    }
    two.write("a", b"second").unwrap();
    assert_eq!(one.read_kept("a").unwrap().unwrap(), b"second");
    server.lose_data();
    assert_eq!(one.read_kept("a").unwrap().unwrap(), b"second");
    assert_eq!(two.read("a").unwrap().unwrap(), b"second");
    // A copy must not restore data that was removed on purpose.
    one.remove("a");
    assert_eq!(one.read_kept("a").unwrap(), None);
    drop(server);
    assert!(one.read_kept("a").is_err() && one.try_lock("l").is_err());
    assert_eq!(two.read_kept("a").unwrap().unwrap(), b"first", "the last that it had read");
}

fn challenges_are_announced_while_pending(server: Server) {
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
