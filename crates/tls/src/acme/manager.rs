//! The task that manages every name: its certificate, its next renewal, its waiting clients. Tasks for names run
//! separately (`work`), a few at a time. Stored certificates are served at once, whatever state the authority is in.

use crate::acme::allow::{Bounds, Verdict};
use crate::acme::challenges::Challenges;
use crate::acme::demand::{CertificateRequest, Demand};
use crate::acme::entry::{Entry, Served};
use crate::acme::failure::{Failure, FailureScope};
use crate::acme::report::{NameReport, Report, seconds};
use crate::acme::stored::{Attempts, StoredCertificate, StoredCertificates};
use crate::acme::work::{Outcome, Shared, Task};
use crate::acme::{Options, plan};
use crate::names::{self, NameScope};
use crate::store::Store;
use howdah_store::StateDir;
use howdah_store::{Storage, Version};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};
use tokio::sync::{mpsc, watch};
use tokio::task::{Id, JoinSet, spawn_blocking};

/// No due task is started while this many tasks run; checks of new names do not count. Orders of names that were just
/// allowed start at once.
const MAX_CONCURRENT: usize = 4;
/// Interval at which the storage is checked for certificates of other servers: one system call, or a query of the
/// broker.
const POLL_INTERVAL: Duration = Duration::from_secs(3);
/// Number of certificates loaded before each update of the store.
const CHUNK: usize = 256;
/// Maximum number of handshakes that wait for one name.
const MAX_WAITING_PER_NAME: usize = 128;
/// Maximum number of on-demand names in work at once.
const MAX_DEMANDED: usize = 64;
/// Limit of the pause after a failure of the authority that asks for no longer one, before its random part. Also the
/// time until a refused name that has a certificate is checked again.
const MAX_PAUSE: Duration = Duration::from_secs(3600);
/// Time to wait for another server's order before the next check.
const BUSY: Duration = Duration::from_secs(2);
/// First renewal queries for loaded certificates are spread over this time per name, up to `ASK_WITHIN`.
const ASK_EACH: Duration = Duration::from_secs(1);
const ASK_WITHIN: Duration = Duration::from_secs(6 * 3600);

/// Handle of the manager's task, which ends with the runtime, or when the handle and all its `Demand`s are dropped.
#[derive(Debug)]
pub struct Manager {
    demand: Demand,
    challenges: Arc<Challenges>,
    names: watch::Sender<Vec<String>>,
}

/// Stored data of a name.
struct LoadedName {
    name: String,
    found: Option<StoredCertificate>,
    attempts: Option<Attempts>,
}

impl Manager {
    /// Starts the task; call it within a runtime. Does not wait: names are loaded and ordered in the background. If the
    /// settings name no certificate files for the whole server, the first name's certificate is also served to clients
    /// that send no name or an unknown one.
    ///
    /// # Errors
    /// The storage directory cannot be used.
    pub fn start(
        options: Options,
        names: Vec<String>,
        state: &StateDir,
        store: Arc<Store>,
        report: Arc<Report>,
    ) -> std::io::Result<Self> {
        let place = format!("acme/{}", directory_name(&options.directory));
        let storage = Storage::new(state.below(&place)?, options.broker.clone(), &place.replace('/', ":"));
        let challenges = Challenges::new(storage.below("challenges")?);
        let kept = StoredCertificates::new(storage.below("certificates")?);
        let (demand, wanted) = Demand::new(store.clone());
        let shared = Shared {
            options,
            store,
            kept,
            challenges: challenges.clone(),
            report,
            storage,
            access: tokio::sync::Mutex::default(),
            client: tokio::sync::Mutex::default(),
        };
        let (names, listed) = watch::channel(names);
        tokio::spawn(ManagerTask::new(Arc::new(shared)).run(listed, wanted));
        Ok(Self { demand, challenges, names })
    }

    /// Replaces the names. Certificates of names that stay are kept. Those of removed names are no longer served, but
    /// stay stored.
    pub fn set_names(&self, names: Vec<String>) {
        self.names.send_if_modified(|before| {
            *before != names && {
                *before = names;
                true
            }
        });
    }

    /// The HTTP-01 challenges.
    pub fn challenges(&self) -> Arc<Challenges> {
        self.challenges.clone()
    }

    /// Requests certificates for handshakes.
    pub fn demand(&self) -> Demand {
        self.demand.clone()
    }
}

/// Derives the name of an authority's directory on disk from its URL.
fn directory_name(url: &str) -> String {
    let name = url.trim_start_matches("https://").chars();
    name.map(|c| if c.is_ascii_alphanumeric() || c == '.' || c == '-' { c } else { '_' }).take(120).collect()
}

struct ManagerTask {
    shared: Arc<Shared>,
    /// The name whose certificate is the store's own default.
    default: Option<String>,
    names: HashMap<String, Entry>,
    due: BTreeSet<(SystemTime, String)>,
    jobs: JoinSet<Outcome>,
    working: HashMap<Id, String>,
    /// The tasks that check whether a new name is allowed; they do not count as orders.
    asking: HashSet<Id>,
    /// No orders before this time: the authority is unreachable or reported a rate limit.
    paused_until: SystemTime,
    authority_failures: u32,
    bounds: Bounds,
    changed: Option<Version>,
    loading: mpsc::Sender<Vec<LoadedName>>,
    loaded: mpsc::Receiver<Vec<LoadedName>>,
}

impl ManagerTask {
    fn new(shared: Arc<Shared>) -> Self {
        let limit = shared.options.on_demand.as_ref().map_or(0, |on_demand| on_demand.limit);
        let (loading, loaded) = mpsc::channel(2);
        Self {
            shared,
            default: None,
            names: HashMap::new(),
            due: BTreeSet::new(),
            jobs: JoinSet::new(),
            working: HashMap::new(),
            asking: HashSet::new(),
            paused_until: SystemTime::UNIX_EPOCH,
            authority_failures: 0,
            bounds: Bounds::new(limit, Instant::now()),
            changed: None,
            loading,
            loaded,
        }
    }

    async fn run(mut self, mut listed: watch::Receiver<Vec<String>>, mut wanted: mpsc::Receiver<CertificateRequest>) {
        let names = listed.borrow_and_update().clone();
        self.list(names);
        let challenges = self.shared.challenges.clone();
        spawn_blocking(move || challenges.sweep());
        let mut poll = tokio::time::interval(POLL_INTERVAL);
        poll.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            self.begin_due();
            let until_due = self.until_due();
            tokio::select! {
                asked = wanted.recv() => match asked {
                    Some(asked) => self.handle_request(asked),
                    None => return,
                },
                // The sender is dropped together with that of `wanted`.
                Ok(()) = listed.changed() => {
                    let names = listed.borrow_and_update().clone();
                    self.list(names);
                }
                Some(loaded) = self.loaded.recv() => self.take_loaded(loaded),
                Some(ended) = self.jobs.join_next_with_id(), if !self.jobs.is_empty() => match ended {
                    Ok((id, outcome)) => self.end(id, outcome),
                    // A panic, which the panic hook has logged, counts as one failure of that name.
                    Err(error) => self.end(error.id(), Outcome::Failed(Failure::of_name("the task panicked"))),
                },
                _ = poll.tick() => self.poll_storage().await,
                () = tokio::time::sleep(until_due) => {}
            }
        }
    }

    /// Applies the names of the settings: loads or orders new names, and removes the others.
    fn list(&mut self, names: Vec<String>) {
        let listed: HashSet<&str> = names.iter().map(String::as_str).collect();
        let gone = |(name, entry): (&String, &Entry)| {
            (!entry.on_demand && !listed.contains(name.as_str())).then(|| name.clone())
        };
        let gone: Vec<String> = self.names.iter().filter_map(gone).collect();
        self.shared.store.remove(gone.iter().map(String::as_str));
        gone.iter().for_each(|name| self.forget(name));
        let default = names.first().cloned();
        let mut new = Vec::new();
        // A new default's certificate is loaded again: `adopt` makes it the store's default.
        for name in names {
            let is_known = self.names.get_mut(&name).map(|entry| entry.on_demand = false).is_some();
            if !is_known {
                self.names.insert(name.clone(), Entry { working: true, ..Entry::new(false) });
                self.report(&name);
            }
            if !is_known || (default.as_ref() == Some(&name) && self.default != default) {
                new.push(name);
            }
        }
        self.default = default;
        self.load(new);
    }

    /// Time until the next task. Bounded, because clocks are changed and machines sleep.
    fn until_due(&self) -> Duration {
        if self.is_full() {
            return POLL_INTERVAL;
        }
        let next = self.due.first().map(|(at, _)| at.duration_since(SystemTime::now()).unwrap_or_default());
        next.unwrap_or(POLL_INTERVAL).min(POLL_INTERVAL)
    }

    /// Loads the stored data of these names; `take_loaded` receives it in parts.
    fn load(&self, names: Vec<String>) {
        let (kept, to) = (self.shared.kept.clone(), self.loading.clone());
        spawn_blocking(move || {
            for names in names.chunks(CHUNK) {
                let load = |name: &String| LoadedName {
                    found: kept.load(name),
                    attempts: kept.attempts(name),
                    name: name.clone(),
                };
                if to.blocking_send(names.iter().map(load).collect()).is_err() {
                    return;
                }
            }
        });
    }

    fn take_loaded(&mut self, loaded: Vec<LoadedName>) {
        let certificates = loaded.iter().filter_map(|loaded| loaded.found.as_ref());
        self.shared.store.insert(certificates.map(|found| &found.certificate));
        for LoadedName { name, found, attempts } in loaded {
            let on_demand = {
                let Some(entry) = self.names.get_mut(&name) else { continue };
                entry.working = self.working.values().any(|working| *working == name);
                if let Some(attempts) = &attempts {
                    entry.failures = attempts.failures;
                    entry.error = Some(attempts.error.clone());
                }
                entry.on_demand && entry.certificate.is_none()
            };
            match found {
                Some(found) => {
                    self.adopt(&name, &found);
                    if let Some(attempts) = attempts {
                        self.not_before(&name, attempts.after_start());
                    }
                    self.release(&name, true);
                }
                None if on_demand => self.order_on_demand(&name),
                None => {
                    let at = attempts.map_or(SystemTime::UNIX_EPOCH, |attempts| attempts.after_start());
                    self.schedule(&name, at);
                }
            }
            self.report(&name);
        }
    }

    /// Checks whether another server has obtained certificates.
    async fn poll_storage(&mut self) {
        if self.names.is_empty() {
            return;
        }
        let kept = self.shared.kept.clone();
        let Ok(Ok(changed)) = spawn_blocking(move || kept.changed()).await else { return };
        if changed == self.changed {
            return;
        }
        self.changed = changed;
        let idle = self.names.iter().filter(|(_, entry)| !entry.working);
        let known: Vec<(String, Option<Version>)> = idle
            .map(|(name, entry)| (name.clone(), entry.certificate.as_ref().and_then(|served| served.version)))
            .collect();
        let (kept, to) = (self.shared.kept.clone(), self.loading.clone());
        spawn_blocking(move || {
            let newer =
                known.into_iter().filter(|(name, known)| kept.version(name).is_ok_and(|version| version != *known));
            let newer: Vec<LoadedName> = newer
                .filter_map(|(name, _)| Some(LoadedName { found: Some(kept.load(&name)?), attempts: None, name }))
                .collect();
            let _ = to.blocking_send(newer);
        });
    }

    /// Takes over a certificate that the store now has.
    fn adopt(&mut self, name: &str, found: &StoredCertificate) {
        let spread = ASK_EACH.saturating_mul(u32::try_from(self.names.len()).unwrap_or(u32::MAX)).min(ASK_WITHIN);
        let Some(entry) = self.names.get_mut(name) else { return };
        let Some(leaf) = found.certificate.key.cert.first() else { return };
        if self.default.as_deref() == Some(name) {
            self.shared.store.set_default(Some(&found.certificate));
        }
        let time = |seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        let (from, until) = (time(found.certificate.not_before), time(found.certificate.not_after));
        let now = SystemTime::now();
        let served = Served {
            leaf: leaf.clone(),
            from,
            until,
            version: found.version,
            renew_at: plan::renewal(from, until),
            ask_at: Some(plan::within(now, now + spread)),
        };
        (entry.failures, entry.error) = (0, None);
        let next = served.next();
        entry.certificate = Some(served);
        self.schedule(name, next);
    }

    /// Schedules the next task of a name.
    fn schedule(&mut self, name: &str, at: SystemTime) {
        let Some(entry) = self.names.get_mut(name) else { return };
        if let Some(before) = entry.next.replace(at) {
            self.due.remove(&(before, name.to_owned()));
        }
        self.due.insert((at, name.to_owned()));
    }

    fn not_before(&mut self, name: &str, at: SystemTime) {
        let next = self.names.get(name).and_then(|entry| entry.next);
        if next.is_some_and(|next| next < at) {
            self.schedule(name, at);
        }
    }

    fn is_full(&self) -> bool {
        self.working.len() - self.asking.len() >= MAX_CONCURRENT
    }

    /// Starts the tasks that are due, up to the concurrency limits.
    fn begin_due(&mut self) {
        let now = SystemTime::now();
        while !self.is_full() {
            let Some((at, name)) = self.due.first().cloned() else { return };
            if at > now {
                return;
            }
            self.due.pop_first();
            let Some(entry) = self.names.get_mut(&name) else { continue };
            entry.next = None;
            if entry.working {
                continue;
            }
            let inquiry = entry.certificate.as_ref().filter(|served| served.renew_at > now);
            if let Some(served) = inquiry {
                let task = Task::Inquire(served.leaf.clone());
                self.begin(&name, task);
            } else if self.paused_until > now {
                let later = plan::within(self.paused_until, self.paused_until + BUSY);
                self.schedule(&name, later);
            } else if entry.on_demand {
                self.begin(&name, Task::Ask);
            } else {
                self.begin_order(&name);
            }
        }
    }

    fn begin_order(&mut self, name: &str) {
        let Some(entry) = self.names.get(name) else { return };
        let served = entry.certificate.as_ref();
        let task = Task::Order {
            known: served.and_then(|served| served.version),
            replaced: served.map(|served| served.leaf.clone()),
            failures: entry.failures,
        };
        self.begin(name, task);
    }

    fn begin(&mut self, name: &str, task: Task) {
        let Some(entry) = self.names.get_mut(name) else { return };
        entry.working = true;
        let asks = matches!(task, Task::Ask) && entry.certificate.is_none();
        let (shared, owned) = (self.shared.clone(), name.to_owned());
        let job = self.jobs.spawn(async move { shared.run(&owned, task).await });
        self.working.insert(job.id(), name.to_owned());
        if asks {
            self.asking.insert(job.id());
        }
    }

    fn end(&mut self, id: Id, outcome: Outcome) {
        let Some(name) = self.working.remove(&id) else { return };
        self.asking.remove(&id);
        let Some(entry) = self.names.get_mut(&name) else { return };
        entry.working = false;
        let now = SystemTime::now();
        match outcome {
            Outcome::Have { found, ordered } => {
                self.shared.store.insert([&found.certificate]);
                self.adopt(&name, &found);
                if ordered {
                    self.authority_failures = 0;
                    self.shared.report.obtained();
                    tracing::info!("obtained a certificate for {name}");
                }
                self.release(&name, true);
            }
            Outcome::Busy => self.schedule(&name, plan::within(now + BUSY / 2, now + BUSY)),
            Outcome::Failed(failure) => self.failed(&name, &failure),
            // The name has been added to the settings in the meantime.
            Outcome::Allowed | Outcome::Refused(_) if !entry.on_demand => {
                self.asked(&name);
                self.begin_order(&name);
            }
            Outcome::Allowed => self.allowed(&name),
            Outcome::Refused(verdict) => self.refused(&name, &verdict),
            Outcome::Window { renew_at, ask_at } => self.set_window(&name, Some(renew_at), Some(ask_at)),
            Outcome::NoWindow { ask_at } => self.set_window(&name, None, ask_at),
        }
        self.report(&name);
    }

    fn set_window(&mut self, name: &str, renew_at: Option<SystemTime>, ask_at: Option<SystemTime>) {
        let Some(served) = self.names.get_mut(name).and_then(|entry| entry.certificate.as_mut()) else { return };
        if let Some(renew_at) = renew_at {
            served.renew_at = plan::in_time(renew_at, served.from, served.until);
        }
        served.ask_at = ask_at;
        let next = served.next();
        self.schedule(name, next);
    }

    fn failed(&mut self, name: &str, failure: &Failure) {
        self.shared.report.failed();
        let now = SystemTime::now();
        let Some(entry) = self.names.get_mut(name) else { return };
        let options = &self.shared.options;
        let pause = match failure.whose {
            FailureScope::Name => {
                entry.failures = entry.failures.saturating_add(1);
                plan::pause(options.retry, options.retry_most, entry.failures)
            }
            FailureScope::Authority | FailureScope::Account => {
                self.authority_failures = self.authority_failures.saturating_add(1);
                plan::pause(options.retry, options.retry_most.min(MAX_PAUSE), self.authority_failures)
            }
        };
        let next = failure.not_before.map_or(now + pause, |not_before| not_before.max(now + pause));
        if failure.whose != FailureScope::Name {
            self.paused_until = next;
        }
        let wait = next.duration_since(now).unwrap_or_default().as_secs();
        let served = entry.certificate.as_ref().map(|served| served.until);
        match served.and_then(|until| until.duration_since(now).ok()) {
            Some(left) => tracing::warn!(
                "no new certificate for {name}: {}; the old one is valid for {} h, next attempt in {wait} s",
                failure.message,
                left.as_secs() / 3600
            ),
            None => tracing::error!("no certificate for {name}: {}; next attempt in {wait} s", failure.message),
        }
        entry.error = Some(failure.message.clone());
        self.schedule(name, next);
        self.release(name, served.is_some());
    }

    /// Handles an allowed name. Its first order takes from the limit; a name that has failed before was counted then.
    fn allowed(&mut self, name: &str) {
        self.asked(name);
        let is_new = self.names.get(name).is_some_and(|entry| entry.certificate.is_none() && entry.failures == 0);
        if is_new && !self.bounds.take(Instant::now()) {
            tracing::warn!("on-demand certificate for {name} delayed: too many new names within a minute");
            self.release(name, false);
            self.forget(name);
        } else {
            self.begin_order(name);
        }
    }

    fn asked(&mut self, name: &str) {
        if let Some(asker) = self.names.get_mut(name).and_then(|entry| entry.asker.take()) {
            self.bounds.asked(asker);
        }
    }

    fn refused(&mut self, name: &str, verdict: &Verdict) {
        match verdict {
            Verdict::Unreached(why) => tracing::error!("on-demand check failed for {name}: {why}"),
            _ => tracing::info!("on-demand check refused {name}"),
        }
        self.bounds.refuse(name, verdict, Instant::now());
        self.release(name, false);
        // An existing certificate stays in the store; its name is checked again later.
        if self.names.get(name).is_some_and(|entry| entry.certificate.is_none()) {
            self.forget(name);
        } else {
            self.schedule(name, SystemTime::now() + MAX_PAUSE);
        }
    }

    fn forget(&mut self, name: &str) {
        if let Some(entry) = self.names.remove(name)
            && let Some(at) = entry.next
        {
            self.due.remove(&(at, name.to_owned()));
        }
        self.shared.report.remove(name);
    }

    /// Notifies the handshakes that wait for a name.
    fn release(&mut self, name: &str, found: bool) {
        self.asked(name);
        let Some(entry) = self.names.get_mut(name) else { return };
        for waiting in entry.waiting.drain(..) {
            let _ = waiting.send(found);
        }
    }

    /// Handles a handshake for a name that is not in the store.
    fn handle_request(&mut self, CertificateRequest { name, client, found }: CertificateRequest) {
        if let Some(entry) = self.names.get_mut(&name) {
            if entry.certificate.is_some() || !entry.working || entry.waiting.len() >= MAX_WAITING_PER_NAME {
                let _ = found.send(entry.certificate.is_some());
            } else {
                entry.waiting.push(found);
            }
            return;
        }
        let is_allowed = self.shared.options.on_demand.is_some()
            && names::reach(&name) == NameScope::Public
            && !self.bounds.is_refused(&name, Instant::now())
            && self.names.values().filter(|entry| entry.is_demanded()).count() < MAX_DEMANDED
            && self.bounds.may_ask(client, Instant::now());
        if !is_allowed {
            let _ = found.send(false);
            return;
        }
        // The certificate may be stored already; if not, `take_loaded` continues.
        let entry = Entry { working: true, asker: Some(client), waiting: vec![found], ..Entry::new(true) };
        self.names.insert(name.clone(), entry);
        self.load(vec![name]);
    }

    fn order_on_demand(&mut self, name: &str) {
        if self.paused_until > SystemTime::now() {
            tracing::warn!("certificate for {name} delayed: orders are paused after an error of the authority");
            self.release(name, false);
            self.forget(name);
        } else {
            self.begin(name, Task::Ask);
        }
    }

    /// Updates the report with the state of a name.
    fn report(&self, name: &str) {
        let Some(entry) = self.names.get(name) else { return };
        self.shared.report.set(NameReport {
            name: name.to_owned(),
            source: "acme",
            until: entry.certificate.as_ref().map(|served| seconds(served.until)),
            next: match (&entry.certificate, entry.failures) {
                (Some(served), 0) => Some(seconds(served.renew_at)),
                _ => entry.next.map(seconds),
            },
            failures: entry.failures,
            last_error: entry.error.clone(),
        });
    }
}
