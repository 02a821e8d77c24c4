//! The addresses of a server that is configured by host name. The system's resolver blocks a thread, so a server's name
//! is resolved by one thread at a time, on behalf of all I/O threads and requests. While the resolver does not answer,
//! the last result stays in use.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::AcqRel, Ordering::Release};
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// Time for which a resolved address is used. The system's resolver does not report TTLs.
const RESOLVE_INTERVAL: Duration = Duration::from_secs(5);
/// Maximum time to wait for a new result when there is an older one.
const GRACE: Duration = Duration::from_secs(1);

/// Resolves a host; it may block.
type Lookup = dyn Fn(&str, u16) -> io::Result<Vec<SocketAddr>> + Send + Sync;

/// The addresses of a host.
pub(crate) struct Addresses(Arc<Shared>);

struct Shared {
    host: String,
    port: u16,
    /// The host is an address itself.
    fixed: Option<Arc<[SocketAddr]>>,
    lookup: Box<Lookup>,
    looking: AtomicBool,
    known: watch::Sender<LookupState>,
}

/// State of a host's addresses.
#[derive(Clone, Default)]
struct LookupState {
    /// The last good answer.
    found: Option<Arc<[SocketAddr]>>,
    /// Time of the last good answer; `None` once no server responded at those addresses.
    at: Option<Instant>,
    /// The reason why the last lookup failed.
    failed: Option<String>,
}

impl fmt::Debug for Addresses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Addresses({}:{})", self.0.host, self.0.port)
    }
}

impl Addresses {
    pub(crate) fn new(host: &str, port: u16) -> Self {
        Self::found_by(host, port, Box::new(|host, port| (host, port).to_socket_addrs().map(Iterator::collect)))
    }

    fn found_by(host: &str, port: u16, lookup: Box<Lookup>) -> Self {
        let (looking, known) = (AtomicBool::new(false), watch::Sender::new(LookupState::default()));
        let fixed = host.parse::<IpAddr>().ok().map(|ip| Arc::from([SocketAddr::new(ip, port)]));
        Self(Arc::new(Shared { host: host.to_owned(), port, fixed, lookup, looking, known }))
    }

    /// The addresses, resolved again if unknown or outdated. The caller must set a timeout.
    ///
    /// # Errors
    /// The host cannot be resolved and never was.
    pub(crate) async fn get(&self) -> io::Result<Arc<[SocketAddr]>> {
        if let Some(fixed) = &self.0.fixed {
            return Ok(fixed.clone());
        }
        let mut watched = self.0.known.subscribe();
        let before = watched.borrow_and_update().clone();
        if let Some(found) =
            before.found.as_ref().filter(|_| before.at.is_some_and(|at| at.elapsed() < RESOLVE_INTERVAL))
        {
            return Ok(found.clone());
        }
        self.0.begin_lookup(&watched);
        match &before.found {
            None => drop(watched.changed().await),
            Some(_) => drop(tokio::time::timeout(GRACE, watched.changed()).await),
        }
        let now = watched.borrow().clone();
        now.found.ok_or_else(|| io::Error::other(now.failed.unwrap_or_else(|| "its name was not looked up".to_owned())))
    }

    /// Marks the addresses as outdated: no server responds there.
    pub(crate) fn invalidate(&self) {
        self.0.known.send_if_modified(|known| {
            known.at = None;
            false
        });
    }
}

impl Shared {
    /// Begins a lookup, unless one is in progress or has ended since `watched` was read.
    fn begin_lookup(self: &Arc<Self>, watched: &watch::Receiver<LookupState>) {
        if self.looking.swap(true, AcqRel) {
            return;
        }
        if watched.borrow().has_changed() {
            self.looking.store(false, Release);
            return;
        }
        let under_way = PendingLookup(Some(self.clone()));
        drop(tokio::task::spawn_blocking(move || under_way.run()));
    }

    fn publish(&self, answer: io::Result<Vec<SocketAddr>>) {
        self.known.send_modify(|known| {
            match answer {
                Ok(found) if !found.is_empty() => {
                    *known = LookupState { found: Some(found.into()), at: Some(Instant::now()), failed: None };
                }
                Ok(_) => known.failed = Some("its name has no address".to_owned()),
                Err(error) => known.failed = Some(format!("its name cannot be looked up: {error}")),
            }
            // Before waiting callers are notified, as they may have to resolve again, and after the answer is visible.
            self.looking.store(false, Release);
        });
    }
}

/// A lookup in progress. If its runtime ends before the lookup runs, dropping it allows another one to begin.
struct PendingLookup(Option<Arc<Shared>>);

impl PendingLookup {
    fn run(mut self) {
        let Some(shared) = self.0.clone() else { return };
        let answer = (shared.lookup)(&shared.host, shared.port);
        self.0 = None;
        shared.publish(answer);
    }
}

impl Drop for PendingLookup {
    fn drop(&mut self) {
        if let Some(shared) = self.0.take() {
            shared.publish(Err(io::ErrorKind::Interrupted.into()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use parking_lot::Mutex;
    use std::sync::mpsc::{Receiver, Sender, channel};

    /// Addresses whose lookups wait for the test's answers, and report their beginning.
    fn addresses() -> (Addresses, Sender<io::Result<Vec<SocketAddr>>>, Receiver<()>) {
        let (answer, answers) = channel();
        let (begins, begun) = channel();
        let answers: Mutex<Receiver<io::Result<Vec<SocketAddr>>>> = Mutex::new(answers);
        let lookup = move |_: &str, _: u16| {
            let _ = begins.send(());
            answers.lock().recv().unwrap()
        };
        (Addresses::found_by("app", 80, Box::new(lookup)), answer, begun)
    }

    fn at(text: &str) -> Vec<SocketAddr> {
        vec![text.parse().unwrap()]
    }

    fn run(test: impl Future<Output = ()>) {
        tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(test);
    }

    #[test]
    fn concurrent_callers_share_one_name_lookup_and_its_result_is_cached() {
        run(async {
            let (addresses, answer, begun) = addresses();
            let addresses = Arc::new(addresses);
            let asks: Vec<_> = (0..200)
                .map(|_| {
                    let addresses = addresses.clone();
                    tokio::spawn(async move { addresses.get().await.map(|found| found[0]) })
                })
                .collect();
            tokio::task::yield_now().await;
            answer.send(Ok(at("10.0.0.1:80"))).unwrap();
            for ask in asks {
                assert_eq!(ask.await.unwrap().unwrap(), at("10.0.0.1:80")[0]);
            }
            assert_eq!(addresses.get().await.unwrap()[0], at("10.0.0.1:80")[0]);
            assert_eq!(begun.try_iter().count(), 1);
        });
    }

    #[test]
    fn the_last_good_answer_serves_while_the_resolver_fails_or_is_silent() {
        run(async {
            let (addresses, answer, begun) = addresses();
            answer.send(Err(io::Error::other("no such host"))).unwrap();
            let error = addresses.get().await.unwrap_err().to_string();
            assert_eq!(error, "its name cannot be looked up: no such host");
            answer.send(Ok(at("10.0.0.1:80"))).unwrap();
            assert_eq!(addresses.get().await.unwrap()[0], at("10.0.0.1:80")[0]);
            addresses.invalidate();
            answer.send(Err(io::Error::other("no such host"))).unwrap();
            assert_eq!(addresses.get().await.unwrap()[0], at("10.0.0.1:80")[0]);
            // The name server is silent: two callers share one lookup, and get the known addresses.
            let (first, second) = tokio::join!(addresses.get(), addresses.get());
            assert_eq!((first.unwrap()[0], second.unwrap()[0]), (at("10.0.0.1:80")[0], at("10.0.0.1:80")[0]));
            assert_eq!(begun.try_iter().count(), 4);
            answer.send(Ok(at("10.0.0.2:80"))).unwrap();
            let moved = async {
                while addresses.get().await.unwrap()[0] != at("10.0.0.2:80")[0] {
                    tokio::task::yield_now().await;
                }
            };
            tokio::time::timeout(Duration::from_secs(60), moved).await.unwrap();
        });
    }
}
