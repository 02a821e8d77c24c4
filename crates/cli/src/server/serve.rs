//! `howdah serve`: puts the parts together, waits for signals, takes them apart again.
//!
//! Order of the end, which loses no accepted request: stop accepting → connections finish → pools finish and end their
//! processes → I/O threads end → logs are written out → the admin endpoint closes. A second signal ends everything at once.

use crate::control::client;
use crate::server::admin;
use crate::server::certificates;
use crate::server::edition::{Edition, Front as Fronts, OnThread};
use crate::server::found;
use crate::server::identity;
use crate::server::listening::{self, Listening};
use crate::server::orders::Order;
use crate::server::own_program;
use crate::server::pid_file::PidFile;
use crate::server::pools::{self, Pools, Surroundings};
use crate::server::programs::Settled;
use crate::server::reload::{Beside, Fixed, Reread, Running, Server, Tasks};
use crate::server::service::Service;
use crate::server::shared;
use crate::server::signals::{Event, Signals};
use crate::server::socket_files::Files;
use crate::server::tls::{self, Tls};
use crate::server::traces;
use crate::server::upgrade::{HandOver, Replaced, Sockets, TakeOver, TakingOver, UnderWay};
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
use howdah_store::Broker;
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

/// Interval of notifications while the pools boot.
const STARTING_EACH: Duration = Duration::from_secs(10);

/// Serves until stopped.
///
/// Work that needs root's rights comes first: log files, addresses, the launcher. Then the server switches to its user,
/// and only then does it start threads, read clients' data, or have PHP started.
pub(crate) fn run(loaded: &Loaded, reread: Reread, sockets: Handed) -> Result<()> {
    let program = own_program::of_this_process().context("cannot find out which program this is")?;
    let Handed { take_over, passed } = sockets;
    let inherited = listening::inherited(take_over.as_ref(), passed)?;
    let settings = Arc::new(loaded.settings.clone());
    let account = identity::account(&settings).map_err(|error| anyhow!(error))?;
    identity::announce_logs(account.as_ref());
    let log = howdah_observe::log::init(&settings.log).context("cannot open the error log")?;
    // However this ends, the last lines say why.
    let _flush = FlushAtEnd(log.clone());
    found::tell(loaded);
    loaded.warnings().iter().for_each(|warning| tracing::warn!("{warning}"));
    // Keys may be root's alone.
    let store = Store::new();
    let tls = tls::prepare(loaded, store.clone(), None).map_err(|errors| anyhow!(errors.join("\n")))?;
    let warnings = tls.as_ref().map(|tls| tls.warnings(account.as_ref())).unwrap_or_default();
    warnings.iter().for_each(|warning| tracing::warn!(target: "howdah::tls", "{warning}"));
    raise_descriptor_limit();
    // Listening comes before PHP: a port in use is found before any process is started.
    let opened = listening::open(&settings, account.as_ref(), tls.as_ref(), inherited);
    let mut listening = opened.map_err(|error| match client::process_of(&settings) {
        Some(pid) => error.context(format!(
            "a server with these settings runs already, process {pid}: `howdah reload` has it read them again, `howdah stop` \
             ends it"
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
        identity::LastAct { configs: &configs, own_files, program: &program, takes_over: take_over.is_some() };
    let launcher = identity::give_up_root(&settings, account.as_ref(), last_act)?;
    identity::tell(&settings, &configs);
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

/// Where a server's sockets come from, if it does not bind them itself.
#[derive(Default)]
pub(crate) struct Handed {
    pub(crate) take_over: Option<TakeOver>,
    /// From the process that started it, with their names.
    pub(crate) passed: Vec<(OwnedFd, String)>,
}

/// Resources opened and settled before the server gave up root's rights.
struct Start {
    reread: Reread,
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
    let Started { server, mut front, mut control, admin, files, telemetry } =
        begin(&settings, log.clone(), start).await?;
    let why = supervise(&server, &mut control).await;
    let Control { mut signals, ordered: _ordered, launcher, launcher_end, upgrades } = control;
    // Copies of sockets would keep ports open.
    drop(upgrades);
    server.drain();
    // After an upgrade clients that come back find the new process; before a stop there is nothing to wait for.
    let settings = server.edition().settings.clone();
    server.end_subscriptions(match why {
        End::Replaced(_) => settings.grace.max(settings.drain).mul_f64(SUBSCRIBERS_LEAVE),
        End::Asked(_) | End::LostLauncher => SUBSCRIBERS_LEAVE_AT_STOP.min(settings.grace),
    });
    let mut admin = Some(admin);
    let others = match &why {
        End::Replaced(by) => {
            launcher.keep_sockets(by.files.clone(), true);
            if let Some(admin) = admin.take() {
                admin.end().await;
            }
            tokio::join!(leave(&server, &mut front, &mut signals, by), server.fixed.service.heard());
            by.files.as_slice()
        }
        End::Asked(_) | End::LostLauncher => &[],
    };
    server.fixed.service.stopping();
    tracing::info!("stopping: no new connections; running requests have {:?}", server.edition().settings.grace);
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
    server.edition().access_logs.flush();
    server.fixed.around.slow_logs.flush();
    if let Some(telemetry) = telemetry {
        telemetry.end(traces::LAST_SPANS).await;
    }
    // Before the admin endpoint ends: `howdah stop` takes that for the end, and another server may start at once.
    remove_socket_files(&server, &files, others);
    if let Some(launcher) = launcher_end {
        // It removes those whose directories are not the server's.
        launcher.end().await;
    }
    if let Some(admin) = admin {
        admin.end().await;
    }
    let lost_launcher = matches!(why, End::LostLauncher);
    if let End::Asked(Some(waiter)) = why {
        let _ = waiter.send(());
    }
    tracing::info!("stopped");
    if lost_launcher {
        return Err(anyhow!("the launcher has ended"));
    }
    if clean { Ok(()) } else { Err(anyhow!("the grace time ran out; requests were cut")) }
}

/// Share of the time after an upgrade in which subscribers of Mercure hubs are asked to come back.
const SUBSCRIBERS_LEAVE: f64 = 0.8;
/// Time for that at a stop.
const SUBSCRIBERS_LEAVE_AT_STOP: Duration = Duration::from_millis(500);

/// Why a server ends.
enum End {
    /// By an order, which may be waited for, or a signal.
    Asked(Option<oneshot::Sender<()>>),
    Replaced(Replaced),
    LostLauncher,
}

/// Maximum time for a new process to become ready: its pools boot at the same time, on a busy machine.
fn boot_patience(settings: &Settings) -> Duration {
    settings.pools.iter().map(|pool| pool.boot_timeout).max().unwrap_or_default() * 2
}

/// Serves until something ends that.
async fn supervise(server: &Arc<Server>, control: &mut Control) -> End {
    let Control { signals, ordered, launcher, launcher_end, upgrades } = control;
    let service = &server.fixed.service;
    let mut upgrade = UnderWay::default();
    let hand_over = || HandOver {
        server: server.clone(),
        program: upgrades.program.clone(),
        launcher: launcher.clone(),
        sockets: upgrades.sockets.clone(),
        patience: boot_patience(&server.edition().settings),
    };
    let mut beats =
        std::pin::pin!(async { tokio::join!(service.beat(), tell_when_ready(server, upgrades.predecessor.is_some())) });
    loop {
        tokio::select! {
            order = ordered.recv() => match order {
                Some(Order::Stop(waiter)) => return End::Asked(Some(waiter)),
                Some(Order::Upgrade(waiter)) => upgrade.begin(waiter, upgrades.predecessor.clone(), hand_over),
                None => return End::Asked(None),
            },
            event = signals.next() => match event {
                Event::Stop => return End::Asked(None),
                Event::Reload => {
                    let server = server.clone();
                    // The log says what comes of it.
                    tokio::spawn(async move { server.reload(ReloadFlags::default()).await });
                }
                Event::ReopenLogs => reopen_logs(server),
            },
            by = upgrade.done() => {
                service.replaced_by(by.pid);
                return End::Replaced(by);
            }
            _ = &mut beats => {}
            () = has_gone(launcher_end.as_mut()) => {
                // PHP's processes can no longer be started, killed or reaped; the service manager restarts the server.
                tracing::error!("launcher exited unexpectedly: stopping the server");
                return End::LostLauncher;
            }
        }
    }
}

/// Notifies the service manager that the server serves, once each pool does or is known not to. If this process
/// replaced another, that one has introduced it: before, notifications of this one are ignored.
async fn tell_when_ready(server: &Server, successor: bool) {
    let settles = |pool: &Pool| {
        let status = pool.status();
        pool.can_serve() || status.down.or(status.last_error).is_some()
    };
    if !successor {
        let mut said = Instant::now();
        while !server.edition().pools.iter().all(|pool| settles(pool)) {
            tokio::time::sleep(READY_INTERVAL).await;
            if said.elapsed() > STARTING_EACH {
                server.fixed.service.starting();
                said = Instant::now();
            }
        }
        server.tell_ready();
    }
}

/// Sources of orders to a server, and the means to carry them out.
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
    /// These are copies, which keep ports open: they go when the server accepts nothing more.
    sockets: Arc<Sockets>,
    /// The server whose place this one has taken.
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

/// Starts everything; what is returned serves.
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
    let programs = launcher.is_some().then(|| Settled::new(&configs));
    let (launcher, launcher_end) = match launcher.map(LauncherProcess::attach).transpose()? {
        Some((launcher, end)) => (launcher, Some(end)),
        None => (Launcher::default(), None),
    };
    let signals = Signals::new()?;
    let broker = shared::broker(settings)?;
    if let Some(broker) = &broker {
        fronts.sites.server.share(broker.clone());
        fronts.sites.server.hubs().all_ready().await;
    }
    let certificates = certificates::start(&settings.acme, store.clone(), broker.filter(Broker::has_values))?;
    shared.on_missing_certificates(certificates.demand());
    let report = certificates.report();
    // From here on nothing may fail before the front has the runtimes: they must not be dropped inside a runtime.
    let runtimes = runtimes(settings.threads)?;
    let io_threads = IoThreads::new(runtimes.iter().map(|r| r.handle().clone()).collect());
    let watched = watch::look_first(settings).await;
    howdah_pool::adopt_orphans();
    let around = Surroundings { io_threads, metrics: metrics.clone(), launcher: launcher.clone(), slow_logs };
    let pools = Arc::new(Pools::start(configs, &around, settings));
    let (edition, unused) = Edition::new(settings.clone(), fronts, pools, settings.threads);
    let current = Arc::new(ArcSwap::new(edition.clone()));
    let service = Service::of_this_process();
    let fixed = Fixed { reread, log, budgets, around, programs, access, store, certificates, service };
    let server = Server::new(fixed, current.clone());
    server.introduce(&edition);
    let handler = |number| OnThread::new(&current, number);
    let front = Front::start(&shared, handler, howdah_pool::io_threads::enter, Vec::new(), runtimes)?;
    if let Err(why) = taking_over.ready(&edition.pools).await {
        give_up(&server, front, launcher_end).await;
        return Err(why);
    }
    launcher.keep_sockets(files.own(settings.listen.iter().chain([&settings.admin])), false);
    let handle = admin.handle().context("cannot keep the admin socket for an upgrade")?;
    let sockets = Sockets::of(&front, handle, &settings.admin, &files);
    let (orders, ordered) = mpsc::channel(4);
    let predecessor = taking_over.from;
    let admin = admin::start(admin, settings, server.clone(), metrics, report, orders, predecessor.clone())?;
    // HTTP/3 listens at the address of HTTPS.
    let mut addresses: Vec<String> = listeners.iter().map(|listener| listener.local_addr().to_string()).collect();
    let mut seen = HashSet::new();
    addresses.retain(|address| seen.insert(address.clone()));
    let addresses = addresses.join(", ");
    let tasks = Tasks::start(&edition, watched, tls.as_mut(), &server.fixed.around.metrics);
    for listener in listeners {
        if files.owns(&listener.local_addr()) {
            listener.own_file();
        }
        front.doors().open(listener);
    }
    let what = match &edition.sites.all() {
        [only] => only.root.display().to_string(),
        all => format!("{} sites", all.len()),
    };
    tracing::info!("howdah {} serves {what} on {addresses}", env!("CARGO_PKG_VERSION"));
    predecessor.iter().for_each(TakeOver::serving);
    let running = Running { doors: front.doors().clone(), shared: front.shared().clone() };
    server.runs(running, Beside { unused, tls, _tasks: tasks }).await;
    let upgrades = Upgrades { program, sockets: Arc::new(sockets), predecessor };
    let control = Control { signals, ordered, launcher, launcher_end, upgrades };
    Ok(Started { server, front, control, admin, files, telemetry })
}

/// Ends a started server because the old one goes on.
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

/// Lets connections go with their next response, as another process serves; returns when they have gone, when they have had
/// their time, or when a stop is asked for.
async fn leave(server: &Server, front: &mut Front, signals: &mut Signals, by: &Replaced) {
    let edition = server.edition();
    let longest = edition.settings.grace.max(edition.settings.drain);
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

/// True if nothing was cut.
async fn stop(server: &Server, front: &mut Front) -> bool {
    let began = Instant::now();
    let grace = server.edition().settings.grace;
    let drained = front.drain(grace).await;
    if let Drained::Cut(connections) = drained {
        tracing::error!("grace period of {grace:?} is over: {connections} connections were cut");
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

/// Files of Unix sockets would stay behind when the process ends without running destructors. Those of others do, as of a
/// process that has taken them over.
fn remove_socket_files(server: &Server, files: &Files, others: &[PathBuf]) {
    let settings = &server.edition().settings;
    let own = files.own(settings.listen.iter().chain([&settings.admin]));
    for path in own.iter().filter(|path| !others.contains(path)) {
        let _ = std::fs::remove_file(path);
    }
}
