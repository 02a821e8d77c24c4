//! HTTP/2 and HTTP/3 underneath the tests' client. A scenario writes and reads HTTP/1.1. This module parses its
//! requests (`request`), sends them over the version of this run of the tests (`link`), and writes the responses as
//! HTTP/1.1 again (`translate`). So the same scenarios test all versions.
//!
//! Requests that only HTTP/1.1 can express fail their test here: such a scenario declares `Setup::http1`.

mod link;
mod request;
mod translate;

use link::Link;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, LazyLock, OnceLock};
use tokio::runtime::Runtime;
use tokio::task::AbortHandle;

/// The reason why a connection ends.
#[derive(Debug)]
enum End {
    /// One side is gone, or the response ended early; the scenario sees an end of the connection.
    Gone,
    /// The scenario wrote something that this version cannot express, or the server broke the protocol.
    Complaint(String),
}

/// A version of HTTP with a binary format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    Two,
    Three,
}

impl Version {
    /// The version of this run of the tests (`HOWDAH_TEST_HTTP`), if it is not HTTP/1.1.
    pub fn asked_for() -> Option<Self> {
        match std::env::var("HOWDAH_TEST_HTTP").as_deref() {
            Err(_) | Ok("" | "0" | "1") => None,
            Ok("2") => Some(Self::Two),
            Ok("3") => Some(Self::Three),
            Ok(other) => panic!("HOWDAH_TEST_HTTP={other}: 1, 2 or 3"),
        }
    }

    /// Value of `SERVER_PROTOCOL` for scripts.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Two => "HTTP/2.0",
            Self::Three => "HTTP/3.0",
        }
    }
}

/// Value of `SERVER_PROTOCOL` for scripts in this run of the tests, unless the scenario writes the version itself.
pub fn server_protocol() -> &'static str {
    Version::asked_for().map_or("HTTP/1.1", Version::word)
}

/// Two threads, as several connections of one test must not wait for each other.
static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.worker_threads(2).enable_all().build().unwrap_or_else(|e| panic!("no runtime: {e}"))
});

/// A connection of this version. Its owner speaks HTTP/1.1 with `side`.
#[derive(Debug)]
pub(crate) struct Translated {
    pub(crate) side: UnixStream,
    pub(crate) local_port: u16,
    /// The reason of [`End::Complaint`].
    complaint: Arc<OnceLock<String>>,
    task: AbortHandle,
}

impl Translated {
    pub(crate) fn open(address: SocketAddr, version: Version) -> io::Result<Self> {
        let link = RUNTIME.block_on(Link::open(address, version))?;
        let (side, other) = UnixStream::pair()?;
        other.set_nonblocking(true)?;
        let local_port = link.local_port;
        let complaint = Arc::new(OnceLock::new());
        let told = complaint.clone();
        let run = async move {
            // The scenario must see the end after the complaint: `other` is dropped last.
            let mut other = tokio::net::UnixStream::from_std(other)?;
            if let Err(End::Complaint(why)) = translate::serve(&mut other, link).await {
                let _ = told.set(why);
            }
            io::Result::Ok(())
        };
        Ok(Self { side, local_port, complaint, task: spawn(run) })
    }

    /// Fails the test after an [`End::Complaint`].
    pub(crate) fn check(&self) {
        if let Some(why) = self.complaint.get() {
            panic!("{why} (a scenario about HTTP/1's bytes must declare `Setup::http1`)");
        }
    }
}

/// Closes the connection to the server with its client.
impl Drop for Translated {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn spawn(task: impl Future<Output = io::Result<()>> + Send + 'static) -> AbortHandle {
    RUNTIME.spawn(task).abort_handle()
}
