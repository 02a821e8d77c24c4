//! A Redis that keeps nothing on disk.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use super::wait_until_ready;
use crate::guard::{Guarded, Launch};
use crate::interrupt::Interrupt;
use crate::systems::program;

/// A running Redis.
#[derive(Debug)]
pub struct Redis {
    guarded: Guarded,
    pub socket: PathBuf,
}

impl Redis {
    /// Starts it and waits until it responds.
    pub fn start(dir: &Path, interrupt: &Interrupt) -> Result<Self> {
        let server = program("redis-server").context("redis-server is not installed (apt-get install redis-server)")?;
        fs::create_dir_all(dir)?;
        let socket = dir.join("redis.sock");
        let arguments =
            ["--port", "0", "--unixsocket", &socket.to_string_lossy(), "--unixsocketperm", "777", "--save", ""]
                .iter()
                .chain(&["--appendonly", "no", "--daemonize", "no", "--dir", &dir.to_string_lossy()])
                .map(|word| (*word).to_owned())
                .collect();
        let guarded = Guarded::start(&Launch {
            program: server,
            arguments,
            environment: Vec::new(),
            directory: dir.to_owned(),
            log: dir.join("redis.log"),
        })?;
        let service = Self { guarded, socket };
        wait_until_ready("Redis", &service.guarded, Duration::from_secs(20), interrupt, || service.ping())?;
        Ok(service)
    }

    fn ping(&self) -> Result<()> {
        let mut stream = UnixStream::connect(&self.socket)?;
        stream.set_read_timeout(Some(Duration::from_secs(5)))?;
        stream.write_all(b"PING\r\n")?;
        let mut reply = [0; 7];
        stream.read_exact(&mut reply)?;
        if &reply != b"+PONG\r\n" {
            bail!("unexpected reply to PING");
        }
        Ok(())
    }

    /// Returns the guard's process id.
    pub fn root(&self) -> u32 {
        self.guarded.root()
    }
}
