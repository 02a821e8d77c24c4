//! Tasks for one name, which run concurrently with those of other names: check whether it is allowed, order, ask the
//! authority for the renewal time.

use crate::acme::allow::{self, Verdict};
use crate::acme::blocking::blocking;
use crate::acme::challenges::Challenges;
use crate::acme::failure::{Failure, FailureScope, chain};
use crate::acme::http_client::Client;
use crate::acme::order::OrderContext;
use crate::acme::report::Report;
use crate::acme::stored::{Attempts, StoredCertificate, StoredCertificates};
use crate::acme::{Options, account, plan};
use crate::store::Store;
use howdah_store::{Storage, Version};
use instant_acme::{Account, CertificateIdentifier, Error};
use rustls_pki_types::CertificateDer;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio::sync::Mutex;
use tokio::task::spawn_blocking;

/// Minimum and maximum interval between renewal queries for a certificate; the authority chooses within these bounds.
const RENEWAL_INFO_INTERVAL: (Duration, Duration) = (Duration::from_secs(60), Duration::from_secs(86400));
/// Average pause after a failed renewal query.
const RENEWAL_INFO_RETRY: Duration = Duration::from_secs(3600);

/// State shared by all tasks.
pub(super) struct Shared {
    pub(super) options: Options,
    pub(super) store: Arc<Store>,
    pub(super) kept: StoredCertificates,
    pub(super) challenges: Arc<Challenges>,
    pub(super) report: Arc<Report>,
    /// Storage for everything from this authority, including the certificates.
    pub(super) storage: Storage,
    /// Client and account; `None` until a task needs them.
    pub(super) access: Mutex<Option<(Client, Account)>>,
    pub(super) client: Mutex<Option<Client>>,
}

/// A task for one name.
pub(super) enum Task {
    /// Get a certificate: order one, or load one that another server has ordered.
    Order {
        /// Version of the certificate that the manager knows.
        known: Option<Version>,
        /// The certificate to renew.
        replaced: Option<CertificateDer<'static>>,
        failures: u32,
    },
    /// Check whether an unlisted name may have a certificate.
    Ask,
    /// Ask the authority when to renew this certificate (ARI, RFC 9773).
    Inquire(CertificateDer<'static>),
}

/// Result of a task.
pub(super) enum Outcome {
    /// A certificate; `ordered` is `true` if it is new.
    Have { found: StoredCertificate, ordered: bool },
    /// Another server is ordering it.
    Busy,
    /// No certificate was obtained.
    Failed(Failure),
    /// The name may have a certificate.
    Allowed,
    /// The name may not have a certificate.
    Refused(Verdict),
    /// Renewal time, and the time of the next query.
    Window { renew_at: SystemTime, ask_at: SystemTime },
    /// The authority suggests no renewal time, or did not answer.
    NoWindow { ask_at: Option<SystemTime> },
}

impl Shared {
    pub(super) async fn run(&self, name: &str, task: Task) -> Outcome {
        match task {
            Task::Order { known, replaced, failures } => {
                self.order(name, known, replaced, failures).await.unwrap_or_else(Outcome::Failed)
            }
            Task::Ask => self.ask(name).await.unwrap_or_else(Outcome::Failed),
            Task::Inquire(certificate) => self.inquire(&certificate).await,
        }
    }

    async fn ask(&self, name: &str) -> Result<Outcome, Failure> {
        let Some(on_demand) = &self.options.on_demand else { return Ok(Outcome::Allowed) };
        Ok(match allow::ask(&self.client().await?, on_demand, name).await {
            Verdict::Allowed => Outcome::Allowed,
            refused => Outcome::Refused(refused),
        })
    }

    async fn order(
        &self,
        name: &str,
        known: Option<Version>,
        replaced: Option<CertificateDer<'static>>,
        failures: u32,
    ) -> Result<Outcome, Failure> {
        let (kept, owned) = (self.kept.clone(), name.to_owned());
        let locked = blocking(move || match kept.try_lock(&owned) {
            // Another server may have got the certificate while this one waited for the lock or had not polled.
            Ok(Some(_))
                if kept.version(&owned).is_ok_and(|version| version != known)
                    && let Some(found) = kept.load(&owned) =>
            {
                Ok(Err(Outcome::Have { found, ordered: false }))
            }
            Ok(Some(lock)) => Ok(Ok(lock)),
            Ok(None) => Ok(Err(Outcome::Busy)),
            Err(error) => Err(Failure::of_authority(format!("cannot lock the certificate: {error}"))),
        })
        .await??;
        let _lock = match locked {
            Ok(lock) => lock,
            Err(outcome) => return Ok(outcome),
        };
        let (client, account) = self.access().await?;
        let needs = OrderContext {
            account: &account,
            client: &client,
            options: &self.options,
            store: &self.store,
            challenges: &self.challenges,
        };
        let ordered = needs.certificate(name, replaced.as_ref(), failures).await;
        let pem = match ordered {
            Ok(pem) => pem,
            Err(failure) => {
                self.lose_access(&failure).await;
                self.note(name, failures, &failure).await;
                return Err(failure);
            }
        };
        let (kept, owned) = (self.kept.clone(), name.to_owned());
        let found = blocking(move || kept.save(&owned, &pem)).await?.map_err(Failure::of_name)?;
        Ok(Outcome::Have { found, ordered: true })
    }

    /// Stores failed attempts, so that a restart does not reset them.
    async fn note(&self, name: &str, failures: u32, failure: &Failure) {
        if failure.whose != FailureScope::Name {
            return;
        }
        let failures = failures.saturating_add(1);
        let pause = plan::pause(self.options.retry, self.options.retry_most, failures);
        let now = SystemTime::now();
        let next = failure.not_before.map_or(now + pause, |not_before| not_before.max(now + pause));
        let seconds = crate::acme::report::seconds;
        let attempts = Attempts { failures, last: seconds(now), next: seconds(next), error: failure.message.clone() };
        let (kept, owned) = (self.kept.clone(), name.to_owned());
        let _ = spawn_blocking(move || kept.note(&owned, &attempts)).await;
    }

    async fn inquire(&self, certificate: &CertificateDer<'_>) -> Outcome {
        let now = SystemTime::now();
        let later = Outcome::NoWindow { ask_at: Some(now + RENEWAL_INFO_RETRY.mul_f64(0.5 + fastrand::f64())) };
        let Ok(id) = CertificateIdentifier::try_from(certificate) else { return Outcome::NoWindow { ask_at: None } };
        let Ok((_, account)) = self.access().await else { return later };
        match account.renewal_info(&id).await {
            Ok((info, again)) => {
                let window = &info.suggested_window;
                let renew_at = plan::within(window.start.into(), window.end.into());
                let ask_at = now + again.clamp(RENEWAL_INFO_INTERVAL.0, RENEWAL_INFO_INTERVAL.1);
                Outcome::Window { renew_at, ask_at }
            }
            Err(Error::Unsupported(_)) => Outcome::NoWindow { ask_at: None },
            Err(error) => {
                tracing::debug!("no renewal time from the authority: {}", chain(&error));
                later
            }
        }
    }

    /// The client; its creation reads the system's root certificates.
    async fn client(&self) -> Result<Client, Failure> {
        let mut client = self.client.lock().await;
        if let Some(client) = &*client {
            return Ok(client.clone());
        }
        let ca_file = self.options.ca_file.clone();
        let made = blocking(move || Client::new(ca_file.as_deref())).await?.map_err(Failure::of_authority)?;
        Ok(client.insert(made).clone())
    }

    async fn access(&self) -> Result<(Client, Account), Failure> {
        let client = self.client().await?;
        let mut access = self.access.lock().await;
        if let Some(access) = &*access {
            return Ok(access.clone());
        }
        let opened = account::open(&self.storage, &client, &self.options).await;
        let account = match opened {
            Ok(account) => account,
            Err(failure) => {
                drop(access);
                self.lose_access(&failure).await;
                return Err(failure);
            }
        };
        Ok(access.insert((client, account)).clone())
    }

    /// Makes the next order fetch the authority's directory again, with another account if necessary.
    async fn lose_access(&self, failure: &Failure) {
        match failure.whose {
            FailureScope::Name => {}
            FailureScope::Authority => *self.access.lock().await = None,
            FailureScope::Account => {
                account::forget(&self.storage).await;
                *self.access.lock().await = None;
            }
        }
    }
}
