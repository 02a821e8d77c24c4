//! Counts system calls by name, of the server and of PHP's processes.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};

use super::server::Server;
use super::{COUNTED, Case, WARM, client};

/// Minimum calls per request that are listed by name; rarer ones come from the server's timers.
const SHOWN: f64 = 0.05;

pub(super) struct Calls {
    pub(super) server: f64,
    pub(super) php: f64,
}

/// Returns the calls of a request of the case, and a line for each process.
pub(super) fn count(case: &Case, app: &Path) -> Result<(Calls, Vec<String>)> {
    let server = Server::start(case, app, &[])?;
    client::ask(server.address, case, WARM)?;
    let (front, others) = server.processes()?;
    let traces = tempfile::tempdir()?;
    let mut tool = attach(&[&[front], others.as_slice()].concat(), traces.path())?;
    client::ask(server.address, case, COUNTED)?;
    // On this signal strace detaches, and the traced processes continue.
    kill_process(Pid::from_child(&tool), Signal::INT)?;
    tool.wait()?;
    let threads: Vec<u32> = fs::read_dir(format!("/proc/{front}/task"))?
        .filter_map(|task| task.ok()?.file_name().to_str()?.parse().ok())
        .collect();
    server.stop()?;
    let (mut of_server, mut of_php) = (BTreeMap::new(), BTreeMap::new());
    for trace in fs::read_dir(traces.path())? {
        let path = trace?.path();
        let thread = path.extension().and_then(|pid| pid.to_str()?.parse::<u32>().ok());
        let into = if thread.is_some_and(|thread| threads.contains(&thread)) { &mut of_server } else { &mut of_php };
        read(&path, into)?;
    }
    let (server, php) = (per_request(&of_server), per_request(&of_php));
    let lines = vec![line("server", &of_server), line("PHP", &of_php)];
    Ok((Calls { server, php }, lines))
}

/// Starts strace on these processes and waits until all are attached.
fn attach(processes: &[u32], traces: &Path) -> Result<Child> {
    let mut command = Command::new("strace");
    command.args(["-f", "-ff", "-e", "signal=none", "-o"]).arg(traces.join("trace"));
    command.args(processes.iter().flat_map(|pid| ["-p".to_owned(), pid.to_string()]));
    let mut tool = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().context("cannot start strace")?;
    let Some(words) = tool.stderr.take() else { bail!("strace has no output") };
    let (mut attached, mut said) = (0, String::new());
    let mut lines = BufReader::new(words).lines();
    while attached < processes.len() {
        let Some(line) = lines.next().transpose()? else {
            tool.wait()?;
            bail!("strace ended at once (it needs the right to trace, as root has it):\n{said}");
        };
        attached += usize::from(line.contains("attached"));
        said.push_str(&line);
        said.push('\n');
    }
    // Keeps reading its messages, so that a full pipe cannot block it.
    std::thread::spawn(move || lines.for_each(drop));
    Ok(tool)
}

/// Counts the calls of one trace.
fn read(path: &Path, counts: &mut BTreeMap<String, u32>) -> Result<()> {
    for line in BufReader::new(fs::File::open(path)?).split(b'\n') {
        let line = line?;
        let name = line.split(|&byte| byte == b'(').next().filter(|name| name.len() < line.len());
        let Some(name) = name.and_then(|name| std::str::from_utf8(name).ok()) else { continue };
        // Skips calls that had begun before strace attached, the ends of interrupted calls, and signals.
        if name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') && name != "restart_syscall" {
            *counts.entry(name.to_owned()).or_default() += 1;
        }
    }
    Ok(())
}

fn per_request(counts: &BTreeMap<String, u32>) -> f64 {
    // The server reads the processor time of slow requests, and under strace many are slow.
    let counted = counts.iter().filter(|(name, _)| *name != "clock_gettime");
    f64::from(counted.map(|(_, count)| count).sum::<u32>()) / f64::from(COUNTED)
}

fn line(process: &str, counts: &BTreeMap<String, u32>) -> String {
    let mut names: Vec<_> = counts.iter().map(|(name, &count)| (f64::from(count) / f64::from(COUNTED), name)).collect();
    names.retain(|(count, _)| *count >= SHOWN);
    names.sort_by(|one, other| other.0.total_cmp(&one.0));
    let names: Vec<_> = names.iter().map(|(count, name)| format!("{name} {count:.2}")).collect();
    format!("{process}: {}", names.join(", "))
}
