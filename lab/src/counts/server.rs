//! The server that is counted, alone or under a tool.

use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::{Case, ROOT, client};
use crate::guard::{Guarded, Launch};
use crate::sample::proc_tree;
use crate::systems::howdah::{self, Mode};
use crate::systems::program;

/// Maximum time until a server responds; under callgrind it starts slowly.
const START: Duration = Duration::from_secs(60);
const GRACE: Duration = Duration::from_secs(10);

pub(super) struct Server {
    guarded: Guarded,
    pub(super) address: SocketAddr,
}

impl Server {
    /// Starts the server under `tool`, a program with its arguments, or alone, and waits for its first response.
    pub(super) fn start(case: &Case, app: &Path, tool: &[String]) -> Result<Self> {
        let binary = howdah::server().context("no howdah: make build, or set HOWDAH")?;
        let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
        let mut words: Vec<String> = tool.to_vec();
        words.push(binary.display().to_string());
        let (address_text, admin) = (address.to_string(), format!("unix:{}", app.join("admin.sock").display()));
        let root = app.join(ROOT);
        let app_text = root.display().to_string();
        let fixed =
            ["serve", &app_text, "--listen", &address_text, "--admin", &admin, "--workers", "1", "--set", "threads=1"];
        words.extend(fixed.map(str::to_owned));
        words.extend(["--mode".to_owned(), case.mode.name().to_owned()]);
        let script = match case.mode {
            Mode::Classic => None,
            Mode::Worker | Mode::Snapshot => Some(root.join("worker.php")),
            Mode::Async => Some(app.join("async.php")),
        };
        words.extend(case.flags.iter().map(|&flag| flag.to_owned()));
        if let Some(script) = script {
            words.extend(["--script".to_owned(), script.display().to_string()]);
        }
        let first = words.remove(0);
        let launch = Launch {
            program: program(&first).unwrap_or_else(|| first.into()),
            arguments: words,
            environment: vec![("HOWDAH_ALLOW_ROOT".into(), "true".into()), ("LAB_WORKERS".into(), "1".into())],
            directory: app.to_owned(),
            log: app.join("log"),
        };
        let server = Self { guarded: Guarded::start(&launch)?, address };
        let end = Instant::now() + START;
        while let Err(error) = client::ask(address, case, 1) {
            if Instant::now() > end || server.guarded.exited().is_some() {
                let log = std::fs::read_to_string(&server.guarded.log).unwrap_or_default();
                let last = log.lines().last().unwrap_or_default();
                bail!("{} does not answer: {error:#}; its log ends with: {last}", server.guarded.line);
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(server)
    }

    /// Returns the process of the server (or of the tool that it runs in), and all others.
    pub(super) fn processes(&self) -> Result<(u32, Vec<u32>)> {
        let all = proc_tree::descendants(self.guarded.root());
        let (first, others) = all.split_first().context("the server has ended")?;
        Ok((*first, others.to_vec()))
    }

    pub(super) fn stop(mut self) -> Result<()> {
        self.guarded.stop(GRACE)
    }
}
