//! `howdah serve`: puts the parts together, waits for signals, takes them apart again.
//!
//! Order of the end, which loses no accepted request: stop accepting → connections finish → pools finish and end their
//! processes → I/O threads end → logs are written out → the admin endpoint closes. A second signal ends everything at once.

use crate::admin::{self, Order};
use crate::pools::{self, Pools};
use crate::tls::{self, Tls};
use crate::upgrade::{HandOver, Replaced, Sockets, TakeOver, TakingOver, UnderWay};
use crate::ways::{self, Ways};
use crate::{certificates, identity, recipes, traces, watch};
use anyhow::{Context, Result, anyhow};
use howdah_budget::Budgets;
use howdah_config::{ListenAddr, Loaded, Settings};
use howdah_observe::log::LogHandle;
use howdah_observe::{AccessLogs, Metrics};
use howdah_pool::launcher::{Launcher, LauncherEnd, LauncherProcess};
use howdah_pool::successor::ServerProgram;
use howdah_pool::{IoThreads, PoolConfig};
use howdah_protocol::Shared;
use howdah_protocol::front::{Drained, Front, runtimes};
use howdah_protocol::inherited::InheritedSockets;
use howdah_protocol::listener::{BindError, Listener};
use howdah_site::sites::Covers;
use howdah_site::{Service, Sites};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;

/// Serves until told to stop.
///
/// What needs root's rights comes first: log files, addresses, the launcher. Then the server becomes whom the settings
/// name, and only then does it start threads, read what clients send, or have PHP started.
pub(crate) fn run(loaded: &Loaded, take_over: Option<TakeOver>) -> Result<()> {
    let program = ServerProgram::of_this_process().context("cannot find out which program this is")?;
    let mut inherited = take_over.as_ref().map(TakeOver::sockets).transpose()?.unwrap_or_default();
    let settings = Arc::new(loaded.settings.clone());
    let account = identity::account(&settings).map_err(|error| anyhow!(error))?;
    identity::announce_logs(account.as_ref());
    let log = howdah_observe::log::init(&settings.log).context("cannot open the error log")?;
    // However this ends, the last lines say why.
    let _flush = FlushAtEnd(log.clone());
    recipes::tell(loaded);
    loaded.warnings().iter().for_each(|warning| tracing::warn!("{warning}"));
    // Keys may be root's alone.
    let tls = tls::prepare(loaded).map_err(|errors| anyhow!(errors.join("\n")))?;
    let warnings = tls.as_ref().map(|tls| tls.warnings(account.as_ref())).unwrap_or_default();
    warnings.iter().for_each(|warning| tracing::warn!(target: "howdah::tls", "{warning}"));
    raise_descriptor_limit();
    // Listening comes before PHP: a port in use is found before any process is started.
    let access = identity::listener_access(&settings, account.as_ref()).map_err(|error| anyhow!(error))?;
    let mut bind = |addr| {
        let listener = match inherited.take(addr) {
            Some(socket) => Listener::inherit(addr, socket)?,
            None => Listener::bind_for(addr, access)?,
        };
        Ok(match &tls {
            Some(tls) => tls.on(listener, addr),
            None => listener,
        })
    };
    let bound: Result<Vec<Listener>, BindError> = settings.listen.iter().map(&mut bind).collect();
    let mut listeners = bound.map_err(|error| anyhow!("{error}"))?;
    let over_udp: Result<Vec<Listener>, BindError> =
        tls.iter().flat_map(|tls| over_udp(tls, &listeners, &mut inherited)).collect();
    listeners.extend(over_udp.map_err(|error| anyhow!("{error}"))?);
    let admin = admin::bind(&settings, &mut inherited)?;
    let sockets = Sockets::of(&listeners, &admin, &settings.admin).context("cannot keep the sockets for an upgrade")?;
    let unused = inherited.0.iter().map(|socket| socket.number).collect();
    drop(inherited);
    let metrics = Metrics::new();
    metrics.set_error_log(log.clone());
    let access_logs = AccessLogs::open(&settings, &metrics).context("cannot open an access log")?;
    let budgets = Budgets::new(settings.http.memory.bytes(), settings.http.spool.bytes());
    let configs = pools::configs(&settings, budgets).map_err(|error| anyhow!(error))?;
    certificates::prepare(&settings.acme, account.as_ref())?;
    let launcher = identity::give_up_root(&settings, account.as_ref(), &configs, &program, take_over.is_some())?;
    identity::tell(&settings, &configs);
    let main = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let taking_over = TakingOver { from: take_over, unused };
    let start = Start {
        listeners,
        tls,
        admin,
        metrics,
        access_logs,
        budgets,
        configs,
        launcher,
        program,
        sockets,
        taking_over,
    };
    main.block_on(serve(settings, log, start))
}

/// What was opened and settled before the server gave up root's rights.
struct Start {
    listeners: Vec<Listener>,
    tls: Option<Tls>,
    admin: admin::Socket,
    metrics: Arc<Metrics>,
    access_logs: AccessLogs,
    budgets: Budgets,
    configs: Vec<PoolConfig>,
    launcher: Option<LauncherProcess>,
    program: ServerProgram,
    sockets: Sockets,
    taking_over: TakingOver,
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

/// What is running.
struct Server {
    settings: Arc<Settings>,
    log: LogHandle,
    access_logs: AccessLogs,
    pools: Arc<Pools>,
}

#[expect(clippy::disallowed_methods, reason = "a second stop ends at once")]
async fn serve(settings: Arc<Settings>, log: LogHandle, start: Start) -> Result<()> {
    let Start { listeners, tls, admin, metrics, access_logs, budgets, configs, launcher, .. } = start;
    let (program, sockets, mut taking_over) = (start.program, Arc::new(start.sockets), start.taking_over);
    let shared = Arc::new(Shared::new(&settings.http, budgets, metrics.clone()));
    let proxies = ways::proxies(&settings, &metrics).map_err(|error| anyhow!(error))?;
    let sites = Sites::new(settings.clone(), metrics.clone(), &access_logs, budgets).map_err(|error| anyhow!(error))?;
    let sites = Arc::new(sites);
    let telemetry = traces::start(&settings.telemetry, &metrics, &sites);
    let (launcher, mut launcher_end) = match launcher.map(LauncherProcess::attach).transpose()? {
        Some((launcher, end)) => (launcher, Some(end)),
        None => (Launcher::default(), None),
    };
    let mut signals = Signals::new()?;
    let store = tls.as_ref().map_or_else(howdah_tls::Store::new, |tls| tls.store().clone());
    let shown = store.clone();
    sites.ask_about_certificates(Covers(Box::new(move |name, host| shown.covers(name, host))));
    let certificates = certificates::start(&settings.acme, store)?;
    shared.on_missing_certificates(certificates.demand());
    if let Some(challenges) = certificates.challenges() {
        sites.server.respond_to_challenges(challenges);
    }
    // From here on nothing may fail before the front has the runtimes: they must not be dropped inside a runtime.
    let runtimes = runtimes(settings.threads)?;
    let io_threads = IoThreads::new(runtimes.iter().map(|r| r.handle().clone()).collect());
    let watched = watch::look_first(&settings).await;
    howdah_pool::adopt_orphans();
    let pools = Arc::new(Pools::start(configs, &io_threads, &metrics, &launcher, sites.clone(), &settings));
    let addresses = listeners.iter().map(|l| l.local_addr().to_string()).collect::<Vec<_>>().join(", ");
    let service = |_| Service::new(sites.clone(), Arc::new(Ways::new(pools.clone(), &proxies)));
    let mut front = Front::start(&shared, service, howdah_pool::io_threads::enter, Vec::new(), runtimes)?;
    if let Err(why) = taking_over.ready(&pools).await {
        // The other server goes on.
        front.drain(Duration::ZERO).await;
        pools.stop(Duration::ZERO).await;
        front.end();
        if let Some(launcher) = launcher_end {
            launcher.end().await;
        }
        return Err(why);
    }
    let files = sockets.own_files();
    launcher.keep_sockets(files, false);
    let take_over = taking_over.from;
    let (orders, mut ordered) = mpsc::channel(4);
    let report = certificates.report();
    let mut admin = Some(admin::start(admin, &settings, pools.clone(), metrics, report, orders, take_over.clone())?);
    front.open(listeners);
    let what = match &sites.all() {
        [only] => only.root.display().to_string(),
        all => format!("{} sites", all.len()),
    };
    tracing::info!("howdah {} serves {what} on {addresses}", env!("CARGO_PKG_VERSION"));
    take_over.iter().for_each(TakeOver::serving);

    let checks = howdah_proxy::health::start(&proxies);
    let watchers = watch::start(watched, &pools);
    if let Some(tls) = tls {
        tokio::spawn(tls.watch());
    }
    let server = Server { settings, log, access_logs, pools };
    let mut lost_launcher = false;
    let (mut upgrade, mut replaced) = (UnderWay::default(), None);
    let hand_over = || HandOver {
        program: program.clone(),
        launcher: launcher.clone(),
        sockets: sockets.clone(),
        patience: server.settings.upgrade_timeout,
    };
    let waiter = loop {
        tokio::select! {
            order = ordered.recv() => match order {
                Some(Order::Stop(waiter)) => break Some(waiter),
                Some(Order::Upgrade { binary, reply }) => upgrade.begin(binary, reply, take_over.clone(), hand_over),
                None => break None,
            },
            event = signals.next() => match event {
                Event::Stop => break None,
                Event::Reload => server.reload(),
                Event::ReopenLogs => server.reopen_logs(),
            },
            by = upgrade.done() => {
                replaced = Some(by);
                break None;
            }
            () = has_gone(launcher_end.as_mut()) => {
                // Nobody can start, kill or reap PHP's processes now; whoever keeps the server running starts it anew.
                tracing::error!("the launcher has ended: the server stops");
                lost_launcher = true;
                break None;
            }
        }
    };
    // A successor that is not ready ends with this; the copies of the sockets would keep ports open.
    drop((watchers, checks, upgrade, sockets));
    server.pools.drain();
    if let Some(by) = &replaced {
        launcher.keep_sockets(by.files.clone(), true);
        if let Some(admin) = admin.take() {
            admin.end().await;
        }
        server.leave(&mut front, &mut signals, by).await;
    }
    tracing::info!("stopping: no new connections, running requests have {:?}", server.settings.grace);
    let clean = tokio::select! {
        clean = server.stop(&mut front) => clean,
        () = signals.second_stop() => {
            tracing::warn!("told to stop again: ending at once");
            server.remove_socket_files(replaced.as_ref());
            server.log.flush();
            std::process::exit(130);
        }
    };
    front.end();
    server.access_logs.flush();
    if let Some(telemetry) = telemetry {
        telemetry.end(traces::LAST_SPANS).await;
    }
    // Before the admin endpoint ends: `howdah stop` takes that for the end, and another server may start at once.
    server.remove_socket_files(replaced.as_ref());
    if let Some(launcher) = launcher_end {
        // It removes those whose directories are not the server's.
        launcher.end().await;
    }
    if let Some(admin) = admin {
        admin.end().await;
    }
    if let Some(waiter) = waiter {
        let _ = waiter.send(());
    }
    tracing::info!("stopped");
    if lost_launcher {
        return Err(anyhow!("the launcher has ended"));
    }
    if clean { Ok(()) } else { Err(anyhow!("the grace time ran out; requests were cut")) }
}

async fn has_gone(launcher: Option<&mut LauncherEnd>) {
    match launcher {
        Some(launcher) => launcher.gone().await,
        None => std::future::pending().await,
    }
}

/// The sockets for HTTP/3 beside these.
fn over_udp(tls: &Tls, beside: &[Listener], inherited: &mut InheritedSockets) -> Vec<Result<Listener, BindError>> {
    beside.iter().filter_map(|listener| tls.beside(listener, inherited)).collect()
}

impl Server {
    /// Lets connections go with their next response, as another process serves; returns when they have gone, when they have
    /// had their time, or when a stop is asked for.
    async fn leave(&self, front: &mut Front, signals: &mut Signals, by: &Replaced) {
        let longest = self.settings.drain_timeout;
        tracing::info!(
            "process {} has taken over: {} connections have {longest:?} to come to their end",
            by.pid,
            front.open_connections()
        );
        let stopped = async {
            loop {
                match signals.next().await {
                    Event::Stop => return,
                    Event::ReopenLogs => self.reopen_logs(),
                    Event::Reload => {}
                }
            }
        };
        tokio::select! {
            _ = front.leave(longest) => {}
            () = stopped => {}
        }
    }

    /// True if nothing was cut.
    async fn stop(&self, front: &mut Front) -> bool {
        let began = Instant::now();
        let grace = self.settings.grace;
        let drained = front.drain(grace).await;
        if let Drained::Cut(connections) = drained {
            tracing::error!("the grace time of {grace:?} ran out: {connections} connections were cut");
        }
        self.pools.stop(grace.saturating_sub(began.elapsed())).await;
        drained == Drained::All
    }

    fn reload(&self) {
        let pools = self.pools.clone();
        tokio::spawn(async move {
            if let Err(why) = pools.reload().await {
                tracing::error!("reload failed: {why}");
            }
        });
    }

    fn reopen_logs(&self) {
        match self.log.reopen().and(self.access_logs.reopen()) {
            Ok(()) => tracing::info!("logs reopened"),
            Err(error) => tracing::error!("cannot reopen a log: {error}"),
        }
    }

    /// Files of Unix sockets would stay behind when the process ends without running destructors. Those that a process has
    /// taken over do.
    fn remove_socket_files(&self, replaced: Option<&Replaced>) {
        let sockets = self.settings.listen.iter().chain([&self.settings.admin]);
        let paths = sockets.filter_map(|addr| match addr {
            ListenAddr::Unix(path) => Some(path.clone()),
            ListenAddr::Tcp(_) | ListenAddr::Https(_) => None,
        });
        let is_others = |path: &PathBuf| replaced.is_some_and(|by| by.files.contains(path));
        for path in paths.filter(|path| !is_others(path)).collect::<Vec<PathBuf>>() {
            let _ = std::fs::remove_file(path);
        }
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
