//! Everything that the lab starts runs under a guard: a second process of the lab's own binary that leaves no process
//! behind.
//!
//! The guard adopts all descendants of its command (it is a subreaper), so daemons and re-parented workers stay in its
//! tree. It ends the whole tree on request, and also when its standard input closes: that happens even if the lab is
//! killed with SIGKILL. This needs no `unsafe`, unlike a pre-exec hook.
//!
//! Protocol, line by line. Lab to guard: `stop GRACE_MS`. Guard to lab: `started PID`, `failed MESSAGE`, `exited
//! DESCRIPTION`.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, WaitOptions};

use crate::sample::proc_tree;

/// The hidden subcommand that turns the lab's binary into a guard.
pub const SUBCOMMAND: &str = "guard";

/// Environment variable with the binary that contains [`SUBCOMMAND`], if it is not the running one (tests of the
/// library).
pub const BINARY_VARIABLE: &str = "HOWDAH_LAB_GUARD";

/// Prefix of the lab's temporary directories.
pub const DIRECTORY_PREFIX: &str = "howdah-lab-";

/// Returns the binary that has the hidden subcommands.
pub fn binary() -> Result<PathBuf> {
    match std::env::var_os(BINARY_VARIABLE) {
        Some(path) => Ok(PathBuf::from(path)),
        None => std::env::current_exe().context("cannot find the lab's own binary"),
    }
}

/// A command to run under a guard.
#[derive(Debug, Clone)]
pub struct Launch {
    pub program: PathBuf,
    pub arguments: Vec<String>,
    /// Additional environment.
    pub environment: Vec<(String, String)>,
    /// Working directory.
    pub directory: PathBuf,
    /// File for standard output and standard error.
    pub log: PathBuf,
}

impl Launch {
    /// Returns the command line as a person would type it.
    pub fn line(&self) -> String {
        let mut line = String::new();
        for (name, value) in &self.environment {
            line.push_str(&format!("{name}={value} "));
        }
        line.push_str(&self.program.display().to_string());
        for argument in &self.arguments {
            line.push(' ');
            line.push_str(argument);
        }
        line
    }
}

/// A running guard, seen from the lab. Dropping it ends the tree.
#[derive(Debug)]
pub struct Guarded {
    guard: Child,
    commands: Option<ChildStdin>,
    exited: Arc<Mutex<Option<String>>>,
    /// The command's log file.
    pub log: PathBuf,
    /// The command line.
    pub line: String,
}

impl Guarded {
    /// Starts the command under a new guard and waits until it runs.
    pub fn start(launch: &Launch) -> Result<Self> {
        let mut guard = Command::new(binary()?)
            .arg(SUBCOMMAND)
            .arg(&launch.log)
            .arg("--")
            .arg(&launch.program)
            .args(&launch.arguments)
            .envs(launch.environment.iter().map(|(name, value)| (name, value)))
            .current_dir(&launch.directory)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .context("cannot start a guard process")?;
        let commands = guard.stdin.take();
        let Some(output) = guard.stdout.take() else { bail!("the guard's output cannot be read") };
        let mut lines = BufReader::new(output).lines();
        let first = lines.next().transpose()?.unwrap_or_default();
        let exited = Arc::new(Mutex::new(None));
        let this = Self { guard, commands, exited: Arc::clone(&exited), log: launch.log.clone(), line: launch.line() };
        if !first.starts_with("started ") {
            let reason = first.strip_prefix("failed ").unwrap_or("the guard ended at once").to_owned();
            bail!("cannot start {}: {reason}", launch.program.display());
        }
        thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                if let Some(description) = line.strip_prefix("exited ")
                    && let Ok(mut slot) = exited.lock()
                {
                    *slot = Some(description.to_owned());
                }
            }
        });
        Ok(this)
    }

    /// Returns the guard's process id; the tree below it is the system.
    pub fn root(&self) -> u32 {
        self.guard.id()
    }

    /// Returns how the command ended, if it has.
    pub fn exited(&self) -> Option<String> {
        self.exited.lock().ok().and_then(|slot| slot.clone())
    }

    /// Asks the command to end, waits for the whole tree, and kills the rest after `grace`.
    pub fn stop(&mut self, grace: Duration) -> Result<()> {
        if let Some(mut commands) = self.commands.take() {
            // A guard whose command has already ended may be gone; closing the pipe is the same request.
            let _ = writeln!(commands, "stop {}", grace.as_millis());
        }
        let deadline = Instant::now() + grace + Duration::from_secs(5);
        while Instant::now() < deadline {
            if self.guard.try_wait()?.is_some() {
                return Ok(());
            }
            thread::sleep(Duration::from_millis(5));
        }
        self.guard.kill()?;
        self.guard.wait()?;
        bail!("{} did not end in time", self.line)
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        if let Ok(None) = self.guard.try_wait() {
            let _ = self.stop(Duration::from_millis(500));
        }
    }
}

/// Number of attempts of a guard to remove an orphaned directory, and the time between them: 10 s in total.
const REMOVALS: usize = 100;
const BETWEEN_REMOVALS: Duration = Duration::from_millis(100);

enum Event {
    Stop(Duration),
    /// The pipe closed without a request to stop.
    Orphaned,
    MainExited(String),
    AllGone,
}

/// Runs the guard process. Returns its exit code.
pub fn guard_main(log: &Path, command: &[String]) -> i32 {
    match run_guard(log, command) {
        Ok(()) => 0,
        Err(error) => {
            send_line(&format!("failed {}", format!("{error:#}").replace('\n', " ")));
            1
        }
    }
}

fn run_guard(log: &Path, command: &[String]) -> Result<()> {
    // A separate session: Ctrl-C in the terminal reaches the lab, which then stops systems in order.
    let _ = rustix::process::setsid();
    rustix::process::set_child_subreaper(Some(rustix::process::getpid())).context("cannot become a subreaper")?;
    let Some((program, arguments)) = command.split_first() else { bail!("no command given") };
    let output = File::options().create(true).append(true).open(log)?;
    let errors = output.try_clone()?;
    let child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(output)
        .stderr(errors)
        .spawn()
        .with_context(|| program.clone())?;
    let main_pid = child.id();
    send_line(&format!("started {main_pid}"));

    let (events, inbox) = channel();
    spawn_command_reader(events.clone());
    spawn_reaper(events, main_pid);
    let (grace, orphaned) = wait_for_stop(&inbox);
    end_tree(main_pid, grace, &inbox);
    if orphaned {
        remove_orphaned_directory();
    }
    Ok(())
}

/// Sends a line to the lab. If the lab is gone, the line is lost, but there is still a tree to end: `println!` would
/// panic.
fn send_line(line: &str) {
    let mut output = std::io::stdout().lock();
    let _ = writeln!(output, "{line}").and_then(|()| output.flush());
}

/// Called when the lab has died: no other process will remove its temporary directory.
fn remove_orphaned_directory() {
    let Ok(current) = std::env::current_dir() else { return };
    let temporary = current
        .ancestors()
        .find(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(DIRECTORY_PREFIX)));
    let Some(path) = temporary else { return };
    // The guards of other systems remove it at the same time, and their systems may still be writing: either can make a
    // removal fail half-way.
    for _ in 0..REMOVALS {
        match std::fs::remove_dir_all(path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => thread::sleep(BETWEEN_REMOVALS),
            _ => return,
        }
    }
}

fn spawn_command_reader(events: Sender<Event>) {
    thread::spawn(move || {
        let grace = std::io::stdin()
            .lock()
            .lines()
            .map_while(Result::ok)
            .find_map(|line| line.strip_prefix("stop ").and_then(|ms| ms.trim().parse().ok()));
        let _ = events.send(grace.map_or(Event::Orphaned, |ms| Event::Stop(Duration::from_millis(ms))));
    });
}

fn spawn_reaper(events: Sender<Event>, main_pid: u32) {
    thread::spawn(move || {
        loop {
            match rustix::process::wait(WaitOptions::empty()) {
                Ok(Some((pid, status))) if pid.as_raw_nonzero().get().unsigned_abs() == main_pid => {
                    let description = match (status.exit_status(), status.terminating_signal()) {
                        (Some(code), _) => format!("with code {code}"),
                        (None, Some(signal)) => format!("by signal {signal}"),
                        (None, None) => "for an unknown reason".to_owned(),
                    };
                    let _ = events.send(Event::MainExited(description));
                }
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(_) => break,
            }
        }
        let _ = events.send(Event::AllGone);
    });
}

fn wait_for_stop(inbox: &Receiver<Event>) -> (Duration, bool) {
    loop {
        match inbox.recv() {
            Ok(Event::Stop(grace)) => return (grace, false),
            Ok(Event::Orphaned) => return (Duration::from_millis(300), true),
            // The guard keeps running, so that the lab can read the processor time of ended children.
            Ok(Event::MainExited(description)) => {
                send_line(&format!("exited {description}"));
            }
            Ok(Event::AllGone) => {}
            Err(_) => return (Duration::ZERO, false),
        }
    }
}

fn end_tree(main_pid: u32, grace: Duration, inbox: &Receiver<Event>) {
    let own = std::process::id();
    if proc_tree::descendants(own).is_empty() {
        return;
    }
    signal(main_pid, Signal::TERM);
    let deadline = Instant::now() + grace;
    loop {
        match inbox.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(Event::AllGone) | Err(RecvTimeoutError::Disconnected) => return,
            Ok(_) => {}
            Err(RecvTimeoutError::Timeout) => break,
        }
    }
    // A killed process may have forked just before, so this repeats until no process is left.
    for _ in 0..200 {
        let alive = proc_tree::descendants(own);
        if alive.is_empty() {
            return;
        }
        for pid in alive {
            signal(pid, Signal::KILL);
        }
        thread::sleep(Duration::from_millis(5));
    }
}

fn signal(pid: u32, signal: Signal) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        let _ = rustix::process::kill_process(pid, signal);
    }
}
