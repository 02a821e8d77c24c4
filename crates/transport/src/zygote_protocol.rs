//! Messages between the server and a pool's zygote: JSON on a control socket, with descriptors.
//!
//! The socket is the zygote's standard input. Its end-of-file is the order to end: the zygote then kills its workers
//! and exits, so nothing outlives the server, however it dies.

use crate::php_stack::{RequestStacks, Samples};
use crate::worker_spec::{SandboxProfile, WorkerSpec};
use serde::{Deserialize, Serialize};

/// Server → zygote.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case")]
pub enum ToZygote {
    /// First of all, for a pool with a warm-up: one of its requests.
    WarmUp(WarmUpRequest),
    /// Then: start PHP.
    Boot(Box<BootSpec>),
    /// Fork a worker. The zygote passes this on to the template, where it has one. Descriptors: the lane, the eventfd,
    /// the worker's end of its control socket; in async mode also its end of the wake pipe.
    Fork {
        /// The worker's number within the pool.
        worker: u32,
    },
    /// Snapshot mode: what the template's boot has read has changed. It ends, and the next worker boots.
    DropTemplate,
    /// Say where a request's PHP is. Nothing of it is noticed in the worker.
    Stacks {
        /// Comes back in the answer.
        order: u64,
        /// The worker's process id.
        pid: u32,
        /// The request's number on its lane.
        request: u64,
    },
    /// Say how much memory each worker has. Nothing of it is noticed in the workers.
    Measure,
    /// Look at the PHP stacks of all workers, so many times a second, for so long. An order with the number of an earlier
    /// one takes its place; `rate` 0 ends it.
    Profile {
        /// Comes back in the answers.
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
        /// Its workers may lower their nice value again after they have raised it.
        restores_nice: bool,
        /// Maximum size of a form that PHP reads (`post_max_size`), in bytes; `None` without a limit, or if PHP parses
        /// no forms.
        form_limit: Option<u64>,
    },
    /// PHP did not start; the zygote ends after this.
    BootFailed {
        /// Details for the operator.
        error: String,
    },
    /// A worker runs. Descriptor: its pidfd, where the zygote says it.
    Forked {
        /// The number from the order.
        worker: u32,
        /// Its process id.
        pid: u32,
    },
    /// Snapshot mode: workers are forked from this process from now on, in which the application has booted. It serves
    /// nothing. Said by the worker that booted, passed on by the zygote.
    Template {
        /// Its process id.
        pid: u32,
        /// When its boot began, microseconds since the epoch.
        boot_began_us: u64,
    },
    /// Snapshot mode: each worker boots on its own. Said by the worker that booted first, passed on by the zygote.
    Unshared {
        /// Resources opened by the application that workers cannot share, for the operator.
        why: String,
    },
    /// Snapshot mode: what the warm-up has shown. Said by the worker that booted first, passed on by the zygote. When it
    /// is refused, workers that are forked from now on do without, and the server ends this one.
    WarmUp {
        /// The worker's process id.
        pid: u32,
        /// True: its snapshot must not serve.
        refused: bool,
        /// For the operator.
        findings: Vec<Finding>,
    },
    /// A worker in a learning sandbox has done what the profile `app` would refuse; each need is sent once.
    Learnt {
        /// What.
        needs: Vec<Need>,
    },
    /// Where a request's PHP is.
    Stacks {
        /// The number from the order.
        order: u64,
        found: Result<RequestStacks, String>,
    },
    /// Samples since the last message of this kind, at most a second's worth.
    Samples {
        /// The number from the order.
        order: u64,
        seen: Samples,
        /// No more will come.
        last: bool,
    },
    /// Memory of workers.
    Sizes {
        /// Process ids and bytes; what workers share counts in parts.
        sizes: Vec<(u32, u64)>,
    },
    /// A worker could not be forked.
    ForkFailed {
        /// The number from the order.
        worker: u32,
        /// The system's error.
        error: String,
    },
    /// A worker has ended and was reaped.
    Exited {
        /// Its process id.
        pid: u32,
        /// Exit status, if it exited.
        status: Option<i32>,
        /// The signal that killed it.
        signal: Option<i32>,
        /// Microseconds of processor time that it had, with the programs that it has started and waited for.
        processor_us: u64,
    },
}

/// Something that the warm-up has shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// False for what may be meant.
    pub is_error: bool,
    /// The need, with its path.
    pub text: String,
}

/// A request that new workers run before they serve.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WarmUpRequest {
    /// Its target, for messages.
    pub target: String,
    /// As it would lie in a lane (`EncodedRequest::to_words`).
    pub words: Box<[u64]>,
}

/// Settings for the start of a pool's PHP.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BootSpec {
    /// `wire::WIRE_VERSION` of the server; the zygote refuses another.
    pub wire_version: u32,
    /// The pool's name, shown as the process title and in logs.
    pub pool: String,
    /// Settings of its workers.
    pub worker: WorkerSpec,
    /// The directory that is served.
    pub root: String,
    /// Restrictions of its workers.
    pub sandbox: SandboxSpec,
}

/// Permissions of a pool's sandbox, from its settings. The zygote adds what PHP itself needs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SandboxSpec {
    /// `Off` for no sandbox.
    pub profile: SandboxProfile,
    /// PHP does not start where the kernel cannot enforce all of it.
    pub required: bool,
    /// Known applications get what they write to.
    pub detect: bool,
    /// Absolute paths that may be read.
    pub read: Vec<String>,
    /// Directories for data.
    pub write: Vec<String>,
    /// Directories for PHP that the application writes itself.
    pub write_code: Vec<String>,
    /// Programs, or directories of them.
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

/// Something that a worker in a sandbox that learns has done, and that the sandbox `app` would refuse.
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
