//! The certificate of every system: ECDSA with P-256, issued by an authority that is created with it and whose key is
//! discarded.

use std::fs;
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, SanType};

/// The server name that clients request.
pub const NAME: &str = "localhost";

/// The certificate's files.
#[derive(Debug, Clone)]
pub struct Certificate {
    /// PEM file for servers.
    pub chain: PathBuf,
    pub key: PathBuf,
    /// PEM file with the authority's certificate, for clients.
    pub authority: PathBuf,
}

impl Certificate {
    /// Creates a certificate in a separate directory.
    pub fn make(dir: &Path) -> Result<Self> {
        fs::create_dir_all(dir)?;
        let mut authority = CertificateParams::new(Vec::new())?;
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        authority.distinguished_name.push(DnType::CommonName, "howdah-lab");
        let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate()?)?;
        let mut params = CertificateParams::new(vec![NAME.to_owned()])?;
        params.subject_alt_names.push(SanType::IpAddress(IpAddr::V4(Ipv4Addr::LOCALHOST)));
        let key = KeyPair::generate()?;
        let made = params.signed_by(&key, &authority)?;
        let files = Self {
            chain: dir.join("certificate.pem"),
            key: dir.join("certificate.key"),
            authority: dir.join("authority.pem"),
        };
        for (path, content) in
            [(&files.chain, made.pem()), (&files.key, key.serialize_pem()), (&files.authority, authority.pem())]
        {
            fs::write(path, content).with_context(|| format!("cannot write {}", path.display()))?;
        }
        Ok(files)
    }
}
