//! The record of a measurement: the types of `result.json`.
//!
//! Raw data comes first in the lab. Every report, chart and warning is computed from these types alone, so a result set
//! that was measured years ago can be rendered again, and two result sets can be compared.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::jit;

/// The version of the JSON layout; incremented when a field changes its meaning.
pub const SCHEMA: u32 = 1;

/// One invocation of `howdah-lab run`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ResultSet {
    /// Layout version, see [`SCHEMA`].
    pub schema: u32,
    /// The requested suite.
    pub suite: String,
    /// Start, UTC, RFC 3339.
    pub started: String,
    /// End, UTC, RFC 3339; absent while the measurement runs.
    pub finished: Option<String>,
    /// `true` if the run was stopped before its end.
    pub interrupted: bool,
    /// The command line of the lab.
    pub command: Vec<String>,
    pub lab_version: String,
    /// The method of the measurement.
    pub settings: Settings,
    pub machine: Machine,
    /// Every requested system, including missing ones.
    pub systems: Vec<SystemRecord>,
    /// Every requested case.
    pub cases: Vec<CaseRecord>,
    /// Cost of the load generator without any PHP.
    pub floors: Vec<Floor>,
    /// Cost of applications without any server.
    #[serde(default)]
    pub loops: Vec<LoopCost>,
    /// Every single run, in the order in which they happened.
    pub runs: Vec<Run>,
}

/// The method of a measurement.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Settings {
    /// Rounds of the throughput measurement.
    pub rounds: u32,
    /// Seconds of each measured run.
    pub seconds: f64,
    /// Seconds of load before each measured run.
    pub warmup_seconds: f64,
    /// Threads of the closed-loop generator.
    pub load_threads: u32,
    /// Name and version of the closed-loop generator.
    pub generator: String,
    /// Share of the slowest system's throughput that the constant-rate run offers; 0 if there was none.
    pub rate_share: f64,
    /// Rounds of `work.php` per millisecond, if a mixed load computes.
    #[serde(default)]
    pub work_rounds_per_ms: Option<f64>,
}

/// Facts about the machine, read before the first run.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Machine {
    /// Processor name.
    pub cpu: String,
    /// Processors that the lab may use.
    pub cores: u32,
    pub arch: String,
    pub memory_bytes: u64,
    /// Kernel release.
    pub kernel: String,
    /// Distribution.
    pub os: String,
    /// Hypervisor or container, as far as it can be detected.
    pub virtualisation: String,
    /// Frequency governor, if the kernel reports one.
    pub governor: String,
    /// The kernel's default congestion control: one with pacing (BBR) slows large responses even on the same machine.
    #[serde(default)]
    pub congestion_control: String,
    /// Load average of the last minute, before the first run.
    pub load_average: f64,
}

/// A system and whether it could be measured.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SystemRecord {
    /// Short name, as on the command line.
    pub id: String,
    /// Display name.
    pub title: String,
    /// Found, or missing with the way to install it.
    pub status: SystemStatus,
    /// Its configuration, with reasons.
    pub tuning: Vec<String>,
    /// Configuration files of the last start: name and content.
    pub config_files: BTreeMap<String, String>,
    /// The command lines of the last start.
    pub commands: Vec<String>,
    /// PHP's own report inside this system.
    pub php: Option<PhpFacts>,
}

/// Result of the search for a system on this machine.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "lowercase")]
pub enum SystemStatus {
    /// It is installed.
    Found {
        /// Its parts and their versions.
        versions: BTreeMap<String, String>,
    },
    /// It is not installed.
    Missing {
        /// The missing program.
        what: String,
        /// The way to install it.
        how: String,
    },
}

/// PHP's report from inside a system.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct PhpFacts {
    /// `PHP_VERSION`.
    pub version: String,
    /// `PHP_SAPI`.
    pub sapi: String,
    /// Thread-safe build.
    pub zts: bool,
    /// OPcache in use.
    pub opcache: bool,
    /// JIT in use.
    pub jit: bool,
    /// Number of loaded extensions.
    pub extensions: u32,
    /// Settings that change how a request runs.
    pub ini: BTreeMap<String, String>,
}

/// A case in its measured form.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct CaseRecord {
    /// Short name, as on the command line.
    pub id: String,
    /// Display name.
    pub title: String,
    /// Work of the script.
    pub about: String,
    /// Connections of the load generator.
    pub connections: u32,
    /// PHP workers, processes or threads of each system.
    pub workers: u32,
    /// `Accept-Encoding` of the requests.
    pub accept_encoding: String,
    /// Milliseconds that the script waits on purpose.
    pub wait_ms: f64,
    /// `true` if PHP compiled with its JIT.
    #[serde(default)]
    pub jit: bool,
    /// Connections of the clients, unless they are persistent plain HTTP/1.1.
    #[serde(default)]
    pub way: String,
    /// The groups of clients in words, for a mixed load.
    #[serde(default)]
    pub clients: Vec<String>,
    /// Settings of the pool other than a constant number of workers.
    #[serde(default)]
    pub pool: Vec<String>,
}

impl CaseRecord {
    /// Describes the conditions for people.
    pub fn load(&self) -> String {
        let jit = if self.jit { format!(", {}", jit::WORDS) } else { String::new() };
        let pool: String = self.pool.iter().map(|setting| format!(", {setting}")).collect();
        let way = if self.way.is_empty() { String::new() } else { format!(", {}", self.way) };
        format!("{} connections{way}, {} workers{pool}{jit}", self.connections, self.workers)
    }
}

/// Results of the load generator against a server without PHP.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Floor {
    /// The case whose response size and connections were used.
    pub case: String,
    pub requests_per_second: f64,
    /// Processor time of the generator for one request, in microseconds.
    pub generator_us: f64,
    /// Processor time of the stand-in server for one request, in microseconds.
    pub server_us: f64,
}

/// Cost of a request in an application whose handler is called in a plain loop on the command line, without a server.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct LoopCost {
    /// Case id.
    pub case: String,
    /// Processor time of PHP for one request, in microseconds; one figure per measurement.
    pub us: Vec<f64>,
}

/// One run: one system, one case, one round.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Run {
    /// System id.
    pub system: String,
    /// Case id.
    pub case: String,
    /// Round, counted from 1.
    pub round: u32,
    /// Kind of the measurement.
    pub kind: RunKind,
    /// Start, UTC, RFC 3339.
    pub started: String,
    /// The result.
    pub outcome: Outcome,
}

/// The kinds of measurements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RunKind {
    /// Closed loop: as many requests as the connections can carry.
    Throughput,
    /// Open loop: requests at a fixed rate; latency counts from the time a request was due.
    Latency,
}

/// A run has either measured something or failed; a failure is never recorded as zero.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// It succeeded.
    Measured(Box<Sample>),
    Failed {
        /// The lab's step at that time.
        stage: String,
        /// The error.
        message: String,
        /// The end of the system's log.
        log_tail: Vec<String>,
    },
    /// The system cannot do this case by design.
    Skipped { reason: String },
}

/// Everything measured in one run.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Sample {
    /// Length of the run.
    pub seconds: f64,
    /// Replies with any status.
    pub requests: u64,
    /// Replies with a success status.
    pub succeeded: u64,
    /// Failures by kind.
    pub errors: Errors,
    /// Replies by status, if the generator counts them.
    pub statuses: BTreeMap<u16, u64>,
    /// Bytes received, headers included.
    pub bytes: u64,
    pub latency: Latency,
    /// Requests per second that were offered, for a constant-rate run.
    pub offered_rate: Option<f64>,
    /// The response, as checked before the run.
    #[serde(rename = "answer")]
    pub response: Response,
    /// All encodings of responses that were checked before, during and after the run, with their counts.
    pub encodings: BTreeMap<String, u64>,
    /// Processor time.
    pub cpu: Cpu,
    /// Memory at the end of the run.
    pub memory: Memory,
    /// Context switches of the system's processes.
    pub switches: Switches,
    /// Work of MariaDB.
    pub mysql: Option<MysqlWork>,
    /// Command line of the generator.
    pub command: Vec<String>,
    /// Each kind of request of a mixed load.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kinds: Vec<KindSample>,
    /// Delay with which the generator sent requests that were due in an open loop and found an idle connection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lateness: Option<Latency>,
}

/// One kind of request of a mixed load. Rates count the responses in the measured period. Percentiles count the
/// requests that were due in it, or waited through all of it, whenever the response arrived.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct KindSample {
    pub name: String,
    /// Number of requests in the percentiles.
    pub due: u64,
    /// Correct responses in the measured period.
    pub good: u64,
    /// Responses that report a lack of capacity (429, 502, 503, 504) in that period.
    pub refused: u64,
    /// Responses with a success status and a wrong body, in the whole run.
    pub wrong: u64,
    /// Requests without a response at the end of the run.
    pub unanswered: u64,
    /// All other failures in that period.
    pub errors: Errors,
    /// Latency of correct responses; clients that gave up or got no response are included with the time until then.
    pub latency: Latency,
    /// Latency of refusals.
    pub refused_latency: Latency,
    /// Correct responses on the connection that got fewest, and on the one that got most, if connections have one kind
    /// only.
    #[serde(default)]
    pub per_connection: Option<(u64, u64)>,
}

impl Sample {
    /// Returns the successful requests per second.
    pub fn rate(&self) -> f64 {
        per(self.succeeded as f64, self.seconds)
    }

    /// Returns the received bytes per second.
    pub fn bytes_per_second(&self) -> f64 {
        per(self.bytes as f64, self.seconds)
    }

    /// Returns the processor time of the whole system for one request, in microseconds.
    pub fn server_us(&self) -> f64 {
        per(self.cpu.system_seconds() * 1e6, self.requests as f64)
    }

    /// Returns the processor time of one role for one request, in microseconds.
    pub fn role_us(&self, role: Role) -> f64 {
        per(self.cpu.by_role.get(&role).copied().unwrap_or(0.0) * 1e6, self.requests as f64)
    }

    /// Returns the context switches for one request.
    pub fn switches_per_request(&self) -> f64 {
        per((self.switches.voluntary + self.switches.involuntary) as f64, self.requests as f64)
    }
}

fn per(amount: f64, of: f64) -> f64 {
    if of > 0.0 { amount / of } else { 0.0 }
}

/// Requests that did not succeed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Errors {
    /// Connections that were refused or failed.
    pub connect: u64,
    /// Replies that were cut off.
    pub read: u64,
    /// Requests that could not be sent.
    pub write: u64,
    /// No reply in time.
    pub timeout: u64,
    /// Replies with a failure status.
    pub status: u64,
}

impl Errors {
    pub fn total(&self) -> u64 {
        self.connect + self.read + self.write + self.timeout + self.status
    }
}

/// Latency in microseconds.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Latency {
    pub mean: f64,
    /// Standard deviation.
    pub stdev: f64,
    /// Longest.
    pub max: f64,
    /// Percentiles and values, ascending.
    pub percentiles: Vec<(f64, f64)>,
}

impl Latency {
    pub fn at(&self, percentile: f64) -> Option<f64> {
        self.percentiles.iter().find(|(p, _)| (p - percentile).abs() < 1e-9).map(|(_, value)| *value)
    }
}

/// The response to one request.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Response {
    /// Status code.
    pub status: u16,
    /// `Content-Type`.
    pub content_type: String,
    /// `Content-Encoding`, or `identity`.
    pub encoding: String,
    /// Size of the body after decoding.
    pub body_bytes: u64,
    /// Size of the reply on the wire, headers included.
    pub wire_bytes: u64,
    /// XXH3-128 of the decoded body.
    pub hash: String,
}

/// Purpose of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// It speaks HTTP and runs no PHP.
    Front,
    /// It only runs PHP.
    Php,
    /// It does both; the share of each cannot be measured from outside.
    Both,
}

impl Role {
    /// Returns the word used in reports.
    pub fn name(self) -> &'static str {
        match self {
            Role::Front => "front",
            Role::Php => "PHP",
            Role::Both => "front and PHP in one process",
        }
    }
}

/// Processor time in seconds.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Cpu {
    /// The system's process tree, by role.
    pub by_role: BTreeMap<Role, f64>,
    /// The system's process tree, by process name.
    pub by_process: BTreeMap<String, f64>,
    /// The load generator.
    pub generator: f64,
    /// MariaDB and Redis.
    pub services: BTreeMap<String, f64>,
    /// All processors together, busy with anything.
    pub machine_busy: f64,
    /// All processors together, busy or not.
    pub machine_total: f64,
    /// Time that the hypervisor gave to other guests.
    pub stolen: f64,
}

impl Cpu {
    /// Returns the processor time of the system's whole process tree.
    pub fn system_seconds(&self) -> f64 {
        self.by_role.values().sum()
    }

    /// Returns the busy time of processes that the lab has not started.
    pub fn unexplained(&self) -> f64 {
        let known = self.system_seconds() + self.generator + self.services.values().sum::<f64>();
        (self.machine_busy - known).max(0.0)
    }
}

/// Memory of the system's process tree.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Memory {
    /// Proportional set size: shared pages counted once in total.
    pub pss_bytes: u64,
    /// Resident set size: shared pages counted in every process.
    pub rss_bytes: u64,
    pub processes: u32,
    pub threads: u32,
}

/// Context switches.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Switches {
    /// The process waited.
    pub voluntary: u64,
    /// The kernel preempted the process.
    pub involuntary: u64,
}

/// Work of MariaDB during a run.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct MysqlWork {
    pub connections: u64,
    /// Statements.
    pub questions: u64,
    pub bytes_sent: u64,
    /// Maximum number of simultaneous connections.
    #[serde(default)]
    pub most_open: u64,
}
