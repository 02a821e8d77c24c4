//! Pebble, the ACME test server, with its own DNS server that resolves every name to this machine. It is a real
//! authority that refuses everything that RFC 8555 forbids. `scripts/pebble.sh` builds both.

use crate::process::{PATIENCE, eventually};
use crate::site::Port;
use crate::tls::{Certificate, certificate};
use serde_json::{Value, json};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

/// Directory of the programs. Tests that need them are skipped if they are missing.
///
/// # Errors
/// The programs were not built.
pub fn programs() -> Result<PathBuf, String> {
    let target = std::env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../target"), PathBuf::from);
    let dir = target.join("pebble");
    match dir.join("pebble").exists() {
        true => Ok(dir),
        false => Err("Pebble is not built: run scripts/pebble.sh, which needs Go and a network".to_owned()),
    }
}

/// Settings that differ from Pebble's defaults.
#[derive(Debug, Clone, Default)]
pub struct Pebble {
    /// Percentage of nonces that are refused.
    pub nonce_reject: u32,
    /// Validity of certificates in seconds; 0 for a long time.
    pub validity: u64,
    /// True if accounts need external binding: `kid-1` with `Pebble::EAB_KEY`.
    pub external_account: bool,
}

#[derive(Debug)]
pub struct Authority {
    pebble: Option<Child>,
    dns: Child,
    arguments: (PathBuf, Pebble),
    own: Certificate,
    directory: TempDir,
    listen: Port,
    management: Port,
    /// Ports on which it validates names: plain, and with TLS.
    pub http_port: u16,
    pub tls_port: u16,
    dns_port: u16,
    _held: Vec<Port>,
}

impl Pebble {
    pub const EAB_KEY: &'static str = "zWNDZM6eQGHWpSRTPal5eIUYFTu7EajVIoguysqZ9wG44nMEtx3MUAsUDkMTQ12W";

    /// Starts Pebble. It validates names on these ports of this machine.
    #[must_use]
    pub fn start(self, http_port: u16, tls_port: u16) -> Authority {
        let programs = programs().unwrap_or_else(|why| panic!("{why}"));
        let directory = tempfile::Builder::new().prefix("howdah-pebble-").tempdir();
        let directory = directory.unwrap_or_else(|e| panic!("tempdir: {e}"));
        // For Pebble's own server; no other authority issues a certificate for it.
        let own = certificate(directory.path(), "own", &["localhost"]);
        let (dns_port, dns_management) = (Port::hold(), Port::hold());
        let mut dns = command(&programs.join("pebble-challtestsrv"), directory.path());
        dns.args(["-http01", "", "-https01", "", "-tlsalpn01", "", "-doh", "", "-defaultIPv6", ""]);
        dns.arg("-dnsserver").arg(format!("127.0.0.1:{}", dns_port.number));
        dns.arg("-management").arg(format!("127.0.0.1:{}", dns_management.number));
        let dns = dns.spawn().unwrap_or_else(|e| panic!("{e}"));
        let mut authority = Authority {
            pebble: None,
            dns,
            arguments: (programs, self),
            own,
            directory,
            listen: Port::hold(),
            management: Port::hold(),
            http_port,
            tls_port,
            dns_port: dns_port.number,
            _held: vec![dns_port, dns_management],
        };
        authority.go_on();
        authority
    }
}

impl Authority {
    /// URL of its ACME directory.
    pub fn directory(&self) -> String {
        format!("https://localhost:{}/dir", self.listen.number)
    }

    /// The authority that issued its server's certificate.
    pub fn ca_file(&self) -> PathBuf {
        self.own.cert.clone()
    }

    /// Settings of `[acme]` for this authority; they need `Setup::time("acme.retry", "5s")`.
    pub fn settings(&self) -> Vec<(String, String)> {
        let text = |text: &str| format!("{text:?}");
        [("acme.directory", text(&self.directory())), ("acme.ca_file", text(&self.ca_file().display().to_string()))]
            .map(|(key, value)| (key.to_owned(), value))
            .to_vec()
    }

    /// Stops Pebble; it loses all its state.
    pub fn go_down(&mut self) {
        if let Some(mut pebble) = self.pebble.take() {
            let _ = pebble.kill();
            let _ = pebble.wait();
        }
    }

    pub fn go_on(&mut self) {
        self.go_down();
        let (programs, pebble) = &self.arguments;
        let config = self.directory.path().join("config.json");
        let eab = if pebble.external_account { json!({"kid-1": Pebble::EAB_KEY}) } else { json!({}) };
        let validity = if pebble.validity > 0 { pebble.validity } else { 90 * 86400 };
        let settings = json!({"pebble": {
            "listenAddress": format!("127.0.0.1:{}", self.listen.number),
            "managementListenAddress": format!("127.0.0.1:{}", self.management.number),
            "certificate": self.own.cert,
            "privateKey": self.own.key,
            "httpPort": self.http_port,
            "tlsPort": self.tls_port,
            "ocspResponderURL": "",
            "externalAccountBindingRequired": pebble.external_account,
            "externalAccountMACKeys": eab,
            "retryAfter": {"authz": 1, "order": 1},
            "profiles": {
                "default": {"description": "as usual", "validityPeriod": validity},
                "brief": {"description": "not for long", "validityPeriod": 3600},
            },
        }});
        std::fs::write(&config, settings.to_string()).unwrap_or_else(|e| panic!("{e}"));
        let mut command = command(&programs.join("pebble"), self.directory.path());
        command.arg("-config").arg(config).arg("-dnsserver").arg(format!("127.0.0.1:{}", self.dns_port));
        command.env("PEBBLE_VA_NOSLEEP", "1").env("PEBBLE_AUTHZREUSE", "0");
        command.env("PEBBLE_WFE_NONCEREJECT", pebble.nonce_reject.to_string());
        self.pebble = Some(command.spawn().unwrap_or_else(|e| panic!("{e}")));
        let answers = || curl(&["--cacert", &self.ca_file().display().to_string(), &self.directory()]).is_some();
        assert!(eventually(PATIENCE, answers), "Pebble does not start:\n{}", self.log());
    }

    pub fn log(&self) -> String {
        std::fs::read_to_string(self.directory.path().join("pebble.log")).unwrap_or_default()
    }

    /// Number of certificates that it has issued.
    pub fn issued(&self) -> usize {
        self.log().matches("Issued certificate serial").count()
    }

    /// The certificate that signs all others; no client trusts it.
    pub fn root(&self) -> String {
        let url = format!("https://localhost:{}/roots/0", self.management.number);
        curl(&["--insecure", &url]).unwrap_or_else(|| panic!("no root"))
    }

    /// Sets the time at which this certificate should be renewed (ARI).
    pub fn set_renewal(&self, certificate: &str, from: &str, until: &str) {
        let window = json!({"suggestedWindow": {"start": from, "end": until}}).to_string();
        let body = json!({"certificate": certificate, "ariResponse": window}).to_string();
        let url = format!("https://localhost:{}/set-renewal-info/", self.management.number);
        let sent = curl(&["--insecure", "--data", &body, &url]);
        assert!(sent.is_some(), "Pebble takes no renewal info:\n{}", self.log());
    }
}

impl Drop for Authority {
    fn drop(&mut self) {
        self.go_down();
        let _ = self.dns.kill();
        let _ = self.dns.wait();
    }
}

fn command(program: &Path, directory: &Path) -> Command {
    let name = program.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let log = File::options().create(true).append(true).open(directory.join(format!("{name}.log")));
    let log = log.unwrap_or_else(|e| panic!("{e}"));
    let errors = log.try_clone().unwrap_or_else(|e| panic!("{e}"));
    // If the test itself is killed, these processes are killed too.
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "--"]).arg(program).stdin(Stdio::null()).stdout(log).stderr(errors);
    command
}

/// The body of curl's response; `None` unless the status is 2xx.
pub fn curl(arguments: &[&str]) -> Option<String> {
    let output = Command::new("curl").args(["-sSf", "--max-time", "20"]).args(arguments).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

/// A name's entry in `howdah status --json`.
pub fn certificate_of(status: &Value, name: &str) -> Value {
    let all = status["certificates"].as_array().cloned().unwrap_or_default();
    all.into_iter().find(|one| one["name"] == name).unwrap_or(Value::Null)
}
