//! `howdah serve`: starts all parts of the server, handles signals and orders, and shuts the parts down.
//!
//! Shutdown order, which loses no accepted request that ends within `grace`: stop accepting → connections finish →
//! pools finish and end their processes → I/O threads end → logs are flushed → the admin endpoint closes (after an
//! upgrade: first). A second stop signal ends the process immediately.

use crate::control::client;
use crate::server::admin;
use crate::server::certificates;
use crate::server::detected;
use crate::server::identity;
use crate::server::listening::{self, Listening};
use crate::server::orders::Order;
use crate::server::own_program;
use crate::server::pid_file::PidFile;
use crate::server::pools::{self, PoolContext, Pools};
use crate::server::programs::AllowedPrograms;
use crate::server::reload::{FixedState, RevisionTasks, RunningFront, Server, SettingsLoader, Tasks};
use crate::server::revision::{Front as Fronts, Revision, ThreadHandler};
use crate::server::service::Service;
use crate::server::shared;
use crate::server::signals::{self, Event, Signals};
use crate::server::socket_files::Files;
use crate::server::tls::{self, Tls};
use crate::server::traces;
use crate::server::upgrade::{HandOver, ReadySuccessor, Sockets, TakeOver, TakingOver, UpgradeInProgress};
use crate::server::watch;
use anyhow::{Context, Result, anyhow};
use arc_swap::ArcSwap;
use howdah_budget::Budgets;
use howdah_config::{Loaded, ReloadFlags, Settings};
use howdah_observe::log::LogHandle;
use howdah_observe::{AccessLogs, Metrics, SlowLogs};
use howdah_pool::process::launcher::{Launcher, LauncherEnd, LauncherProcess};
use howdah_pool::process::root_program::RootProgram;
use howdah_pool::{IoThreads, Pool, PoolConfig};
use howdah_protocol::Shared;
use howdah_protocol::front::{Drained, Front, runtimes};
use howdah_telemetry::Sender;
use howdah_tls::Store;
use std::collections::HashSet;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, oneshot};

/// Interval at which the pools of a starting server are checked.
const READY_INTERVAL: Duration = Duration::from_millis(50);

/// Interval of notifications to the service manager while the pools boot.
const STARTING_EACH: Duration = Duration::from_secs(10);

/// Serves until stopped.
///
/// Work that needs root's rights comes first: log files, addresses, the launcher. Then the server switches to its user.
/// Only after that does it read clients' data or have PHP started, or start threads other than those that write logs.
pub(crate) fn run(loaded: &Loaded, reread: SettingsLoader, sockets: InheritedListeners) -> Result<()> {
    howdah_transport::listen_fds::keep_from_children().context("cannot keep inherited descriptors from PHP")?;
    let program = own_program::of_this_process().context("cannot determine the path of this program")?;
    let InheritedListeners { take_over, passed } = sockets;
    let inherited = listening::inherited(take_over.as_ref(), passed)?;
    let settings = Arc::new(loaded.settings.clone());
    let account = identity::account(&settings).map_err(|error| anyhow!(error))?;
    identity::announce_logs(account.as_ref());
    let log = howdah_observe::log::init(&settings.log).context("cannot open the error log")?;
    // However the server ends, its last log lines must be written.
    let _flush = FlushAtEnd(log.clone());
    detected::log(loaded);
    loaded.warnings().iter().for_each(|warning| tracing::warn!("{warning}"));
    // Private keys may be readable by root only.
    let store = Store::new();
    let tls = tls::prepare(loaded, store.clone(), None).map_err(|errors| anyhow!(errors.join("\n")))?;
    let warnings = tls.as_ref().map(|tls| tls.warnings(account.as_ref())).unwrap_or_default();
    warnings.iter().for_each(|warning| tracing::warn!(target: "howdah::tls", "{warning}"));
    raise_descriptor_limit();
    // Bind before starting PHP: a port in use is reported before any process starts.
    let opened = listening::open(&settings, account.as_ref(), tls.as_ref(), inherited);
    let mut listening = opened.map_err(|error| match client::process_of(&settings) {
        Some(pid) => error.context(format!(
            "a server with these settings is already running as process {pid}: `howdah reload` makes it read them \
             again, `howdah stop` stops it"
        )),
        None => error,
    })?;
    let unused = std::mem::take(&mut listening.unused);
    let metrics = Metrics::new();
    metrics.set_error_log(log.clone());
    let access_logs = AccessLogs::open(&settings, &metrics).context("cannot open an access log")?;
    let slow_logs = SlowLogs::open(&settings, &metrics).context("cannot open a slow log")?;
    let budgets = Budgets::new(settings.http.memory.bytes(), settings.http.spool.bytes());
    let configs = pools::configs(&settings, budgets).map_err(|error| anyhow!(error))?;
    certificates::prepare(&settings.acme, account.as_ref())?;
    let mut own_files = listening.files.own(settings.listen.iter().chain([&settings.admin]));
    let pid_file = settings.fpm.as_ref().and_then(|fpm| fpm.pid_file.clone());
    let pid_file = pid_file.map(PidFile::write).transpose()?;
    own_files.extend(pid_file.as_ref().map(|file| file.path.clone()));
    let last_act =
        identity::PrivilegeDrop { configs: &configs, own_files, program: &program, takes_over: take_over.is_some() };
    let launcher = identity::give_up_root(&settings, account.as_ref(), last_act)?;
    identity::log_risks(&settings, &configs);
    let main = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let start = Start {
        reread,
        listening,
        store,
        tls,
        metrics,
        access_logs,
        slow_logs,
        budgets,
        configs,
        launcher,
        program,
        taking_over: TakingOver { from: take_over, unused },
    };
    main.block_on(serve(settings, log, start))
}

/// Listening sockets that the server does not bind itself.
#[derive(Default)]
pub(crate) struct InheritedListeners {
    pub(crate) take_over: Option<TakeOver>,
    /// Sockets from the parent process, with their names.
    pub(crate) passed: Vec<(OwnedFd, String)>,
}

/// Resources opened, and decisions made, before the server gave up root's rights.
struct Start {
    reread: SettingsLoader,
    listening: Listening,
    store: Arc<Store>,
    tls: Option<Tls>,
    metrics: Arc<Metrics>,
    access_logs: AccessLogs,
    slow_logs: SlowLogs,
    budgets: Budgets,
    configs: Vec<PoolConfig>,
    launcher: Option<LauncherProcess>,
    program: RootProgram,
    taking_over: TakingOver,
}

/// Raises the soft limit of descriptors to the hard limit (getrlimit(2)): the usual 1024 is too low, as every
/// connection, open file and spooled body takes a descriptor. On failure the limit stays unchanged.
fn raise_descriptor_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
}

/// Flushes the error log when dropped.
struct FlushAtEnd(LogHandle);

impl Drop for FlushAtEnd {
    fn drop(&mut self) {
        self.0.flush();
    }
}

#[expect(clippy::disallowed_methods, reason = "a second stop ends at once")]
async fn serve(settings: Arc<Settings>, log: LogHandle, start: Start) -> Result<()> {
    let Started { server, mut front, mut control, admin, files, telemetry } =
        begin(&settings, log.clone(), start).await?;
    let why = supervise(&server, &mut control).await;
    let Control { mut signals, ordered: _ordered, launcher, launcher_end, upgrades } = control;
    // Copies of the sockets would keep ports open.
    drop(upgrades);
    server.drain();
    // After an upgrade, reconnecting clients reach the new process. Before a stop there is nothing to wait for.
    let settings = server.revision().settings.clone();
    server.end_subscriptions(match why {
        EndReason::Replaced(_) => settings.grace.max(settings.drain).mul_f64(SUBSCRIBERS_LEAVE),
        EndReason::Requested(_) | EndReason::LostLauncher => SUBSCRIBERS_LEAVE_AT_STOP.min(settings.grace),
    });
    let mut admin = Some(admin);
    let others = match &why {
        EndReason::Replaced(by) => {
            launcher.keep_sockets(by.files.clone(), true);
            if let Some(admin) = admin.take() {
                admin.end().await;
            }
            tokio::join!(leave(&server, &mut front, &mut signals, by), server.fixed.service.heard());
            by.files.as_slice()
        }
        EndReason::Requested(_) | EndReason::LostLauncher => &[],
    };
    server.fixed.service.stopping();
    tracing::info!("stopping: no new connections; running requests have {:?}", server.revision().settings.grace);
    let clean = tokio::select! {
        clean = stop(&server, &mut front) => clean,
        () = signals.second_stop() => {
            tracing::warn!("second stop signal: exiting now");
            remove_socket_files(&server, &files, others);
            log.flush();
            std::process::exit(130);
        }
    };
    front.end();
    server.revision().access_logs.flush();
    server.fixed.context.slow_logs.flush();
    if let Some(telemetry) = telemetry {
        telemetry.end(traces::LAST_SPANS).await;
    }
    // Before the admin endpoint closes: `howdah stop` then returns, and another server may start immediately.
    remove_socket_files(&server, &files, others);
    if let Some(launcher) = launcher_end {
        // The launcher removes the files in directories that the server may not write to.
        launcher.end().await;
    }
    if let Some(admin) = admin {
        admin.end().await;
    }
    let lost_launcher = matches!(why, EndReason::LostLauncher);
    if let EndReason::Requested(Some(waiter)) = why {
        let _ = waiter.send(());
    }
    tracing::info!("stopped");
    if lost_launcher {
        return Err(anyhow!("the launcher has ended"));
    }
    if clean { Ok(()) } else { Err(anyhow!("the grace period is over; requests were cut off")) }
}

/// Fraction of the drain time after an upgrade during which Mercure subscribers are asked to reconnect.
const SUBSCRIBERS_LEAVE: f64 = 0.8;
/// Time over which Mercure subscribers are disconnected at a stop.
const SUBSCRIBERS_LEAVE_AT_STOP: Duration = Duration::from_millis(500);

/// Reasons for the server's end.
enum EndReason {
    /// An order, whose sender may wait for the end, or a signal.
    Requested(Option<oneshot::Sender<()>>),
    Replaced(ReadySuccessor),
    LostLauncher,
}

/// Maximum time for a new process to become ready: twice the longest boot timeout, because its pools boot at the same
/// time on a busy machine.
fn boot_patience(settings: &Settings) -> Duration {
    settings.pools.iter().map(|pool| pool.boot_timeout).max().unwrap_or_default() * 2
}

/// Serves until a signal, an order, an upgrade, or the loss of the launcher ends the server.
async fn supervise(server: &Arc<Server>, control: &mut Control) -> EndReason {
    let Control { signals, ordered, launcher, launcher_end, upgrades } = control;
    let service = &server.fixed.service;
    let mut upgrade = UpgradeInProgress::default();
    let hand_over = || HandOver {
        server: server.clone(),
        program: upgrades.program.clone(),
        launcher: launcher.clone(),
        sockets: upgrades.sockets.clone(),
        patience: boot_patience(&server.revision().settings),
    };
    let mut beats = std::pin::pin!(async {
        tokio::join!(service.ping_watchdog(), notify_when_ready(server, upgrades.predecessor.is_some()))
    });
    loop {
        tokio::select! {
            order = ordered.recv() => match order {
                Some(Order::Stop(waiter)) => return EndReason::Requested(Some(waiter)),
                Some(Order::Upgrade(waiter)) => upgrade.begin(waiter, upgrades.predecessor.clone(), hand_over),
                None => return EndReason::Requested(None),
            },
            event = signals.next() => match event {
                Event::Stop => return EndReason::Requested(None),
                Event::Reload => {
                    let server = server.clone();
                    // The reload logs its own result.
                    tokio::spawn(async move { server.reload(ReloadFlags::default()).await });
                }
                Event::ReopenLogs => reopen_logs(server),
            },
            by = upgrade.done() => {
                service.replaced_by(by.pid);
                return EndReason::Replaced(by);
            }
            _ = &mut beats => {}
            () = has_gone(launcher_end.as_mut()) => {
                // Without the launcher, PHP processes cannot be started, killed or reaped. The service manager restarts
                // the server.
                tracing::error!("launcher exited unexpectedly: stopping the server");
                return EndReason::LostLauncher;
            }
        }
    }
}

/// Notifies the service manager once every pool serves or has failed. If this process replaced another, its predecessor
/// must name it first; until then the service manager ignores its notifications.
async fn notify_when_ready(server: &Server, successor: bool) {
    let settles = |pool: &Pool| {
        let status = pool.status();
        pool.can_serve() || status.down.or(status.last_error).is_some()
    };
    if !successor {
        let mut said = Instant::now();
        while !server.revision().pools.iter().all(|pool| settles(pool)) {
            tokio::time::sleep(READY_INTERVAL).await;
            if said.elapsed() > STARTING_EACH {
                server.fixed.service.starting();
                said = Instant::now();
            }
        }
        server.notify_ready();
    }
}

/// Sources of orders to a server, and the resources to carry them out.
struct Control {
    signals: Signals,
    ordered: mpsc::Receiver<Order>,
    launcher: Launcher,
    launcher_end: Option<LauncherEnd>,
    upgrades: Upgrades,
}

/// State for upgrades.
struct Upgrades {
    program: RootProgram,
    /// Copies of the sockets, which keep ports open: dropped when the server stops accepting.
    sockets: Arc<Sockets>,
    /// The server that this one has replaced.
    predecessor: Option<TakeOver>,
}

/// The running server.
struct Started {
    server: Arc<Server>,
    front: Front,
    control: Control,
    admin: admin::Admin,
    files: Files,
    telemetry: Option<Sender>,
}

/// Starts all parts of the server; the returned server is serving.
async fn begin(settings: &Arc<Settings>, log: LogHandle, start: Start) -> Result<Started> {
    let Start {
        reread, listening, store, mut tls, metrics, access_logs, slow_logs, budgets, configs, launcher, ..
    } = start;
    let (program, mut taking_over) = (start.program, start.taking_over);
    let Listening { listeners, admin, access, files, .. } = listening;
    let shared = Shared::new(&settings.http, budgets, metrics.clone());
    let shared = Arc::new(shared.with_extended_connect(settings.may_upgrade()));
    let fronts = Fronts::new(settings, &metrics, access_logs, budgets, &[]).map_err(|error| anyhow!(error))?;
    let telemetry = traces::start(&settings.telemetry, &metrics, &fronts.sites);
    let programs = launcher.is_some().then(|| AllowedPrograms::new(&configs));
    let (launcher, launcher_end) = match launcher.map(LauncherProcess::attach).transpose()? {
        Some((launcher, end)) => (launcher, Some(end)),
        None => (Launcher::default(), None),
    };
    let signals = Signals::new()?;
    signals::stop_at_end_of_input()?;
    let broker = shared::broker(settings)?;
    if let Some(broker) = &broker {
        fronts.sites.server.share(broker.clone());
        // Before the first client: this server may have to report changes of another one.
        fronts.sites.watch_channels();
        fronts.sites.server.hubs().all_ready().await;
    }
    let certificates = certificates::start(&settings.acme, store.clone(), broker)?;
    shared.on_missing_certificates(certificates.demand());
    let report = certificates.report();
    // From here on nothing may fail until the front owns the runtimes: a runtime must not be dropped inside a runtime.
    let runtimes = runtimes(settings.threads)?;
    let io_threads = IoThreads::new(runtimes.iter().map(|r| r.handle().clone()).collect());
    let watched = watch::look_first(settings).await;
    howdah_pool::adopt_orphans();
    let context = PoolContext { io_threads, metrics: metrics.clone(), launcher: launcher.clone(), slow_logs };
    let pools = Arc::new(Pools::start(configs, &context, settings));
    let (revision, unused) = Revision::new(settings.clone(), fronts, pools, settings.threads);
    let current = Arc::new(ArcSwap::new(revision.clone()));
    let service = Service::of_this_process();
    let fixed = FixedState { reread, log, budgets, context, programs, access, store, certificates, service };
    let server = Server::new(fixed, current.clone());
    server.connect(&revision);
    let handler = |number| ThreadHandler::new(&current, number);
    let front = Front::start(&shared, handler, howdah_pool::io_threads::enter, Vec::new(), runtimes)?;
    if let Err(why) = taking_over.ready(&revision.pools).await {
        give_up(&server, front, launcher_end).await;
        return Err(why);
    }
    launcher.keep_sockets(files.own(settings.listen.iter().chain([&settings.admin])), false);
    let handle = admin.handle().context("cannot keep the admin socket for an upgrade")?;
    let sockets = Sockets::of(&front, handle, &settings.admin, &files);
    let (orders, ordered) = mpsc::channel(4);
    let predecessor = taking_over.from;
    let admin = admin::start(admin, settings, server.clone(), metrics, report, orders, predecessor.clone())?;
    // HTTP/3 uses the same address as HTTPS; list it once.
    let mut addresses: Vec<String> = listeners.iter().map(|listener| listener.local_addr().to_string()).collect();
    let mut seen = HashSet::new();
    addresses.retain(|address| seen.insert(address.clone()));
    let addresses = addresses.join(", ");
    let tasks = Tasks::start(&revision, watched, tls.as_mut(), &server.fixed.context.metrics);
    for listener in listeners {
        if files.owns(&listener.local_addr()) {
            listener.own_file();
        }
        front.listeners().open(listener);
    }
    let what = match &revision.sites.all() {
        [only] => only.root.display().to_string(),
        all => format!("{} sites", all.len()),
    };
    tracing::info!("howdah {} serves {what} on {addresses}", env!("CARGO_PKG_VERSION"));
    predecessor.iter().for_each(TakeOver::serving);
    let running = RunningFront { listeners: front.listeners().clone(), shared: front.shared().clone() };
    server.runs(running, RevisionTasks { unused, tls, _tasks: tasks }).await;
    let upgrades = Upgrades { program, sockets: Arc::new(sockets), predecessor };
    let control = Control { signals, ordered, launcher, launcher_end, upgrades };
    Ok(Started { server, front, control, admin, files, telemetry })
}

/// Shuts down a started server because its predecessor keeps serving.
async fn give_up(server: &Server, mut front: Front, launcher: Option<LauncherEnd>) {
    front.drain(Duration::ZERO).await;
    server.stop_pools(Duration::ZERO).await;
    front.end();
    if let Some(launcher) = launcher {
        launcher.end().await;
    }
}

async fn has_gone(launcher: Option<&mut LauncherEnd>) {
    match launcher {
        Some(launcher) => launcher.gone().await,
        None => std::future::pending().await,
    }
}

/// Closes each HTTP/1 and FastCGI connection after its next response and sends GOAWAY on the others, because another
/// process serves now. Returns when all are closed, when their time is over, or on a stop signal.
async fn leave(server: &Server, front: &mut Front, signals: &mut Signals, by: &ReadySuccessor) {
    let revision = server.revision();
    let longest = revision.settings.grace.max(revision.settings.drain);
    tracing::info!(
        "process {} has taken over; {} open connections have {longest:?} to finish",
        by.pid,
        front.open_connections()
    );
    let stopped = async {
        loop {
            match signals.next().await {
                Event::Stop => return,
                Event::ReopenLogs => reopen_logs(server),
                Event::Reload => {}
            }
        }
    };
    tokio::select! {
        _ = front.leave(longest) => {}
        () = stopped => {}
    }
}

/// Stops serving; returns `true` if no request was cut off.
async fn stop(server: &Server, front: &mut Front) -> bool {
    let began = Instant::now();
    let grace = server.revision().settings.grace;
    let drained = front.drain(grace).await;
    if let Drained::Cut(connections) = drained {
        tracing::error!("grace period of {grace:?} is over: {connections} connections were cut");
    }
    server.revision().sites.server.hubs().leave().await;
    server.stop_pools(grace.saturating_sub(began.elapsed())).await;
    drained == Drained::All
}

fn reopen_logs(server: &Server) {
    match server
        .fixed
        .log
        .reopen()
        .and(server.revision().access_logs.reopen())
        .and(server.fixed.context.slow_logs.reopen())
    {
        Ok(()) => tracing::info!("logs reopened"),
        Err(error) => tracing::error!("cannot reopen a log: {error}"),
    }
}

/// Removes the server's Unix socket files, because the process ends without running destructors. Files of other
/// programs stay, as do `others`: those that another process has taken over.
fn remove_socket_files(server: &Server, files: &Files, others: &[PathBuf]) {
    let settings = &server.revision().settings;
    let own = files.own(settings.listen.iter().chain([&settings.admin]));
    for path in own.iter().filter(|path| !others.contains(path)) {
        let _ = std::fs::remove_file(path);
    }
}
