//! The shim's C functions, each wrapped once.

use howdah_transport::wire::WireRequest;
use howdah_transport::zygote_protocol::BootSpec;
use howdah_transport::{SandboxProfile, WorkerSpec};
use std::ffi::{CStr, CString, c_char, c_int};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// The version whose headers the shim was compiled with.
pub(crate) const BUILT_AGAINST: &str = env!("HOWDAH_PHP_BUILT_AGAINST");
/// The library with which this program was linked, and which it loads.
pub(crate) const BUILT_WITH: &str = env!("HOWDAH_LIBPHP");

/// Input of `howdah_c_startup()`. C keeps the pointer: the structure and everything it points to live as long as the
/// process.
#[repr(C)]
struct Boot {
    /// Settings of workers.
    worker: *const WorkerSpec,
    /// Requests that a new worker runs before it takes others, laid out as in a lane.
    warmup: *const *const WireRequest,
    n_warmup: usize,
    /// `howdah_c_sandbox_code()` will follow.
    sandbox: bool,
}

// SAFETY: the declarations match bridge.h; each function's conditions are stated where it is called.
unsafe extern "C" {
    /// Starts PHP (modules, ini, OPcache, preload). Called once, in the zygote, before any fork. 0 on success. `boot`
    /// and all it points to live as long as the process.
    fn howdah_c_startup(boot: *const Boot) -> c_int;
    /// Called in the child after a fork, before any other PHP function: renews everything that a forked PHP must renew
    /// (random state, signal handlers).
    fn howdah_c_after_fork();
    /// Snapshot mode: forks a child of this process's parent, with separate locks and files. Returns like fork().
    fn howdah_c_fork_sibling() -> c_int;
    /// Async mode, in a process that the zygote has forked for this: has OPcache compile the library, which workers
    /// then find in shared memory. A PHP request stays open, so the process must end afterwards.
    fn howdah_c_compile_library();
    /// Snapshot mode: workers forked from now on run warm-up requests only if their effects are undone.
    fn howdah_c_refuse_warmup();
    /// Snapshot mode: `true` if a worker forked from the boot that began at this time cannot get its connections.
    fn howdah_c_boot_is_outdated(boot_began_us: u64) -> bool;
    /// Runs requests until the server sends no more or the worker must retire. Returns the process's exit
    /// status; the caller calls howdah_c_shutdown() and then _exit().
    fn howdah_c_worker_run() -> c_int;
    /// Ends PHP in this process (module shutdown), in a worker or in the zygote.
    fn howdah_c_shutdown();
    /// Writes the current PHP stack of this process as text ("#0 /path/file.php:12 function()\n"...) into `buffer`,
    /// returns the length. Async-signal-safe: reads memory only, allocates nothing.
    fn howdah_c_dump_stack(buffer: *mut c_char, size: usize) -> usize;
    /// Reads the lines of execution of the worker whose memory this descriptor refers to, at most `most`; `all`: their
    /// total number. Without a request or a coroutine there are none, unless `idle` is set. For the zygote, in which
    /// all PHP variables have the same addresses as in its workers.
    fn howdah_c_read_lines(memory: c_int, idle: bool, lines: *mut Line, most: usize, all: *mut usize) -> usize;
    /// Reads the frames from this one outwards. Returns the number of frames read.
    fn howdah_c_read_stack(memory: c_int, innermost: u64, frames: *mut Frame, most: usize) -> usize;
    /// Reads the name of a frame's function. `false`: the function no longer exists.
    fn howdah_c_read_function(memory: c_int, function: u64, name: *mut FunctionName) -> bool;
    /// Reads the first string among a frame's first three arguments or, with `of_statement`, the query of the PDO
    /// statement whose method it is. Returns its length, at most `size`.
    fn howdah_c_read_query(memory: c_int, frame: u64, of_statement: bool, text: *mut c_char, size: usize) -> usize;
    /// Reads the C string at this address. Returns its length, at most `size`.
    fn howdah_c_read_text(memory: c_int, address: u64, text: *mut c_char, size: usize) -> usize;
    /// PHP's version, e.g. "8.2.35"; before PHP has started, that of its headers.
    fn howdah_c_php_version() -> *const c_char;
    /// Version of the loaded libphp: 80200 for 8.2.0 and any other 8.2. Works before PHP is started.
    fn howdah_c_loaded_version() -> u32;
    /// Path of that libphp; NULL if the dynamic linker does not know it. Never freed.
    fn howdah_c_loaded_library() -> *const c_char;
    /// Maximum size of a form that PHP reads before a script runs, in bytes; 0 without a limit, or if PHP does not
    /// parse forms.
    fn howdah_c_form_limit() -> u64;
    /// The current value of an ini setting, or NULL. Valid until PHP changes it.
    fn howdah_c_setting(name: *const c_char) -> *const c_char;
    /// Prints phpinfo() or (`modules`) the names of all modules on standard output. Only in a process that serves no
    /// requests.
    fn howdah_c_print(modules: bool);
    /// Sets the rules of the pool's sandbox. Called once, in the zygote, after howdah_c_startup(). The rules live as
    /// long as the process. `no_programs`: the kernel refuses to run any, and attempts are logged.
    fn howdah_c_sandbox_code(rules: *const CodeRule, n: usize, no_programs: bool);
    /// Writes the current PHP location and request ("in /path/file.php:12 (/uri)"), returns the length.
    /// Async-signal-safe.
    fn howdah_c_place(buffer: *mut c_char, size: usize) -> usize;
    /// `true` if one more refusal may be logged in this second. Async-signal-safe.
    fn howdah_c_may_log_refusal() -> bool;
}

/// A directory that workers may write to: files below it are never PHP or, with `code`, may be included.
#[repr(C)]
struct CodeRule {
    /// Canonical path.
    path: *const c_char,
    length: usize,
    code: bool,
}

/// A line of execution in a worker; addresses refer to its memory.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Line {
    /// Numbers of the coroutine and of its request; both 0 outside of async mode.
    pub(crate) coroutine: u64,
    pub(crate) request: u64,
    /// The innermost frame.
    pub(crate) frame: u64,
    /// Text that describes what it waits for; 0: it is running.
    pub(crate) waits_for: u64,
}

/// A frame of a worker's stack; addresses refer to its memory.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Frame {
    pub(crate) frame: u64,
    pub(crate) function: u64,
    /// Distinguishes functions that have had the same address.
    pub(crate) mark: u64,
    /// 0 in a function of PHP itself.
    pub(crate) line: u32,
}

/// Name of a function, and its source file.
#[repr(C)]
pub(crate) struct FunctionName {
    pub(crate) length: u32,
    pub(crate) file_length: u32,
    pub(crate) text: [c_char; 256],
    pub(crate) file: [c_char; 256],
}

/// Reads the lines of execution of a worker. Returns the number read, and the total number. `idle`: also without a
/// request.
pub(crate) fn read_lines(memory: BorrowedFd<'_>, idle: bool, lines: &mut [Line]) -> (usize, usize) {
    let mut all = 0;
    // SAFETY: the array has this many elements; the function only reads the descriptor and writes at most that many.
    let n = unsafe { howdah_c_read_lines(memory.as_raw_fd(), idle, lines.as_mut_ptr(), lines.len(), &raw mut all) };
    (n.min(lines.len()), all)
}

/// Reads a worker's frames from this one outwards.
pub(crate) fn read_stack(memory: BorrowedFd<'_>, innermost: u64, frames: &mut [Frame]) -> usize {
    // SAFETY: as above.
    let n = unsafe { howdah_c_read_stack(memory.as_raw_fd(), innermost, frames.as_mut_ptr(), frames.len()) };
    n.min(frames.len())
}

/// Name of a worker's function, empty for top-level code of a file, and its file.
pub(crate) fn read_function(memory: BorrowedFd<'_>, function: u64) -> Option<(String, String)> {
    let mut name = FunctionName { length: 0, file_length: 0, text: [0; 256], file: [0; 256] };
    // SAFETY: the function writes only this structure.
    let known = unsafe { howdah_c_read_function(memory.as_raw_fd(), function, &raw mut name) };
    let text = |chars: &[c_char], length: u32| {
        let bytes: Vec<u8> = chars.iter().take(length as usize).map(|&char| char as u8).collect();
        String::from_utf8_lossy(&bytes).into_owned()
    };
    known.then(|| (text(&name.text, name.length), text(&name.file, name.file_length)))
}

/// The query that a worker's frame sends or waits for, if any.
pub(crate) fn read_query(memory: BorrowedFd<'_>, frame: u64, of_statement: bool, most: usize) -> Option<String> {
    let mut text = vec![0u8; most];
    let at = text.as_mut_ptr().cast();
    // SAFETY: the buffer has this many bytes.
    let n = unsafe { howdah_c_read_query(memory.as_raw_fd(), frame, of_statement, at, most) };
    (n > 0).then(|| String::from_utf8_lossy(&text[..n.min(most)]).into_owned())
}

/// A C string in a worker's memory.
pub(crate) fn read_text(memory: BorrowedFd<'_>, address: u64) -> String {
    let mut text = [0u8; 64];
    // SAFETY: the buffer has this many bytes.
    let n = unsafe { howdah_c_read_text(memory.as_raw_fd(), address, text.as_mut_ptr().cast(), text.len()) };
    String::from_utf8_lossy(&text[..n.min(text.len())]).into_owned()
}

/// Maximum size of a form that PHP reads before a script runs; `None` without a limit, or if PHP does not parse forms.
pub(crate) fn form_limit() -> Option<u64> {
    // SAFETY: PHP is started; the function reads two of its numbers.
    Some(unsafe { howdah_c_form_limit() }).filter(|limit| *limit > 0)
}

/// The current value of a PHP setting.
pub(crate) fn setting(name: &str) -> Option<String> {
    let name = CString::new(name).ok()?;
    // SAFETY: PHP is started; the name is NUL-terminated, and the value is copied before PHP runs again.
    let value = unsafe { howdah_c_setting(name.as_ptr()) };
    // SAFETY: NULL or a NUL-terminated string.
    (!value.is_null()).then(|| unsafe { CStr::from_ptr(value) }.to_string_lossy().into_owned())
}

/// Prints phpinfo() or the names of all modules on standard output.
pub(crate) fn print(modules: bool) {
    // SAFETY: PHP is started, and no request is active; its bailouts are caught inside.
    unsafe { howdah_c_print(modules) }
}

/// Passes the sandbox's rules to the shim: directories with data, directories with generated code, and whether programs
/// may be run. Called once, in the zygote, after PHP has started.
pub(crate) fn sandbox_code(rules: &[(PathBuf, bool)], no_programs: bool) {
    let rules = rules.iter().filter_map(|(path, code)| {
        let path = CString::new(path.as_os_str().as_bytes()).ok()?;
        Some(CodeRule { length: path.as_bytes().len(), path: path.into_raw().cast_const(), code: *code })
    });
    let rules: &[CodeRule] = rules.collect::<Vec<_>>().leak();
    // SAFETY: the rules and their paths are never freed, as bridge.h requires.
    unsafe { howdah_c_sandbox_code(rules.as_ptr(), rules.len(), no_programs) }
}

/// Writes the current PHP location and request; async-signal-safe.
pub(crate) fn place(buffer: &mut [u8]) -> usize {
    // SAFETY: the buffer is valid for its length; the function only reads PHP's memory.
    let n = unsafe { howdah_c_place(buffer.as_mut_ptr().cast(), buffer.len()) };
    n.min(buffer.len())
}

/// `true` if one more refusal may be logged in this second; async-signal-safe.
pub(crate) fn may_log_refusal() -> bool {
    // SAFETY: needs nothing; it counts in separate memory.
    unsafe { howdah_c_may_log_refusal() }
}

/// PHP's version.
pub(crate) fn version() -> String {
    // SAFETY: returns a static NUL-terminated string, needs no started PHP.
    unsafe { CStr::from_ptr(howdah_c_php_version()) }.to_string_lossy().into_owned()
}

/// Verifies that the loaded libphp has the version for which the shim was compiled. Another version has different
/// structures, and the first access to them would crash. Call this before any other function of PHP.
///
/// # Errors
/// The loaded version, and the remedy.
pub(crate) fn check_library() -> Result<(), String> {
    // SAFETY: looks up a function and calls it; it reads a constant.
    let loaded = unsafe { howdah_c_loaded_version() };
    let loaded = (loaded / 10_000, loaded / 100 % 100);
    if BUILT_AGAINST.starts_with(&format!("{}.{}.", loaded.0, loaded.1)) {
        return Ok(());
    }
    // SAFETY: queries the dynamic linker, which owns the string.
    let library = unsafe { howdah_c_loaded_library() };
    let library = if library.is_null() {
        "unknown".into()
    } else {
        // SAFETY: not NULL, and NUL-terminated.
        unsafe { CStr::from_ptr(library) }.to_string_lossy()
    };
    let short: String = BUILT_AGAINST.splitn(3, '.').take(2).collect::<Vec<_>>().join(".");
    let (major, minor) = loaded;
    Err(format!(
        "this howdah-php was built for PHP {short} (with {BUILT_WITH}), but {library} is PHP {major}.{minor}: reinstall \
         libphp{short}-embed, or install a howdah-php built for PHP {major}.{minor}"
    ))
}

/// Starts PHP. Called once per process, before any fork. `warm_up` has requests as in a lane. The error contains the
/// shim's status; details went to standard error.
pub(crate) fn start(spec: &BootSpec, warm_up: Vec<Box<[u64]>>) -> Result<(), String> {
    let warmup: Vec<*const WireRequest> = warm_up.into_iter().map(|words| Box::leak(words).as_ptr().cast()).collect();
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

/// Renews everything that a forked PHP must renew.
pub(crate) fn after_fork() {
    // SAFETY: PHP was started before the fork; called once in the child before anything else of PHP.
    unsafe { howdah_c_after_fork() }
}

/// Has OPcache compile the async library. Only in a process that ends afterwards.
pub(crate) fn compile_library() {
    // SAFETY: PHP was started before the fork that made this process; its bailouts are caught inside.
    unsafe { howdah_c_compile_library() }
}

/// Workers forked from now on run warm-up requests only if their effects are undone.
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

/// `true` if workers must no longer be forked from the boot that began at this time.
pub(crate) fn boot_is_outdated(boot_began_us: u64) -> bool {
    // SAFETY: reads a number in memory that stays mapped, if PHP has mapped it.
    unsafe { howdah_c_boot_is_outdated(boot_began_us) }
}

/// Runs requests until the worker must end. Returns the exit status.
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
