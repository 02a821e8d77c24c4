//! `howdah serve`: puts the parts together, waits for signals, takes them apart again.
//!
//! Order of the end, which loses no accepted request: stop accepting → connections finish → pools finish and end their
//! processes → I/O threads end → logs are written out → the admin endpoint closes. A second signal ends everything at once.

use crate::admin::{self, Order};
use crate::edition::{Edition, Front as Fronts, OnThread};
use crate::pools::{self, Pools, Surroundings};
use crate::reload::{Beside, Fixed, Reread, Running, Server, Tasks};
use crate::tls::{self, Tls};
use crate::{certificates, identity, recipes, traces, watch, ways};
use anyhow::{Context, Result, anyhow};
use arc_swap::ArcSwap;
use howdah_budget::Budgets;
use howdah_config::{ListenAddr, Loaded, Settings};
use howdah_observe::log::LogHandle;
use howdah_observe::{AccessLogs, Metrics, SlowLogs};
use howdah_pool::launcher::{Launcher, LauncherEnd, LauncherProcess};
use howdah_pool::program::Program;
use howdah_pool::{IoThreads, PoolConfig};
use howdah_protocol::Shared;
use howdah_protocol::front::{Drained, Front, runtimes};
use howdah_protocol::listener::{BindError, Listener};
use howdah_protocol::unix_socket::UnixAccess;
use howdah_telemetry::Sender;
use howdah_tls::Store;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;

/// Serves until told to stop.
///
/// What needs root's rights comes first: log files, addresses, the launcher. Then the server becomes whom the settings
/// name, and only then does it start threads, read what clients send, or have PHP started.
pub(crate) fn run(loaded: &Loaded, reread: Reread) -> Result<()> {
    let settings = Arc::new(loaded.settings.clone());
    let account = identity::account(&settings).map_err(|error| anyhow!(error))?;
    identity::announce_logs(account.as_ref());
    let log = howdah_observe::log::init(&settings.log).context("cannot open the error log")?;
    // However this ends, the last lines say why.
    let _flush = FlushAtEnd(log.clone());
    recipes::tell(loaded);
    loaded.warnings().iter().for_each(|warning| tracing::warn!("{warning}"));
    // Keys may be root's alone.
    let store = Store::new();
    let tls = tls::prepare(loaded, store.clone(), None).map_err(|errors| anyhow!(errors.join("\n")))?;
    let warnings = tls.as_ref().map(|tls| tls.warnings(account.as_ref())).unwrap_or_default();
    warnings.iter().for_each(|warning| tracing::warn!(target: "howdah::tls", "{warning}"));
    raise_descriptor_limit();
    // Listening comes before PHP: a port in use is found before any process is started.
    let access = identity::listener_access(&settings, account.as_ref()).map_err(|error| anyhow!(error))?;
    let bind = |addr| {
        let listener = Listener::bind_for(addr, access)?;
        Ok(match &tls {
            Some(tls) => tls.on(listener, addr),
            None => listener,
        })
    };
    let bound: Result<Vec<Listener>, BindError> = settings.listen.iter().map(bind).collect();
    let mut listeners = bound.map_err(|error| anyhow!("{error}"))?;
    let over_udp: Result<Vec<Listener>, BindError> =
        tls.iter().flat_map(|tls| listeners.iter().filter_map(|listener| tls.beside(listener))).collect();
    listeners.extend(over_udp.map_err(|error| anyhow!("{error}"))?);
    let admin = admin::bind(&settings)?;
    let metrics = Metrics::new();
    metrics.set_error_log(log.clone());
    let access_logs = AccessLogs::open(&settings, &metrics).context("cannot open an access log")?;
    let slow_logs = SlowLogs::open(&settings, &metrics).context("cannot open a slow log")?;
    let budgets = Budgets::new(settings.http.memory.bytes(), settings.http.spool.bytes());
    let configs = pools::configs(&settings, budgets).map_err(|error| anyhow!(error))?;
    certificates::prepare(&settings.acme, account.as_ref())?;
    let launcher = identity::give_up_root(&settings, account.as_ref(), &configs)?;
    identity::tell(&settings, &configs);
    let main = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let start = Start {
        reread,
        listeners,
        access,
        store,
        tls,
        admin,
        metrics,
        access_logs,
        slow_logs,
        budgets,
        configs,
        launcher,
    };
    main.block_on(serve(settings, log, start))
}

/// What was opened and settled before the server gave up root's rights.
struct Start {
    reread: Reread,
    listeners: Vec<Listener>,
    access: UnixAccess,
    store: Arc<Store>,
    tls: Option<Tls>,
    admin: admin::Socket,
    metrics: Arc<Metrics>,
    access_logs: AccessLogs,
    slow_logs: SlowLogs,
    budgets: Budgets,
    configs: Vec<PoolConfig>,
    launcher: Option<LauncherProcess>,
}

/// Every connection, open file and spooled body is a descriptor, and the usual soft limit is 1024: takes what the hard
/// limit allows (getrlimit(2)). A failure leaves the limit as it is.
fn raise_descriptor_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
}

/// Has written the error log when it goes.
struct FlushAtEnd(LogHandle);

impl Drop for FlushAtEnd {
    fn drop(&mut self) {
        self.0.flush();
    }
}

#[expect(clippy::disallowed_methods, reason = "a second stop ends at once")]
async fn serve(settings: Arc<Settings>, log: LogHandle, start: Start) -> Result<()> {
    let (server, mut front, mut launcher_end, started) = begin(&settings, log.clone(), start).await?;
    let Started { admin, mut signals, mut ordered, telemetry } = started;
    let mut lost_launcher = false;
    let waiter = loop {
        tokio::select! {
            order = ordered.recv() => match order {
                Some(Order::Stop(waiter)) => break Some(waiter),
                None => break None,
            },
            event = signals.next() => match event {
                Event::Stop => break None,
                Event::Reload => {
                    let server = server.clone();
                    // The log says what comes of it.
                    tokio::spawn(async move { server.reload(false).await });
                }
                Event::ReopenLogs => reopen_logs(&server),
            },
            () = has_gone(launcher_end.as_mut()) => {
                // Nobody can start, kill or reap PHP's processes now; whoever keeps the server running starts it anew.
                tracing::error!("the launcher has ended: the server stops");
                lost_launcher = true;
                break None;
            }
        }
    };
    server.drain();
    tracing::info!("stopping: no new connections, running requests have {:?}", server.edition().settings.grace);
    let clean = tokio::select! {
        clean = stop(&server, &mut front) => clean,
        () = signals.second_stop() => {
            tracing::warn!("told to stop again: ending at once");
            remove_socket_files(&server);
            log.flush();
            std::process::exit(130);
        }
    };
    front.end();
    server.edition().access_logs.flush();
    server.fixed.around.slow_logs.flush();
    if let Some(telemetry) = telemetry {
        telemetry.end(traces::LAST_SPANS).await;
    }
    // Before the admin endpoint ends: `howdah stop` takes that for the end, and another server may start at once.
    remove_socket_files(&server);
    if let Some(launcher) = launcher_end {
        // It removes those whose directories are not the server's.
        launcher.end().await;
    }
    admin.end().await;
    if let Some(waiter) = waiter {
        let _ = waiter.send(());
    }
    tracing::info!("stopped");
    if lost_launcher {
        return Err(anyhow!("the launcher has ended"));
    }
    if clean { Ok(()) } else { Err(anyhow!("the grace time ran out; requests were cut")) }
}

/// What tells the server to do something.
struct Started {
    admin: admin::Admin,
    signals: Signals,
    ordered: mpsc::Receiver<Order>,
    telemetry: Option<Sender>,
}

/// Starts everything; what is returned serves.
async fn begin(
    settings: &Arc<Settings>,
    log: LogHandle,
    start: Start,
) -> Result<(Arc<Server>, Front, Option<LauncherEnd>, Started)> {
    let Start {
        reread,
        listeners,
        access,
        store,
        mut tls,
        admin,
        metrics,
        access_logs,
        slow_logs,
        budgets,
        configs,
        launcher,
    } = start;
    let shared = Shared::new(&settings.http, budgets, metrics.clone());
    let shared = Arc::new(shared.with_extended_connect(ways::change_protocols(settings)));
    let fronts = Fronts::new(settings, &metrics, access_logs, budgets, &[]).map_err(|error| anyhow!(error))?;
    let telemetry = traces::start(&settings.telemetry, &metrics, &fronts.sites);
    let programs = launcher.is_some().then(|| configs.iter().map(Program::of).collect());
    let (launcher, launcher_end) = match launcher.map(LauncherProcess::attach).transpose()? {
        Some((launcher, end)) => (launcher, Some(end)),
        None => (Launcher::default(), None),
    };
    let signals = Signals::new()?;
    let certificates = certificates::start(&settings.acme, store.clone())?;
    shared.on_missing_certificates(certificates.demand());
    let report = certificates.report();
    // From here on nothing may fail before the front has the runtimes: they must not be dropped inside a runtime.
    let runtimes = runtimes(settings.threads)?;
    let io_threads = IoThreads::new(runtimes.iter().map(|r| r.handle().clone()).collect());
    let watched = watch::look_first(settings).await;
    howdah_pool::adopt_orphans();
    let around = Surroundings { io_threads, metrics: metrics.clone(), launcher, slow_logs };
    let pools = Arc::new(Pools::start(configs, &around, settings));
    let (edition, unused) = Edition::new(settings.clone(), fronts, pools, settings.threads);
    let current = Arc::new(ArcSwap::new(edition.clone()));
    let fixed = Fixed { reread, log, budgets, around, programs, access, store, certificates };
    let server = Server::new(fixed, current.clone());
    server.introduce(&edition);
    let (orders, ordered) = mpsc::channel(4);
    let admin = admin::start(admin, settings, server.clone(), metrics, report, orders)?;
    let addresses = listeners.iter().map(|l| l.local_addr().to_string()).collect::<Vec<_>>().join(", ");
    let tasks = Tasks::start(&edition, watched, tls.as_mut());
    let handler = |number| OnThread::new(&current, number);
    let front = Front::start(&shared, handler, howdah_pool::io_threads::enter, listeners, runtimes)?;
    let what = match &edition.sites.all() {
        [only] => only.root.display().to_string(),
        all => format!("{} sites", all.len()),
    };
    tracing::info!("howdah {} serves {what} on {addresses}", env!("CARGO_PKG_VERSION"));
    let running = Running { doors: front.doors().clone(), shared: front.shared().clone() };
    server.runs(running, Beside { unused, tls, _tasks: tasks }).await;
    Ok((server, front, launcher_end, Started { admin, signals, ordered, telemetry }))
}

async fn has_gone(launcher: Option<&mut LauncherEnd>) {
    match launcher {
        Some(launcher) => launcher.gone().await,
        None => std::future::pending().await,
    }
}

/// True if nothing was cut.
async fn stop(server: &Server, front: &mut Front) -> bool {
    let began = Instant::now();
    let grace = server.edition().settings.grace;
    let drained = front.drain(grace).await;
    if let Drained::Cut(connections) = drained {
        tracing::error!("the grace time of {grace:?} ran out: {connections} connections were cut");
    }
    server.stop_pools(grace.saturating_sub(began.elapsed())).await;
    drained == Drained::All
}

fn reopen_logs(server: &Server) {
    match server
        .fixed
        .log
        .reopen()
        .and(server.edition().access_logs.reopen())
        .and(server.fixed.around.slow_logs.reopen())
    {
        Ok(()) => tracing::info!("logs reopened"),
        Err(error) => tracing::error!("cannot reopen a log: {error}"),
    }
}

/// Files of Unix sockets would stay behind when the process ends without running destructors.
fn remove_socket_files(server: &Server) {
    let settings = &server.edition().settings;
    let sockets = settings.listen.iter().chain([&settings.admin]);
    let paths = sockets.filter_map(|addr| match addr {
        ListenAddr::Unix(path) => Some(path.clone()),
        ListenAddr::Tcp(_) | ListenAddr::Https(_) => None,
    });
    for path in paths.collect::<Vec<PathBuf>>() {
        let _ = std::fs::remove_file(path);
    }
}

/// What a signal asks for.
enum Event {
    Stop,
    Reload,
    ReopenLogs,
}

struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hangup: Signal,
    user1: Signal,
}

impl Signals {
    fn new() -> Result<Self> {
        let listen = |kind| signal(kind).context("cannot listen for signals");
        Ok(Self {
            terminate: listen(SignalKind::terminate())?,
            interrupt: listen(SignalKind::interrupt())?,
            hangup: listen(SignalKind::hangup())?,
            user1: listen(SignalKind::user_defined1())?,
        })
    }

    async fn next(&mut self) -> Event {
        tokio::select! {
            _ = self.terminate.recv() => Event::Stop,
            _ = self.interrupt.recv() => Event::Stop,
            _ = self.hangup.recv() => Event::Reload,
            _ = self.user1.recv() => Event::ReopenLogs,
        }
    }

    async fn second_stop(&mut self) {
        loop {
            if matches!(self.next().await, Event::Stop) {
                return;
            }
        }
    }
}
