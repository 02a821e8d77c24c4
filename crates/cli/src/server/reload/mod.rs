//! A reload: reads the settings again and builds everything made from them while the old revision serves. The server
//! switches to the new revision (`revision`) only when it is complete, including its workers. Any earlier failure
//! leaves the old revision unchanged.
//!
//! Order: read and check (`reading`), open logs, sites and addresses (`opening`), boot the new workers, test them
//! (`deploy_checks`), switch, and retire the old revision when its last request has ended.

mod deploy_checks;
mod opening;
mod reading;

use crate::server::memory;
use crate::server::pools::{self, PoolContext, Pools};
use crate::server::programs::AllowedPrograms;
use crate::server::revision::{EventRequests, IdleSignal, Revision};
use crate::server::service::Service;
use crate::server::tls::Tls;
use crate::server::watch;
use arc_swap::ArcSwap;
use howdah_budget::Budgets;
use howdah_config::{Change, Loaded, ReloadFlags, Settings};
use howdah_observe::Metrics;
use howdah_observe::log::LogHandle;
use howdah_protocol::Shared;
use howdah_protocol::listener::Listener;
use howdah_protocol::listeners::Listeners;
use howdah_protocol::unix_socket::UnixAccess;
use howdah_proxy::health::{self, Checks};
use howdah_site::sites::CertificateCoverage;
use howdah_tls::Store;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;
use tokio::sync::OnceCell;
use tokio::task::JoinSet;

use crate::server::certificates::Certificates;
use opening::OpenedResources;
use reading::{LoadedSettings, SettingsInput};

/// Time limit for workers of an old revision to finish: in effect unlimited, as the limits of the requests apply.
const NO_LIMIT: Duration = Duration::from_secs(366 * 86_400);

/// Reads the settings as the server did at its start: with the same flags, environment and user.
pub(crate) type SettingsLoader = Arc<dyn Fn() -> Result<Loaded, String> + Send + Sync>;

/// Changes of a reload, real or planned.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) changes: Vec<Change>,
    pub(crate) warnings: Vec<String>,
    /// Results of the tests of the new workers.
    pub(crate) found: Vec<String>,
}

impl Outcome {
    /// One line for each warning and each change.
    pub(crate) fn lines(&self) -> Vec<String> {
        let warnings = self.warnings.iter().map(|warning| format!("warning: {warning}"));
        self.changes.iter().map(ToString::to_string).chain(self.found.iter().cloned()).chain(warnings).collect()
    }
}

/// Parts of the server that settings cannot change.
pub(crate) struct FixedState {
    pub(crate) reread: SettingsLoader,
    pub(crate) log: LogHandle,
    pub(crate) budgets: Budgets,
    pub(crate) context: PoolContext,
    /// Programs that the launcher may start. `None` if the server starts PHP itself.
    pub(crate) programs: Option<AllowedPrograms>,
    /// Permissions of Unix sockets.
    pub(crate) access: UnixAccess,
    pub(crate) store: Arc<Store>,
    pub(crate) certificates: Certificates,
    /// The service manager.
    pub(crate) service: Service,
}

/// Parts of the front that a reload changes. Set once the front runs.
pub(crate) struct RunningFront {
    pub(crate) listeners: Arc<Listeners>,
    pub(crate) shared: Arc<ArcSwap<Shared>>,
}

/// Tasks that run with a revision and end with it.
pub(crate) struct RevisionTasks {
    pub(crate) unused: IdleSignal,
    pub(crate) tls: Option<Tls>,
    pub(crate) _tasks: Tasks,
}

/// The tasks end when this is dropped.
pub(crate) struct Tasks {
    _watchers: JoinSet<()>,
    _checks: Checks,
    _certificates: Option<JoinSet<()>>,
    _memory: JoinSet<()>,
}

impl Tasks {
    /// Starts a revision's tasks.
    pub(crate) fn start(
        revision: &Revision,
        watched: Vec<Option<watch::WatchedFiles>>,
        tls: Option<&mut Tls>,
        metrics: &Arc<Metrics>,
    ) -> Self {
        Self {
            _memory: memory::start(&revision.pools, metrics),
            _watchers: watch::start(watched, revision),
            _checks: health::start(&revision.proxies),
            _certificates: tls.map(Tls::install),
        }
    }
}

pub(crate) struct Server {
    pub(crate) fixed: FixedState,
    pub(crate) current: Arc<ArcSwap<Revision>>,
    running: OnceCell<RunningFront>,
    /// Locked for the duration of a reload.
    revision_tasks: tokio::sync::Mutex<Option<RevisionTasks>>,
    /// Pools outside the current revision: those that a reload is booting, and those of old revisions that finish their
    /// requests.
    others: Mutex<Vec<Arc<Pools>>>,
    stopping: AtomicBool,
}

impl Server {
    pub(crate) fn new(fixed: FixedState, current: Arc<ArcSwap<Revision>>) -> Arc<Self> {
        Arc::new(Self {
            fixed,
            current,
            running: OnceCell::new(),
            revision_tasks: tokio::sync::Mutex::default(),
            others: Mutex::default(),
            stopping: AtomicBool::new(false),
        })
    }

    /// Called once the server serves. Reloads fail until then.
    pub(crate) async fn runs(&self, running: RunningFront, revision_tasks: RevisionTasks) {
        let mut own = self.revision_tasks.lock().await;
        // Set only here, once.
        let _ = self.running.set(running);
        *own = Some(revision_tasks);
    }

    pub(crate) fn revision(&self) -> Arc<Revision> {
        self.current.load_full()
    }

    /// Connects a revision's sites to the certificate store, the ACME challenges, and the maker of event requests.
    pub(crate) fn connect(&self, revision: &Revision) {
        let store = self.fixed.store.clone();
        revision
            .sites
            .ask_about_certificates(CertificateCoverage(Box::new(move |name, host| store.covers(name, host))));
        revision.sites.server.make_events_by(EventRequests::new(&self.current));
        if let Some(challenges) = self.fixed.certificates.challenges() {
            revision.sites.server.respond_to_challenges(challenges);
        }
    }

    /// Reads the settings again and applies them; with `flags.dry_run` it only reports the changes.
    ///
    /// # Errors
    /// The reason why nothing has changed.
    pub(crate) async fn reload(self: &Arc<Self>, flags: ReloadFlags) -> Result<Outcome, String> {
        let done = self.try_to_reload(flags).await;
        if !flags.dry_run && self.running.initialized() && !self.stopping.load(Relaxed) {
            self.notify_ready();
        }
        match &done {
            _ if flags.dry_run => {}
            Ok(outcome) => {
                outcome.changes.iter().for_each(|change| tracing::info!("reload: {change}"));
                outcome.warnings.iter().for_each(|warning| tracing::warn!("{warning}"));
                outcome.found.iter().for_each(|found| tracing::info!("{found}"));
                tracing::info!("reloaded");
            }
            Err(why) => tracing::error!("reload failed, nothing has changed: {why}"),
        }
        done
    }

    async fn try_to_reload(self: &Arc<Self>, flags: ReloadFlags) -> Result<Outcome, String> {
        let mut own = self.revision_tasks.lock().await;
        let Some(revision_tasks) = own.as_mut() else { return Err("the server is starting".to_owned()) };
        if self.stopping.load(Relaxed) {
            return Err("this process is stopping or was replaced by another".to_owned());
        }
        if !flags.dry_run {
            self.fixed.service.reloading();
        }
        let old = self.revision();
        let reading = SettingsInput {
            reread: self.fixed.reread.clone(),
            old: old.settings.clone(),
            store: self.fixed.store.clone(),
            files: revision_tasks.tls.as_ref().map(|tls| tls.files().clone()),
            is_root: self.fixed.programs.is_none(),
            dry_run: flags.dry_run,
        };
        let read = tokio::task::spawn_blocking(move || reading.read()).await.map_err(|error| error.to_string())??;
        if flags.dry_run {
            return Ok(read.outcome);
        }
        let running = self.running.get().ok_or("the server is starting")?;
        let LoadedSettings { settings, mut tls, mut outcome } = read;
        if let Some(programs) = &self.fixed.programs {
            programs.settle(&settings, &self.fixed.context.launcher).await?;
        }
        if let (Some(tls), Some(before)) = (&mut tls, &revision_tasks.tls) {
            tls.inherit_from(before, &old.settings, &settings);
        }
        let watched = watch::look_first(&settings).await;
        let opened = opening::open(&self.fixed, &old, &settings, tls.as_ref())?;
        let pools = self.boot(&old, &settings).await?;
        let OpenedResources { front, listeners } = opened;
        let (revision, unused) = Revision::new(settings.clone(), front, pools, settings.threads);
        if let Err(why) = self.fixed.certificates.follow(&settings.acme) {
            self.give_up(&old, revision, unused);
            return Err(format!("{why:#}"));
        }
        self.connect(&revision);
        revision.sites.server.inherit_from(&old.sites.server);
        match self.prove(&revision).await {
            Ok(found) => outcome.found = found,
            Err(why) => {
                self.give_up(&old, revision, unused);
                return Err(why);
            }
        }
        self.switch(running, revision_tasks, NextRevision { revision, unused, listeners, tls, watched });
        Ok(outcome)
    }

    /// Starts the new workers; returns when every pool without a fallback serves.
    async fn boot(&self, old: &Revision, settings: &Arc<Settings>) -> Result<Arc<Pools>, String> {
        let configs = pools::configs(settings, self.fixed.budgets)?;
        let pools = Arc::new(Pools::prepare(configs, &self.fixed.context, settings, &old.pools));
        self.others.lock().push(pools.clone());
        let mut booted = pools.boot().await;
        if self.stopping.load(Relaxed) {
            booted = Err("the server is stopping".to_owned());
        }
        if let Err(why) = booted {
            pools.stop(Duration::ZERO).await;
            self.forget(&pools);
            self.keep_counts_of(&old.settings);
            return Err(why);
        }
        Ok(pools)
    }

    /// Retires a new revision that will not serve; requests that it has begun may finish.
    fn give_up(self: &Arc<Self>, old: &Revision, new: Arc<Revision>, unused: IdleSignal) {
        self.keep_counts_of(&old.settings);
        if let Err(why) = self.fixed.certificates.follow(&old.settings.acme) {
            tracing::error!("{why:#}");
        }
        tokio::spawn(self.clone().retire(new, unused));
    }

    /// Removes the metrics of pools and upstream servers that these settings do not name.
    fn keep_counts_of(&self, settings: &Settings) {
        let metrics = &self.fixed.context.metrics;
        metrics.keep_pools(|name| settings.pool(name).is_some());
        metrics.upstreams.keep(|upstream| settings.proxies.iter().any(|proxy| *proxy.name == *upstream.proxy));
    }

    /// Switches to the next revision. Nothing here can fail.
    fn switch(self: &Arc<Self>, running: &RunningFront, revision_tasks: &mut RevisionTasks, next: NextRevision) {
        let NextRevision { revision, unused, listeners, mut tls, watched } = next;
        let (settings, pools) = (revision.settings.clone(), revision.pools.clone());
        let old = self.revision();
        let metrics = &self.fixed.context.metrics;
        let tasks = Tasks::start(&revision, watched, tls.as_mut(), metrics);
        let shared = Shared::new(&settings.http, self.fixed.budgets, metrics.clone());
        let shared = shared.with_extended_connect(settings.may_upgrade());
        shared.on_missing_certificates(self.fixed.certificates.demand());
        self.forget(&pools);
        self.others.lock().push(old.pools.clone());
        for pool in pools.iter() {
            if let Some(before) = old.pools.named(pool.name()) {
                pool.take_over(before);
            }
        }
        revision.sites.end_changed_subscriptions(&old.sites, settings.drain);
        self.current.store(revision);
        running.shared.store(Arc::new(shared));
        opening::change_addresses(&running.listeners, &old.settings, &settings, listeners, tls.as_ref());
        self.keep_counts_of(&settings);
        let before = std::mem::replace(revision_tasks, RevisionTasks { unused, tls, _tasks: tasks });
        tokio::spawn(self.clone().retire(old, before.unused));
    }

    /// Runs `what` while no reload can begin. If it succeeds, all later reloads are refused.
    pub(crate) async fn without_reloads<T, E>(&self, what: impl Future<Output = Result<T, E>>) -> Result<T, E> {
        let _own = self.revision_tasks.lock().await;
        let done = what.await;
        if done.is_ok() {
            self.stopping.store(true, Relaxed);
        }
        done
    }

    /// Notifies the service manager that the server is ready, with the state of its pools, and stores the listening
    /// sockets with it.
    pub(crate) fn notify_ready(&self) {
        let pools = &self.revision().pools;
        let status = match pools.ready() {
            Ok(()) => "every pool serves".to_owned(),
            Err(why) => why,
        };
        self.fixed.service.ready(&status);
        if let Some(sockets) = self.running.get().and_then(|running| running.listeners.handles()) {
            self.fixed.service.keep(&sockets);
        }
    }

    /// Stops the pools of a revision once its last request has left the front.
    async fn retire(self: Arc<Self>, old: Arc<Revision>, mut unused: IdleSignal) {
        let pools = old.pools.clone();
        drop(old);
        let _ = unused.recv().await;
        pools.stop(NO_LIMIT).await;
        self.forget(&pools);
    }

    fn forget(&self, pools: &Arc<Pools>) {
        self.others.lock().retain(|others| !Arc::ptr_eq(others, pools));
    }

    /// Pools outside the current revision that are booting or finish their requests.
    pub(crate) fn finishing(&self) -> Vec<Arc<Pools>> {
        self.others.lock().clone()
    }

    /// Marks the server as not ready and refuses further reloads.
    pub(crate) fn drain(&self) {
        self.stopping.store(true, Relaxed);
        self.revision().pools.drain();
    }

    /// Asks the subscribers of Mercure hubs to reconnect, spread over this time.
    pub(crate) fn end_subscriptions(&self, spread: Duration) {
        self.revision().sites.server.hubs().close(spread);
    }

    /// Stops every pool of every revision; returns when none of their processes is left.
    pub(crate) async fn stop_pools(&self, grace: Duration) {
        let mut stops = JoinSet::new();
        for pools in self.finishing().into_iter().chain([self.revision().pools.clone()]) {
            stops.spawn(async move { pools.stop(grace).await });
        }
        while stops.join_next().await.is_some() {}
    }
}

/// The next revision, ready to replace the current one.
struct NextRevision {
    revision: Arc<Revision>,
    unused: IdleSignal,
    listeners: Vec<Listener>,
    tls: Option<Tls>,
    watched: Vec<Option<watch::WatchedFiles>>,
}
