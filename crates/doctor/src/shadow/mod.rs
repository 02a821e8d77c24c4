//! The doctor as a proxy in front of the server that serves the application now. Clients get that server's responses; a
//! share of the GET requests is copied to Howdah, and the responses of both are compared.
//!
//! ```text
//! client ── connection, exchange ── old server      the response, as it comes (framing, head, pipe)
//!             └─ sample ── copies ── Howdah         later, and only as much as fits (coding)
//! ```
//!
//! No client waits for a comparison. The proxy has its own thread, which keeps responses while it passes them on and puts
//! them into a bounded queue; the main thread compares and prints.

mod coding;
mod connection;
mod copies;
mod exchange;
mod framing;
mod head;
mod pipe;
mod proxy;
mod sample;
mod tally;

use crate::against::{Comparison, Origin};
use crate::client::Client;
use crate::interrupted;
use crate::run::{Options, Run};
use crate::server::Server;
use anyhow::{Context, Result, bail};
use proxy::{Limits, Proxy};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use sample::Sampler;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;
use tally::Tally;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior};

/// Interval of the checks whether the run is to end.
const TICK: Duration = Duration::from_millis(100);
/// Interval of progress messages.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(10);
/// Maximum time that running requests may take once the run is to end.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(10);
/// Wait after a failed accept, such as without free descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Maximum number of clients that wait to be accepted.
const BACKLOG: i32 = 1024;

/// Options of the proxy.
#[derive(Debug, Clone)]
pub struct Shadow {
    /// Address of the proxy, `HOST:PORT` or `:PORT`.
    pub listen: String,
    /// Share of the GET requests to copy, in percent.
    pub share: u64,
    /// `true` if requests with cookies or credentials are copied too.
    pub sessions: bool,
    /// Number of comparisons after which no more requests are copied. Clients are served until a signal arrives.
    pub most: Option<usize>,
}

/// Passes requests on until a signal arrives.
///
/// # Errors
/// Howdah does not start, the address cannot be used, or nothing was compared.
pub fn shadow(options: &Options, origin: &Origin, wanted: &Shadow) -> Result<Comparison> {
    interrupted::watch()?;
    let client = Client::new()?;
    // A port in use is reported before anything starts.
    let listener = listen(&wanted.listen)?;
    let address = listener.local_addr()?;
    let is_any = address.ip().is_unspecified() && origin.place.ip().is_loopback();
    if address.port() == origin.place.port() && (is_any || address.ip() == origin.place.ip()) {
        bail!("{} is the proxy's own address", origin.address);
    }
    // Each client needs two descriptors.
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
    let run = Run::new(options, &client)?;
    let mut classic = run.start_for_copies(copies::WORKERS)?;
    let own = SocketAddr::from(([127, 0, 0, 1], classic.server.port()));
    let tally = Arc::new(Tally::default());
    let (sampler, queue) = Sampler::new(wanted.share, wanted.sessions, Arc::clone(&tally));
    let (sampler, limits) = (Arc::new(sampler), Limits::default());
    let proxy = Arc::new(Proxy { old: origin.place, sampler, tally: Arc::clone(&tally), limits });
    let front = Front::start(listener, Arc::clone(&proxy))?;
    (options.progress)(&format!(
        "listening on {address}: passing requests on to {}, copying {} % of GET requests",
        origin.address, wanted.share
    ));
    let runtime = Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let copying = copies::start(queue, own, &tally);
        watch_over(options, wanted, &proxy, &mut classic.server).await;
        drop(copying);
    });
    // A comparison that still computes must not delay the end.
    runtime.shutdown_background();
    if !front.end() {
        (options.progress)("cut requests that were still running");
    }
    let comparison = tally.comparison(&options.application, &origin.address);
    if comparison.pages == 0 {
        let why = comparison.traffic.as_ref().map(ToString::to_string).unwrap_or_default();
        bail!("no response was compared: {why}");
    }
    Ok(comparison)
}

/// Prints messages until the run is to end.
async fn watch_over(options: &Options, wanted: &Shadow, proxy: &Proxy, server: &mut Server) {
    let tally = &proxy.tally;
    let mut tick = tokio::time::interval(TICK);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut told = (Instant::now(), String::new());
    let mut is_running = true;
    let mut is_copying = true;
    while interrupted::check().is_ok() {
        tick.tick().await;
        tally.messages().iter().for_each(|message| (options.progress)(message));
        if is_copying && wanted.most.is_some_and(|most| tally.compared() >= most) {
            is_copying = false;
            proxy.sampler.stop();
            (options.progress)("copying no more requests: enough have been compared; SIGINT ends the proxy");
        }
        if is_running && server.has_ended() && interrupted::check().is_ok() {
            is_running = false;
            (options.progress)(&format!("howdah has ended; clients are still served: {}", server.last_words()));
        }
        if told.0.elapsed() >= PROGRESS_INTERVAL {
            let now = tally.progress();
            if now != told.1 {
                (options.progress)(&now);
            }
            told = (Instant::now(), now);
        }
    }
    tally.messages().iter().for_each(|message| (options.progress)(message));
}

/// The proxy's thread.
struct Front {
    end: watch::Sender<bool>,
    thread: std::thread::JoinHandle<bool>,
}

impl Front {
    fn start(listener: TcpListener, proxy: Arc<Proxy>) -> Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let (end, ends) = watch::channel(false);
        let thread = std::thread::Builder::new().name("proxy".to_owned());
        let thread = thread.spawn(move || accept(&runtime, listener, proxy, ends))?;
        Ok(Self { end, thread })
    }

    /// Waits for running requests; returns `false` if some had to be cut.
    fn end(self) -> bool {
        let _ = self.end.send(true);
        self.thread.join().unwrap_or(false)
    }
}

fn accept(runtime: &Runtime, listener: TcpListener, proxy: Arc<Proxy>, mut ends: watch::Receiver<bool>) -> bool {
    runtime.block_on(async {
        let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return false };
        let (mut connections, all_end) = (JoinSet::new(), ends.clone());
        loop {
            tokio::select! {
                accepted = listener.accept() => match accepted {
                    Ok((socket, client)) => {
                        connections.spawn(connection::serve(socket, client.ip(), Arc::clone(&proxy), all_end.clone()));
                    }
                    Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
                },
                Some(_) = connections.join_next() => {}
                _ = ends.wait_for(|ends| *ends) => break,
            }
        }
        drop(listener);
        let drained = async { while connections.join_next().await.is_some() {} };
        tokio::time::timeout(DRAIN_TIMEOUT, drained).await.is_ok()
    })
}

/// Listens on `HOST:PORT`, or on every address for `:PORT`.
fn listen(address: &str) -> Result<TcpListener> {
    let listening = match address.strip_prefix(':') {
        // A system may have no IPv6.
        Some(port) => {
            TcpListener::bind(format!("[::]:{port}")).or_else(|_| TcpListener::bind(format!("0.0.0.0:{port}")))
        }
        None => TcpListener::bind(address),
    };
    let listener = listening.with_context(|| format!("cannot listen on {address}"))?;
    // As many clients may wait as for a web server.
    rustix::net::listen(&listener, BACKLOG)?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}
