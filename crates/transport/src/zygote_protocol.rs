//! Messages between the server and a pool's zygote: JSON on a control socket, with descriptors.
//!
//! The socket is the zygote's standard input. Its end-of-file is the order to end: the zygote then kills its workers
//! and exits, so no zygote or worker outlives the server, however the server dies.

use crate::php_stack::{RequestStacks, Samples};
use crate::worker_spec::{SandboxProfile, WorkerSpec};
use serde::{Deserialize, Serialize};

/// Server → zygote.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case")]
pub enum ToZygote {
    /// For a pool with a warm-up, before `Boot`: one of its requests.
    WarmUp(WarmUpRequest),
    /// Start PHP.
    Boot(Box<BootSpec>),
    /// Fork a worker. The zygote forwards this to the template if there is one. Descriptors: the lane, the eventfd, the
    /// worker's end of its control socket; in async mode also its end of the wake pipe.
    Fork {
        /// The worker's number within the pool.
        worker: u32,
    },
    /// Snapshot mode: the template's boot is outdated. The template ends, and the next worker boots.
    DropTemplate,
    /// Report a request's PHP stacks. The worker does not notice.
    Stacks {
        /// Returned in the answer.
        order: u64,
        /// The worker's process id.
        pid: u32,
        /// The request's number on its lane.
        request: u64,
    },
    /// Report the memory of each worker, and of the template. They do not notice.
    Measure,
    /// Sample the PHP stacks of all workers at this rate per second, for this time. An order with the number of an
    /// earlier one replaces it; `rate` 0 ends it.
    Profile {
        /// Returned in the answers.
        order: u64,
        rate: u32,
        milliseconds: u64,
    },
}

/// Zygote → server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub enum FromZygote {
    /// PHP has started.
    Booted {
        /// PHP's version, e.g. `8.2.35`.
        php_version: String,
        /// Workers may lower their nice value again after raising it.
        restores_nice: bool,
        /// Maximum size of a form that PHP reads (`post_max_size`), in bytes; `None` without a limit, or if PHP does
        /// not parse forms.
        form_limit: Option<u64>,
    },
    /// PHP did not start; the zygote ends after this.
    BootFailed {
        /// Details for the operator.
        error: String,
    },
    /// A worker was forked. Descriptor: its pidfd, if the zygote reports it.
    Forked {
        /// The number from the order.
        worker: u32,
        /// Its process id.
        pid: u32,
    },
    /// Snapshot mode: workers are now forked from this process, in which the application has booted. It serves no
    /// requests. Sent by the worker that booted, forwarded by the zygote.
    Template {
        /// Its process id.
        pid: u32,
        /// Start of its boot, in microseconds since the epoch.
        boot_began_us: u64,
    },
    /// Snapshot mode: each worker boots separately. Sent by the worker that booted first, forwarded by the zygote.
    Unshared {
        /// Resources opened by the application that workers cannot share, for the operator.
        why: String,
    },
    /// Snapshot mode: result of the warm-up. Sent by the worker that booted first, forwarded by the zygote. If it is
    /// refused, workers forked from now on skip the warm-up, and the server ends this one.
    WarmUp {
        /// The worker's process id.
        pid: u32,
        /// True: the worker's snapshot must not serve requests.
        refused: bool,
        /// For the operator.
        findings: Vec<Finding>,
    },
    /// A worker in a learning sandbox did something that the profile `app` would refuse; each need is sent once.
    Learnt {
        /// The new needs.
        needs: Vec<Need>,
    },
    /// PHP stacks of a request.
    Stacks {
        /// The number from the order.
        order: u64,
        found: Result<RequestStacks, String>,
    },
    /// Samples since the last message of this kind, for at most one second.
    Samples {
        /// The number from the order.
        order: u64,
        seen: Samples,
        /// No more samples will follow.
        last: bool,
    },
    /// Memory of the workers, and of the template.
    Sizes {
        /// Process ids and memory in bytes (PSS: shared pages count proportionally).
        sizes: Vec<(u32, u64)>,
    },
    /// A worker could not be forked.
    ForkFailed {
        /// The number from the order.
        worker: u32,
        /// The system's error.
        error: String,
    },
    /// A worker or the template has ended and was reaped.
    Exited {
        /// Its process id.
        pid: u32,
        /// Exit status, if it exited.
        status: Option<i32>,
        /// The signal that killed it.
        signal: Option<i32>,
        /// Processor time in microseconds, including programs that the worker started and waited for.
        processor_us: u64,
    },
}

/// A finding of the warm-up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// False for something that may be intended.
    pub is_error: bool,
    /// The finding, with its path.
    pub text: String,
}

/// A request that new workers run before they serve.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WarmUpRequest {
    /// Its request target, for messages.
    pub target: String,
    /// The request as in a lane (`EncodedRequest::to_words`).
    pub words: Box<[u64]>,
}

/// Settings for the start of a pool's PHP.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BootSpec {
    /// `wire::WIRE_VERSION` of the server; the zygote refuses a different version.
    pub wire_version: u32,
    /// The pool's name, for the process title and logs.
    pub pool: String,
    /// Settings of the pool's workers.
    pub worker: WorkerSpec,
    /// The document root.
    pub root: String,
    /// Restrictions of the pool's workers.
    pub sandbox: SandboxSpec,
}

/// Permissions of a pool's sandbox, from its settings. The zygote adds what PHP itself needs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SandboxSpec {
    /// `Off` for no sandbox.
    pub profile: SandboxProfile,
    /// PHP does not start if the kernel cannot enforce the whole sandbox.
    pub required: bool,
    /// Known applications may write to their usual directories.
    pub detect: bool,
    /// Absolute paths that may be read.
    pub read: Vec<String>,
    /// Directories that may be written; no PHP runs from them.
    pub write: Vec<String>,
    /// Directories that may be written and hold PHP code of the application.
    pub write_code: Vec<String>,
    /// Programs, or directories of programs.
    pub execute: Vec<String>,
    /// TCP ports to connect to.
    pub connect: Vec<u16>,
    /// TCP ports to listen on.
    pub bind: Vec<u16>,
    /// Additional groups of system calls to allow.
    pub allow: Vec<String>,
    /// Additional groups of system calls to refuse.
    pub deny: Vec<String>,
}

/// Something that a worker in a learning sandbox did and that the profile `app` would refuse.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(tag = "kind", content = "what", rename_all = "snake_case")]
pub enum Need {
    /// Read this file or directory.
    Read(String),
    /// Wrote to this directory.
    Write(String),
    /// Wrote PHP files to this directory.
    WriteCode(String),
    /// Ran this program.
    Execute(String),
    /// Connected to this TCP port.
    Connect(u16),
    /// Listened on this TCP port.
    Bind(u16),
    /// Made a system call of this group.
    Allow(String),
}
