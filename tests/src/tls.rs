//! TLS for the harness: certificates for servers under test, and a client that trusts every certificate. It detects
//! truncated connections: only a `close_notify` is a proper end.

use howdah_trusting::Trusting;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType, IsCa, KeyPair, SerialNumber,
};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, StreamOwned};
use std::fs;
use std::io::{self, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, LazyLock};

pub(crate) type TlsStream = StreamOwned<ClientConnection, TcpStream>;

/// True if scenarios that do not decide this themselves run over TLS (`HOWDAH_TEST_TLS=1`).
pub(crate) fn is_asked_for() -> bool {
    std::env::var_os("HOWDAH_TEST_TLS").is_some_and(|value| value != "0")
}

#[derive(Debug, Clone)]
pub struct Certificate {
    pub cert: PathBuf,
    pub key: PathBuf,
}

impl Certificate {
    /// The certificate as an entry of `tls.certificates`.
    pub fn setting(&self) -> String {
        format!("{{ cert = {:?}, key = {:?} }}", self.cert.display().to_string(), self.key.display().to_string())
    }
}

/// Creates a self-signed certificate for these names, in files that begin with `stem`. Existing files are replaced as
/// tools do it: one after the other, each atomically.
pub fn certificate(dir: &Path, stem: &str, names: &[&str]) -> Certificate {
    let names: Vec<String> = names.iter().map(ToString::to_string).collect();
    make(dir, stem, &names, false)
}

fn make(dir: &Path, stem: &str, names: &[String], expired: bool) -> Certificate {
    let key = KeyPair::generate().unwrap_or_else(|e| panic!("{e}"));
    let mut params = CertificateParams::new(names).unwrap_or_else(|e| panic!("{e}"));
    if expired {
        (params.not_before, params.not_after) = (rcgen::date_time_ymd(2001, 1, 1), rcgen::date_time_ymd(2002, 1, 1));
    }
    let made = params.self_signed(&key).unwrap_or_else(|e| panic!("{e}"));
    let files = Certificate { cert: dir.join(format!("{stem}.pem")), key: dir.join(format!("{stem}.key")) };
    for (path, content) in [(&files.key, key.serialize_pem()), (&files.cert, made.pem())] {
        let beside = path.with_extension("new");
        fs::write(&beside, content).unwrap_or_else(|e| panic!("{}: {e}", beside.display()));
        rustix::fs::chmod(&beside, rustix::fs::Mode::from_raw_mode(0o600)).unwrap_or_else(|e| panic!("{e}"));
        fs::rename(&beside, path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    }
    files
}

/// The bytes of a key in PEM.
pub fn key_bytes(pem: &str) -> Vec<u8> {
    let key = PrivateKeyDer::from_pem_slice(pem.as_bytes()).unwrap_or_else(|e| panic!("{e}"));
    key.secret_der().to_vec()
}

/// The certificates of a site.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    /// Prefixes of the files' names, each with the names in its certificate.
    pub(crate) names: Vec<(String, Vec<String>)>,
    pub(crate) expired: bool,
    /// `tls.client_auth`.
    pub(crate) clients: Option<String>,
}

impl Default for Plan {
    fn default() -> Self {
        Self { names: vec![("site".to_owned(), vec!["localhost".to_owned()])], expired: false, clients: None }
    }
}

impl Plan {
    /// Creates the certificates in the site's directory and returns the settings for `howdah.toml`.
    pub(crate) fn settings(&self, top: &Path) -> Vec<String> {
        let made = self.names.iter().map(|(stem, names)| make(top, stem, names, self.expired).setting());
        let mut lines = vec![format!("tls.certificates = [{}]", made.collect::<Vec<_>>().join(", "))];
        if let Some(auth) = &self.clients {
            let ca = authority(top, "clients").ca;
            lines.extend([
                format!("tls.client_auth = {auth:?}"),
                format!("tls.client_ca = {:?}", ca.display().to_string()),
            ]);
        }
        lines
    }
}

/// Configuration of a client that trusts every certificate and speaks this protocol.
pub(crate) fn client_config(protocol: &[u8]) -> ClientConfig {
    let mut config = ClientConfig::clone(&CONFIG);
    config.alpn_protocols = vec![protocol.to_vec()];
    config
}

/// Begins TLS; the handshake happens with the first byte that is written or read.
pub(crate) fn begin(stream: TcpStream, protocol: &[u8]) -> io::Result<TlsStream> {
    let config = client_config(protocol);
    let name = ServerName::try_from("localhost").map_err(io::Error::other)?;
    let session = ClientConnection::new(Arc::new(config), name).map_err(io::Error::other)?;
    Ok(StreamOwned::new(session, stream))
}

static CONFIG: LazyLock<ClientConfig> = LazyLock::new(|| {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(provider.clone()).with_safe_default_protocol_versions();
    let builder = builder.unwrap_or_else(|e| panic!("{e}")).dangerous();
    builder.with_custom_certificate_verifier(Trusting::new(provider)).with_no_client_auth()
});

/// An authority with the certificate of a client whose subject is `CN=Ann,O=Smith\, Sons`.
#[derive(Debug)]
pub struct Authority {
    pub ca: PathBuf,
    pub client: Certificate,
}

/// Creates an authority, in files that begin with `stem`.
pub fn authority(dir: &Path, stem: &str) -> Authority {
    let failed = |e: rcgen::Error| -> ! { panic!("{e}") };
    let new_key = || KeyPair::generate().unwrap_or_else(|e| failed(e));
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, "Test CA");
    let ca = CertifiedIssuer::self_signed(params, new_key()).unwrap_or_else(|e| failed(e));
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::OrganizationName, "Smith, Sons");
    params.distinguished_name.push(DnType::CommonName, "Ann");
    params.serial_number = Some(SerialNumber::from(vec![0x0a, 0xbc]));
    let key = new_key();
    let made = params.signed_by(&key, &ca).unwrap_or_else(|e| failed(e));
    let path = |ending: &str| dir.join(format!("{stem}{ending}"));
    let authority = Authority { ca: path("-ca.pem"), client: Certificate { cert: path(".pem"), key: path(".key") } };
    for (path, content) in
        [(&authority.ca, ca.pem()), (&authority.client.cert, made.pem()), (&authority.client.key, key.serialize_pem())]
    {
        fs::write(path, content).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    }
    authority
}

/// Output of `openssl s_client` with these arguments and this input; it closes the connection properly after that.
pub fn s_client(port: u16, arguments: &[&str], input: &[u8]) -> String {
    let mut child = Command::new("openssl")
        .args(["s_client", "-connect", &format!("127.0.0.1:{port}")])
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|e| panic!("cannot run openssl: {e}"));
    let mut stdin = child.stdin.take().unwrap_or_else(|| unreachable!());
    // The process may have ended already.
    let _ = stdin.write_all(input);
    drop(stdin);
    let output = child.wait_with_output().unwrap_or_else(|e| panic!("openssl: {e}"));
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    text(&output.stdout) + &text(&output.stderr)
}
