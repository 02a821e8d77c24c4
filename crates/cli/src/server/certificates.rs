//! Certificates that the server obtains or creates: names, sources, and status.

use anyhow::{Context, Result};
use bytes::Bytes;
use howdah_config::{Account, AcmeSettings, Proof, host_name, user_name};
use howdah_observe::metrics::CertificateNumbers;
use howdah_store::{Broker, StateDir};
use howdah_tls::Store;
use howdah_tls::acme::{self, Demand, Kind, Manager, NameReport, OnDemand, Report};
use howdah_tls::local_ca::{self, LocalCa};
use howdah_tls::names::{self, NameScope};
use parking_lot::Mutex;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::AbortHandle;

/// The running certificate management.
pub(crate) struct Certificates {
    store: Arc<Store>,
    report: Arc<Report>,
    /// Broker through which servers share certificates.
    broker: Option<Broker>,
    /// Replaced by each reload.
    sources: Mutex<Sources>,
}

#[derive(Default)]
struct Sources {
    manager: Option<Manager>,
    /// Names of the local CA's certificate, and the task that renews it.
    private: Vec<String>,
    renewing: Option<AbortHandle>,
    /// The name whose certificate is used for clients that send no name.
    default: Option<String>,
}

/// Returns a problem with the state directory, as far as one can be found without creating the directory. `account` is
/// the server's future user.
pub(crate) fn trouble(acme: &AcmeSettings, account: Option<&Account>) -> Option<String> {
    if !acme.is_used() {
        return None;
    }
    let (state, own) = (&acme.state, rustix::process::geteuid().as_raw());
    let user = account.map_or(own, |account| account.uid);
    let is_writable = |path: &Path| rustix::fs::access(path, rustix::fs::Access::WRITE_OK);
    match std::fs::metadata(state) {
        Ok(meta) if !meta.is_dir() => Some(format!("{} is not a directory", state.display())),
        Ok(meta) if meta.uid() != user => {
            // At its start as root, the server gives root's directory to its user.
            let is_handed_over = own == 0 && meta.uid() == 0 && meta.mode() & 0o022 == 0;
            let whose = format!(
                "{} belongs to {}, and the server runs as {}: set `acme.state` to a separate directory, or `user`",
                state.display(),
                user_name(meta.uid()),
                user_name(user)
            );
            (!is_handed_over).then_some(whose)
        }
        Ok(_) => is_writable(state).err().map(|why| format!("cannot write to {}: {why}", state.display())),
        Err(why) if why.kind() == std::io::ErrorKind::NotFound => {
            let above = state.ancestors().skip(1).find(|path| path.exists())?;
            let why = is_writable(above).err()?;
            Some(format!("cannot create {}: cannot write to {}: {why}", state.display(), above.display()))
        }
        Err(why) => Some(format!("{}: {why}", state.display())),
    }
}

/// Gives the state directory to the server's future user. Called while the server has the right to.
pub(crate) fn prepare(acme: &AcmeSettings, account: Option<&Account>) -> Result<()> {
    let Some(account) = account.filter(|_| acme.is_used()) else { return Ok(()) };
    let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&acme.state);
    let context = || format!("cannot create the state directory {}", acme.state.display());
    made.with_context(context)?;
    // Files in it that root created, perhaps by `howdah trust`, would be unreadable for the server. Files of other
    // users keep their owner.
    let meta = std::fs::symlink_metadata(&acme.state).with_context(context)?;
    if meta.uid() == 0 && meta.mode() & 0o022 == 0 {
        hand_over(&acme.state, account).with_context(context)?;
    }
    Ok(())
}

fn hand_over(path: &Path, account: &Account) -> std::io::Result<()> {
    if std::fs::symlink_metadata(path)?.is_dir() {
        for entry in std::fs::read_dir(path)? {
            hand_over(&entry?.path(), account)?;
        }
    }
    std::os::unix::fs::lchown(path, Some(account.uid), Some(account.gid))
}

/// Starts the tasks that renew certificates; waits for none.
pub(crate) fn start(settings: &AcmeSettings, store: Arc<Store>, broker: Option<Broker>) -> Result<Certificates> {
    let certificates = Certificates { store, report: Arc::default(), broker, sources: Mutex::default() };
    certificates.follow(settings)?;
    Ok(certificates)
}

/// Splits the names into those for public authorities and those for the local CA. The settings were checked.
fn split(settings: &AcmeSettings) -> (Vec<String>, Vec<String>) {
    let names = settings.names.iter().filter_map(|name| host_name::normalize(name).ok());
    names.partition(|name| names::reach(name) == NameScope::Public)
}

/// Maximum number of new names on demand per minute.
const ON_DEMAND_LIMIT: u32 = 10;
/// Delay after a first failure.
const FIRST_RETRY: Duration = Duration::from_secs(60);

fn options(settings: &AcmeSettings, broker: Option<Broker>) -> acme::Options {
    let kind = |proof: &Proof| match proof {
        Proof::Http01 => Kind::Http01,
        Proof::TlsAlpn01 => Kind::TlsAlpn01,
    };
    let on_demand = |allow_url: &String| OnDemand { allow_url: allow_url.clone(), limit: ON_DEMAND_LIMIT };
    acme::Options {
        directory: settings.directory_url().to_owned(),
        ca_file: settings.ca_file.clone(),
        email: settings.email.clone(),
        external_account: settings.eab.as_ref().and_then(|pair| {
            let (id, key) = pair.expose().rsplit_once(':')?;
            Some((id.to_owned(), key.to_owned()))
        }),
        profile: settings.profile.clone(),
        kinds: settings.challenges.iter().map(kind).collect(),
        on_demand: settings.on_demand.as_ref().map(on_demand),
        broker,
        retry: FIRST_RETRY.min(settings.retry / 5),
        retry_most: settings.retry,
    }
}

impl Certificates {
    /// Renews the certificates of these names from now on, and no others. Once the certificate manager runs, its other
    /// settings stay as they are. Called within a runtime.
    ///
    /// # Errors
    /// The state directory cannot be used.
    pub(crate) fn follow(&self, settings: &AcmeSettings) -> Result<()> {
        let unusable = "cannot use the state directory (`acme.state`)";
        let mut sources = self.sources.lock();
        let (public, private) = split(settings);
        let default = public.first().or(private.first()).cloned();
        let is_local_default = public.is_empty();
        let begins = sources.manager.is_none() && (!public.is_empty() || settings.on_demand.is_some());
        let signs = private != sources.private || default != sources.default;
        let state = (begins || signs).then(|| StateDir::open(&settings.state)).transpose().context(unusable)?;
        if default != sources.default {
            self.store.set_default(None);
            sources.default = default;
        }
        let (store, report) = (&self.store, &self.report);
        if let Some(state) = state.as_ref().filter(|_| signs) {
            sources.renewing.take().inspect(AbortHandle::abort);
            for name in sources.private.drain(..).filter(|name| !private.contains(name)) {
                store.remove([name.as_str()]);
                report.remove(&name);
            }
            if !private.is_empty() {
                let ca = LocalCa::open(state)?;
                let renewing = local_ca::serve(ca, private.clone(), is_local_default, store.clone(), report.clone())?;
                (sources.renewing, sources.private) = (Some(renewing), private);
            }
        }
        match (&sources.manager, &state) {
            (Some(manager), _) => manager.set_names(public),
            (None, Some(state)) if begins => {
                let options = options(settings, self.broker.clone());
                let manager = Manager::start(options, public, state, store.clone(), report.clone());
                sources.manager = Some(manager.context(unusable)?);
            }
            (None, _) => {}
        }
        Ok(())
    }

    /// Challenge responses for listeners without TLS.
    pub(crate) fn challenges(&self) -> Option<Arc<dyn howdah_site::challenges::Challenges>> {
        let sources = self.sources.lock();
        let manager = sources.manager.as_ref()?;
        Some(Arc::new(TokenSource(manager.challenges())))
    }

    /// Obtains certificates on demand, for handshakes with names that have none.
    pub(crate) fn demand(&self) -> Option<Demand> {
        self.sources.lock().manager.as_ref().map(Manager::demand)
    }

    pub(crate) fn report(&self) -> Arc<Report> {
        self.report.clone()
    }
}

#[derive(Debug)]
struct TokenSource(Arc<acme::Challenges>);

impl howdah_site::challenges::Challenges for TokenSource {
    fn find<'a>(&'a self, token: &'a str) -> Pin<Box<dyn Future<Output = Option<Bytes>> + Send + 'a>> {
        Box::pin(self.0.find(token))
    }
}

/// Certificate metrics from the report.
pub(crate) fn numbers(report: &Report) -> CertificateNumbers {
    let expiry = |name: NameReport| (name.name, name.until.unwrap_or(0));
    CertificateNumbers {
        expiry: report.names().into_iter().map(expiry).collect(),
        orders: report.orders(),
        failures: report.failures(),
    }
}
