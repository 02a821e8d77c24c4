//! A Prometheus that scrapes a server. It comes from Debian's package, which `scripts/unpack-package.sh` unpacks.

use crate::pebble::curl;
use crate::process::{PATIENCE, eventually};
use crate::site::Port;
use serde_json::Value;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

/// The alert rules in our package; every Prometheus of the tests loads them.
const ALERTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../packaging/monitoring/alerts.yml");

#[derive(Debug)]
pub struct Prometheus {
    server: Child,
    port: Port,
    directory: TempDir,
}

impl Prometheus {
    /// Path of the program. Tests that need it are skipped if it is missing.
    pub fn program() -> Option<PathBuf> {
        crate::fronts::unpacked("prometheus/prometheus")
    }

    /// Starts Prometheus, which scrapes an admin address of this machine twice a second, including exemplars.
    pub fn start(program: &Path, admin: u16) -> Self {
        let settings = format!(
            "global: {{ scrape_interval: 500ms, scrape_timeout: 500ms }}\n\
             rule_files: [{ALERTS}]\n\
             scrape_configs: [{{ job_name: howdah, static_configs: [{{ targets: ['127.0.0.1:{admin}'] }}] }}]\n"
        );
        Self::with(program, &settings)
    }

    /// Starts Prometheus with a file of settings.
    pub fn with(program: &Path, settings: &str) -> Self {
        let directory = tempfile::Builder::new().prefix("howdah-prometheus-").tempdir();
        let directory = directory.unwrap_or_else(|e| panic!("tempdir: {e}"));
        let port = Port::hold();
        let file = |name: &str| directory.path().join(name);
        std::fs::write(file("prometheus.yml"), settings).unwrap_or_else(|e| panic!("{e}"));
        let log = File::create(file("log")).unwrap_or_else(|e| panic!("{e}"));
        // If the test itself is killed, this process is killed too.
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "--"]).arg(program);
        command.arg(format!("--config.file={}", file("prometheus.yml").display()));
        command.arg(format!("--storage.tsdb.path={}", file("data").display()));
        command.arg(format!("--web.listen-address=127.0.0.1:{}", port.number));
        command.arg("--enable-feature=exemplar-storage").current_dir(directory.path());
        let server = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn();
        let server = server.unwrap_or_else(|e| panic!("{e}"));
        let started = Self { server, port, directory };
        let is_ready = || curl(&[&started.url("/-/ready")]).is_some();
        assert!(eventually(PATIENCE, is_ready), "Prometheus does not start:\n{}", started.log());
        started
    }

    fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port.number)
    }

    /// The log and the targets, for the message of a failed test.
    pub fn log(&self) -> String {
        let log = std::fs::read_to_string(self.directory.path().join("log")).unwrap_or_default();
        let targets = curl(&[&self.url("/api/v1/targets")]).unwrap_or_default();
        format!("{log}\n{targets}")
    }

    /// The current value of an expression with one series, if there is one.
    pub fn value(&self, expression: &str) -> Option<f64> {
        let query = format!("query={expression}");
        let found = curl(&["--get", "--data-urlencode", &query, &self.url("/api/v1/query")])?;
        let found: Value = serde_json::from_str(&found).ok()?;
        let series = found["data"]["result"].as_array()?;
        assert!(series.len() < 2, "{expression}: {found}");
        series.first()?["value"][1].as_str()?.parse().ok()
    }

    /// Response of the API to a path with parameters.
    pub fn ask(&self, path: &str, parameters: &[&str]) -> Value {
        let mut arguments = vec!["--get"];
        arguments.extend(parameters.iter().flat_map(|parameter| ["--data-urlencode", parameter]));
        let url = self.url(path);
        arguments.push(&url);
        curl(&arguments).and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default()
    }

    /// Exemplars of a series in the last hour.
    pub fn exemplars(&self, series: &str) -> String {
        let query = format!("query={series}");
        let now = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default().as_secs();
        let range = format!("/api/v1/query_exemplars?start={}&end={}", now - 3600, now + 60);
        curl(&["--get", "--data-urlencode", &query, &self.url(&range)]).unwrap_or_default()
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}
