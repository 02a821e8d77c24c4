//! The upstream server for proxied requests: the same for all systems, and it computes nothing.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;

use anyhow::Result;

use crate::cases::catalogue::UPSTREAM_BYTES;
use crate::guard::{self, Launch};
use crate::interrupt::Interrupt;
use crate::load::{Target, floor};
use crate::systems::{Running, free_address, wait_until_ready};

/// A running upstream server.
#[derive(Debug)]
pub struct Upstream {
    running: Running,
    pub address: SocketAddr,
}

impl Upstream {
    /// Starts it and waits until it responds.
    pub fn start(dir: &Path, interrupt: &Interrupt) -> Result<Self> {
        fs::create_dir_all(dir)?;
        let address = free_address()?;
        let mut running = Running::default();
        running.spawn(&Launch {
            program: guard::binary()?,
            arguments: vec![floor::SUBCOMMAND.into(), address.to_string(), UPSTREAM_BYTES.to_string()],
            environment: Vec::new(),
            directory: dir.to_owned(),
            log: dir.join("upstream.log"),
        })?;
        let target = Target { address, path: "/".into(), accept_encoding: "identity".into(), tls: None };
        wait_until_ready(&running, &target, interrupt)?;
        Ok(Self { running, address })
    }

    /// Returns the guards' process ids.
    pub fn roots(&self) -> Vec<u32> {
        self.running.roots()
    }
}
