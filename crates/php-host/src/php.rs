//! The shim's C functions, each wrapped once.

use crate::warmup_report;
use howdah_transport::wire::WireRequest;
use howdah_transport::zygote_protocol::{BootSpec, WarmUpRequest};
use howdah_transport::{SandboxProfile, WorkerSpec};
use std::ffi::{CStr, CString, c_char, c_int};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// What `howdah_c_startup()` is given. C keeps the pointer: it lives as long as the process, and so does all it points to.
#[repr(C)]
struct Boot {
    /// What workers are told.
    worker: *const WorkerSpec,
    /// Requests that a new worker runs before it takes others, laid out as in a lane.
    warmup: *const *const WireRequest,
    n_warmup: usize,
    /// `howdah_c_sandbox_code()` will follow.
    sandbox: bool,
}

// SAFETY: the declarations are those of bridge.h; each function's conditions stand where it is called.
unsafe extern "C" {
    /// Starts PHP (modules, ini, OPcache, preload). Called once, in the zygote, before any fork. 0 on success. `boot`
    /// and all it points to live as long as the process.
    fn howdah_c_startup(boot: *const Boot) -> c_int;
    /// After a fork, in the child, before anything else of PHP: whatever a forked PHP must renew (random state, pids,
    /// timers, signal handlers, crash and stack-dump handlers).
    fn howdah_c_after_fork();
    /// Snapshot mode: forks a child of this process's parent, with locks and files of its own. Returns like fork().
    fn howdah_c_fork_sibling() -> c_int;
    /// Async mode, in a process that the zygote has forked for this: has OPcache compile the library, which workers then
    /// find in shared memory. The process has to end afterwards; a request of PHP stays open in it.
    fn howdah_c_compile_library();
    /// Snapshot mode: from now on workers that are forked run warm-up requests only where what they leave is undone.
    fn howdah_c_refuse_warmup();
    /// Runs requests until howdah_rs_next_request() returns NULL or the worker must retire. Returns the process's exit
    /// status; the caller ends the process with _exit() after howdah_c_shutdown().
    fn howdah_c_worker_run() -> c_int;
    /// Ends PHP in this process (module shutdown), in a worker or in the zygote.
    fn howdah_c_shutdown();
    /// Writes the current PHP stack of this process as text ("#0 /path/file.php:12 function()\n"...) into `buffer`,
    /// returns the length. Async-signal-safe: reads memory only, allocates nothing. Called from a signal handler of a
    /// worker that is about to be killed.
    fn howdah_c_dump_stack(buffer: *mut c_char, size: usize) -> usize;
    /// PHP's version as a string literal, e.g. "8.2.35".
    fn howdah_c_php_version() -> *const c_char;
    /// The value of an ini setting at this moment, or NULL. Valid until PHP changes it.
    fn howdah_c_setting(name: *const c_char) -> *const c_char;
    /// The pool has a sandbox. Once, in the zygote, after howdah_c_startup(). The rules live as long as the process.
    /// `no_programs`: the kernel refuses to run any, and attempts are logged.
    fn howdah_c_sandbox_code(rules: *const CodeRule, n: usize, no_programs: bool);
    /// Writes where PHP is and for which request ("in /path/file.php:12 (/uri)"), returns the length.
    /// Async-signal-safe.
    fn howdah_c_place(buffer: *mut c_char, size: usize) -> usize;
    /// Whether one more refusal may be logged in this second. Async-signal-safe.
    fn howdah_c_may_log_refusal() -> bool;
}

/// A directory that workers may write to: files below it are never PHP, or (`code`) they may be included.
#[repr(C)]
struct CodeRule {
    /// A real path.
    path: *const c_char,
    length: usize,
    code: bool,
}

/// The value of one of PHP's settings, as it is now.
pub(crate) fn setting(name: &str) -> Option<String> {
    let name = CString::new(name).ok()?;
    // SAFETY: PHP is started; the name is NUL-terminated, and the value is copied before anything of PHP runs again.
    let value = unsafe { howdah_c_setting(name.as_ptr()) };
    // SAFETY: NULL or a NUL-terminated string, see above.
    (!value.is_null()).then(|| unsafe { CStr::from_ptr(value) }.to_string_lossy().into_owned())
}

/// Tells the shim which directories hold data and which hold code that was written, and that no program may be run. Once,
/// in the zygote, after PHP has started.
pub(crate) fn sandbox_code(rules: &[(PathBuf, bool)], no_programs: bool) {
    let rules = rules.iter().filter_map(|(path, code)| {
        let path = CString::new(path.as_os_str().as_bytes()).ok()?;
        Some(CodeRule { length: path.as_bytes().len(), path: path.into_raw().cast_const(), code: *code })
    });
    let rules: &[CodeRule] = rules.collect::<Vec<_>>().leak();
    // SAFETY: the rules and their paths are never freed, as bridge.h asks.
    unsafe { howdah_c_sandbox_code(rules.as_ptr(), rules.len(), no_programs) }
}

/// Writes where PHP is and for which request; async-signal-safe.
pub(crate) fn place(buffer: &mut [u8]) -> usize {
    // SAFETY: the buffer is valid for its length; the function only reads PHP's memory.
    let n = unsafe { howdah_c_place(buffer.as_mut_ptr().cast(), buffer.len()) };
    n.min(buffer.len())
}

/// Whether one more refusal may be logged in this second; async-signal-safe.
pub(crate) fn may_log_refusal() -> bool {
    // SAFETY: needs nothing; it counts in memory of its own.
    unsafe { howdah_c_may_log_refusal() }
}

/// PHP's version.
pub(crate) fn version() -> String {
    // SAFETY: returns a static NUL-terminated string, needs no started PHP.
    unsafe { CStr::from_ptr(howdah_c_php_version()) }.to_string_lossy().into_owned()
}

/// Starts PHP. Once per process, before any fork. The error is what the shim returned; details went to standard error.
pub(crate) fn start(spec: &BootSpec, warm_up: Vec<WarmUpRequest>) -> Result<(), String> {
    let (targets, requests): (Vec<_>, Vec<_>) = warm_up.into_iter().map(|one| (one.target, one.words)).unzip();
    warmup_report::targets(targets);
    let warmup: Vec<*const WireRequest> = requests.into_iter().map(|words| Box::leak(words).as_ptr().cast()).collect();
    let boot = Boot {
        worker: Box::leak(Box::new(spec.worker.clone())),
        n_warmup: warmup.len(),
        warmup: warmup.leak().as_ptr(),
        sandbox: spec.sandbox.profile == SandboxProfile::App,
    };
    // SAFETY: the structure and all it points to are never freed; called once, by the zygote, which has one thread.
    let status = unsafe { howdah_c_startup(Box::leak(Box::new(boot))) };
    if status == 0 { Ok(()) } else { Err(format!("PHP {} did not start (status {status})", version())) }
}

/// Renews what a forked PHP must renew.
pub(crate) fn after_fork() {
    // SAFETY: PHP was started before the fork; called once in the child before anything else of PHP.
    unsafe { howdah_c_after_fork() }
}

/// Has OPcache compile the async library. Only in a process that ends afterwards.
pub(crate) fn compile_library() {
    // SAFETY: PHP was started before the fork that made this process; its bailouts are caught inside.
    unsafe { howdah_c_compile_library() }
}

/// Workers that are forked from now on run warm-up requests only where what they leave is undone.
pub(crate) fn refuse_warmup() {
    // SAFETY: sets a flag of the shim; this process has one thread.
    unsafe { howdah_c_refuse_warmup() }
}

/// Forks a child of this process's parent; 0 in the child.
pub(crate) fn fork_sibling() -> std::io::Result<i32> {
    // SAFETY: this process has one thread, so the child is a complete copy; called after the snapshot was taken.
    match unsafe { howdah_c_fork_sibling() } {
        -1 => Err(std::io::Error::last_os_error()),
        pid => Ok(pid),
    }
}

/// Runs requests until the worker shall end.
pub(crate) fn run_worker() -> i32 {
    // SAFETY: PHP is started, and the lane that the shim will use through bridge.rs is attached. PHP's bailouts are
    // caught inside; no Rust frame is skipped.
    unsafe { howdah_c_worker_run() }
}

/// Ends PHP in this process.
pub(crate) fn shutdown() {
    // SAFETY: PHP was started in this process or its parent, and no request is active.
    unsafe { howdah_c_shutdown() }
}

/// Writes the PHP stack as text; async-signal-safe.
pub(crate) fn dump_stack(buffer: &mut [u8]) -> usize {
    // SAFETY: the buffer is valid for its length; the function only reads PHP's memory.
    let n = unsafe { howdah_c_dump_stack(buffer.as_mut_ptr().cast(), buffer.len()) };
    n.min(buffer.len())
}
