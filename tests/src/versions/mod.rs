//! HTTP/2 and HTTP/3 underneath the tests' client. A scenario writes and reads HTTP/1.1; what it writes is read here
//! (`request`), goes to the server over the version that this run of the tests is for (`link`), and what comes back is
//! written as HTTP/1.1 again (`translate`). So the same scenarios look at all versions.
//!
//! Requests that only HTTP/1.1 can express fail their test here: such a scenario says `Setup::http1`.

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

/// Why a connection ends.
#[derive(Debug)]
enum End {
    /// One of the two sides is gone, or the response broke off; the scenario sees an end.
    Gone,
    /// The scenario wrote what this version cannot say, or the server sent what it must not.
    Complaint(String),
}

/// A version of HTTP that is not written as text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    Two,
    Three,
}

impl Version {
    /// The one that this run of the tests is for (`HOWDAH_TEST_HTTP`), if it is not HTTP/1.1.
    #[must_use]
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

/// Value of `SERVER_PROTOCOL` for scripts in this run of the tests, where the scenario does not write the version itself.
#[must_use]
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
    /// Why the scenario cannot be said in this version.
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
            // The scenario sees the end after the complaint: `other` goes last.
            let mut other = tokio::net::UnixStream::from_std(other)?;
            if let Err(End::Complaint(why)) = translate::serve(&mut other, link).await {
                let _ = told.set(why);
            }
            io::Result::Ok(())
        };
        Ok(Self { side, local_port, complaint, task: spawn(run) })
    }

    /// Fails the test where it has written what cannot be said in this version.
    pub(crate) fn check(&self) {
        if let Some(why) = self.complaint.get() {
            panic!("{why}: a scenario that is about HTTP/1's bytes says so with `Setup::http1`");
        }
    }
}

/// A client that goes takes its connection with it.
impl Drop for Translated {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn spawn(task: impl Future<Output = io::Result<()>> + Send + 'static) -> AbortHandle {
    RUNTIME.spawn(task).abort_handle()
}
