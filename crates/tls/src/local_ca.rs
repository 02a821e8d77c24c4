//! The server's local CA, for names that no public authority can verify: `localhost`, `shop.test`, `10.0.0.5`. It is
//! created on first use and kept in the state directory. Machines that install it (`howdah trust`) trust its
//! certificates.
//!
//! Its name constraints permit only private names: clients that enforce them reject a certificate for a public site,
//! even if the key was stolen.

use crate::acme::{NameReport, Report};
use crate::certificate::Certificate;
use crate::names::{PRIVATE_NETWORKS, PRIVATE_SUFFIXES};
use crate::store::Store;
use howdah_store::StateDir;
use rcgen::{
    BasicConstraints, CertificateParams, CidrSubnet, DistinguishedName, DnType, ExtendedKeyUsagePurpose,
    GeneralSubtree, IsCa, Issuer, KeyPair, KeyUsagePurpose, NameConstraints,
};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use time::OffsetDateTime;
use tokio::task::AbortHandle;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::{FromDer, X509Certificate};

const CERTIFICATE: &str = "ca.pem";
const KEY: &str = "ca.key";
/// Its directory within the state directory.
const DIRECTORY: &str = "local-ca";
const LOCK: &str = "lock";
/// Lifetime of the local CA: long, because each new one has to be installed again.
const CA_LIFE: Duration = Duration::from_secs(10 * 365 * 86400);
/// Remaining lifetime at which a new local CA is created.
const CA_LEFT: Duration = Duration::from_secs(90 * 86400);
/// Lifetime of the certificates it signs. Some clients refuse more than 398 days; a few weeks suffice, since a new
/// certificate costs nothing.
const LEAF_LIFE: Duration = Duration::from_secs(30 * 86400);
/// Certificates are backdated by this time, for clients whose clocks are slow.
const BACKDATED: Duration = Duration::from_secs(3600);
/// Common name of the local CA, which trust stores show.
const COMMON_NAME: &str = "Howdah local CA";

/// The local authority.
#[derive(Debug)]
pub struct LocalCa {
    pem: String,
    certificate: CertificateDer<'static>,
    issuer: Issuer<'static, KeyPair>,
    path: PathBuf,
}

/// Reason why the local CA or its certificate is not available.
#[derive(Debug, thiserror::Error)]
pub enum LocalCaError {
    /// The directory cannot be used.
    #[error("no local CA in {}: its directory cannot be read or written", path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// The stored authority is invalid.
    #[error("the local CA in {} cannot be used: {why}; remove the directory, then `howdah trust` installs a new one", path.display())]
    Broken {
        /// The directory.
        path: PathBuf,
        /// The problem.
        why: String,
    },
    /// The authority of a server may not be trusted.
    #[error("the server's local CA cannot be trusted: {0}")]
    Untrusted(&'static str),
    /// A key or certificate could not be created.
    #[error("the local CA cannot sign: {0}")]
    Signing(String),
}

fn unusable(path: PathBuf) -> impl Fn(std::io::Error) -> LocalCaError {
    move |source| LocalCaError::Directory { path: path.clone(), source }
}

impl From<rcgen::Error> for LocalCaError {
    fn from(error: rcgen::Error) -> Self {
        Self::Signing(error.to_string())
    }
}

impl LocalCa {
    /// Opens the local CA in the state directory. Creates one if there is none or the existing one expires soon.
    ///
    /// # Errors
    /// The local CA can be neither read nor created.
    pub fn open(state: &StateDir) -> Result<Self, LocalCaError> {
        let unusable = unusable(state.path(DIRECTORY));
        let dir = state.below(DIRECTORY).map_err(&unusable)?;
        let _lock = dir.lock(LOCK).map_err(&unusable)?;
        let read = |file| dir.read(file).map_err(&unusable);
        if let (Some(certificate), Some(key)) = (read(CERTIFICATE)?, read(KEY)?) {
            let broken = |why: String| LocalCaError::Broken { path: dir.path(""), why };
            let (ca, until) = Self::read(certificate, &key, dir.path(CERTIFICATE)).map_err(broken)?;
            if until > SystemTime::now() + CA_LEFT {
                return Ok(ca);
            }
            tracing::warn!("the local CA expires soon: creating a new one; install it with `howdah trust`");
        }
        Self::make(&dir)
    }

    fn read(certificate: Vec<u8>, key: &[u8], path: PathBuf) -> Result<(Self, SystemTime), String> {
        let pem = String::from_utf8(certificate).map_err(|error| error.to_string())?;
        let key_path = path.with_file_name(KEY);
        let loaded = Certificate::from_pem(pem.as_bytes(), key, &path, &key_path).map_err(|error| error.to_string())?;
        let until = SystemTime::UNIX_EPOCH + Duration::from_secs(loaded.not_after);
        let key = std::str::from_utf8(key).map_err(|error| error.to_string())?;
        let key = KeyPair::from_pem(key).map_err(|error| error.to_string())?;
        let issuer = Issuer::from_ca_cert_pem(&pem, key).map_err(|error| error.to_string())?;
        let certificate = CertificateDer::from_pem_slice(pem.as_bytes()).map_err(|error| error.to_string())?;
        Ok((Self { pem, certificate, issuer, path }, until))
    }

    fn make(dir: &StateDir) -> Result<Self, LocalCaError> {
        let key = KeyPair::generate()?;
        let mut params = CertificateParams::new(Vec::new())?;
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, COMMON_NAME);
        params.distinguished_name.push(DnType::OrganizationName, host);
        (params.not_before, params.not_after) = validity(CA_LIFE);
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        params.name_constraints = Some(private_names_only());
        let certificate = params.self_signed(&key)?;
        let pem = certificate.pem();
        // Writes the key first: a certificate without its key would be useless.
        let write = |file, text: &str| dir.write(file, text.as_bytes()).map_err(unusable(dir.path("")));
        write(KEY, &key.serialize_pem())?;
        write(CERTIFICATE, &pem)?;
        let path = dir.path(CERTIFICATE);
        tracing::info!("created a local CA in {}: install it with `howdah trust`", path.display());
        let certificate = certificate.der().clone();
        Ok(Self { issuer: Issuer::new(params, key), certificate, pem, path })
    }

    /// The CA certificate in PEM.
    pub fn pem(&self) -> &str {
        &self.pem
    }

    /// The path of the CA certificate.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Signs a new certificate for these names and addresses.
    ///
    /// # Errors
    /// A name is invalid.
    pub fn certificate(&self, names: &[String]) -> Result<Certificate, LocalCaError> {
        let key = KeyPair::generate()?;
        let mut params = CertificateParams::new(names)?;
        params.distinguished_name = DistinguishedName::new();
        (params.not_before, params.not_after) = validity(LEAF_LIFE);
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.use_authority_key_identifier_extension = true;
        let leaf = params.signed_by(&key, &self.issuer)?;
        let chain = vec![leaf.der().clone(), self.certificate.clone()];
        let key = PrivateKeyDer::Pkcs8(key.serialize_der().into());
        Certificate::new(chain, &key, &self.path, &self.path).map_err(|error| LocalCaError::Signing(error.to_string()))
    }
}

fn validity(life: Duration) -> (OffsetDateTime, OffsetDateTime) {
    let now = SystemTime::now();
    ((now - BACKDATED).into(), (now + life).into())
}

/// Name constraints (RFC 5280 section 4.2.1.10). A name permits itself and all its subdomains.
fn private_names_only() -> NameConstraints {
    let names = PRIVATE_SUFFIXES.iter().map(|suffix| GeneralSubtree::DnsName((*suffix).to_owned()));
    let networks = PRIVATE_NETWORKS
        .iter()
        .map(|(address, prefix)| GeneralSubtree::IpAddress(CidrSubnet::from_addr_prefix(*address, *prefix)));
    NameConstraints { permitted_subtrees: names.chain(networks).collect(), excluded_subtrees: Vec::new() }
}

/// Verifies that a CA certificate is limited to private names.
///
/// # Errors
/// The reason why it is not.
pub fn check_private_only(pem: &str) -> Result<(), LocalCaError> {
    let wrong = |why| Err(LocalCaError::Untrusted(why));
    let mut certificates = CertificateDer::pem_slice_iter(pem.as_bytes());
    let (Some(Ok(der)), None) = (certificates.next(), certificates.next()) else {
        return wrong("it is not one certificate in PEM");
    };
    let Ok((_, parsed)) = X509Certificate::from_der(&der) else { return wrong("it is not a certificate") };
    let Ok(Some(constraints)) = parsed.name_constraints() else {
        return wrong("it could certify any name");
    };
    let permitted: Vec<_> = constraints.value.permitted_subtrees.iter().flatten().collect();
    let is_private = |subtree: &&x509_parser::extensions::GeneralSubtree<'_>| match &subtree.base {
        GeneralName::DNSName(name) => PRIVATE_SUFFIXES.contains(name),
        GeneralName::IPAddress(bytes) => PRIVATE_NETWORKS.iter().any(|(address, prefix)| {
            let own = match CidrSubnet::from_addr_prefix(*address, *prefix) {
                CidrSubnet::V4(address, mask) => [&address[..], &mask[..]].concat(),
                CidrSubnet::V6(address, mask) => [&address[..], &mask[..]].concat(),
            };
            own == *bytes
        }),
        _ => false,
    };
    // A name type without constraints is unrestricted (RFC 5280 section 4.2.1.10).
    let has = |kind: fn(&GeneralName<'_>) -> bool| permitted.iter().any(|subtree| kind(&subtree.base));
    let both =
        has(|name| matches!(name, GeneralName::DNSName(_))) && has(|name| matches!(name, GeneralName::IPAddress(_)));
    match both && permitted.iter().all(is_private) {
        true => Ok(()),
        false => wrong("it could certify names that are not private"),
    }
}

/// Serves a certificate for these names, with `is_default` also to clients with unknown names if the settings name no
/// certificate files for the whole server, and renews it until the task is aborted. Call it within a runtime.
///
/// # Errors
/// The first certificate cannot be created.
pub fn serve(
    ca: LocalCa,
    names: Vec<String>,
    is_default: bool,
    store: Arc<Store>,
    report: Arc<Report>,
) -> Result<AbortHandle, LocalCaError> {
    let renew = move || renew(&ca, &names, is_default, &store, &report);
    let mut until = renew()?;
    let renewing = tokio::spawn(async move {
        loop {
            let left = until.duration_since(SystemTime::now()).unwrap_or_default();
            // Sleeps in small steps, because timers do not count the time a machine is suspended.
            if left > LEAF_LIFE / 3 {
                tokio::time::sleep(Duration::from_secs(3600)).await;
                continue;
            }
            match renew() {
                Ok(new) => until = new,
                Err(error) => {
                    tracing::error!("{error}; next attempt in an hour");
                    tokio::time::sleep(Duration::from_secs(3600)).await;
                }
            }
        }
    });
    Ok(renewing.abort_handle())
}

fn renew(
    ca: &LocalCa,
    names: &[String],
    is_default: bool,
    store: &Store,
    report: &Report,
) -> Result<SystemTime, LocalCaError> {
    let certificate = ca.certificate(names)?;
    store.insert([&certificate]);
    if is_default {
        store.set_default(Some(&certificate));
    }
    for name in names {
        let (until, life) = (certificate.not_after, LEAF_LIFE.as_secs());
        let next = Some(until.saturating_sub(life / 3));
        report.set(NameReport {
            name: name.clone(),
            source: "local",
            until: Some(until),
            next,
            ..NameReport::default()
        });
    }
    Ok(SystemTime::UNIX_EPOCH + Duration::from_secs(certificate.not_after))
}
