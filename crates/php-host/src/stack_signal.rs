//! Reports the PHP stack to the server before it kills a worker for its deadline.
//!
//! The handler runs on a separate stack and the script may have left the process in any state. So it does only what
//! signal-safety(7) allows: it reads memory and sends one datagram. If reading crashes, the worker dies a moment
//! earlier than it would have anyway. The handler never returns: a script whose `sleep()` or query was cut short by the
//! signal must not continue and answer as if nothing had happened.

use howdah_transport::STACK_SIGNAL;
use howdah_transport::control_socket::TAG_STACK;
use std::cell::UnsafeCell;
use std::ffi::c_int;
use std::sync::atomic::{AtomicI32, Ordering};

const STACK_LEN: usize = 64 * 1024;
const TEXT_LEN: usize = 8 * 1024;

/// The worker's control socket, for the handler.
static SOCKET: AtomicI32 = AtomicI32::new(-1);

/// Memory that only signal handlers use.
#[repr(align(64))]
struct HandlerMemory<const N: usize>(UnsafeCell<[u8; N]>);

// SAFETY: only the main thread handles signals, and the handler blocks its own while it runs: one user at a time.
unsafe impl<const N: usize> Sync for HandlerMemory<N> {}

static STACK: HandlerMemory<STACK_LEN> = HandlerMemory(UnsafeCell::new([0; STACK_LEN]));
static TEXT: HandlerMemory<TEXT_LEN> = HandlerMemory(UnsafeCell::new([0; TEXT_LEN]));

/// Installs the handler. `socket` stays open as long as the process.
pub(crate) fn install(socket: c_int) {
    SOCKET.store(socket, Ordering::Relaxed);
    // SAFETY: plain system calls with valid structures; the alternate stack is static memory used for nothing else.
    unsafe {
        let stack = libc::stack_t { ss_sp: STACK.0.get().cast(), ss_flags: 0, ss_size: STACK_LEN };
        libc::sigaltstack(&raw const stack, std::ptr::null_mut());
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handle as extern "C" fn(c_int) as usize;
        action.sa_flags = libc::SA_ONSTACK | libc::SA_RESTART;
        libc::sigaction(STACK_SIGNAL.as_raw(), &raw const action, std::ptr::null_mut());
    }
}

/// Forgets the socket in a process that was forked from the worker and has closed its copy.
pub(crate) fn forget() {
    SOCKET.store(-1, Ordering::Relaxed);
}

extern "C" fn handle(_: c_int) {
    // SAFETY: see `HandlerMemory`; this is the only reference while the handler runs.
    let text = unsafe { &mut *TEXT.0.get() };
    text[0] = TAG_STACK;
    let n = crate::php::dump_stack(&mut text[1..]);
    // SAFETY: send(2) and pause(2) are async-signal-safe; the buffer is valid.
    unsafe {
        let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
        libc::send(SOCKET.load(Ordering::Relaxed), text.as_ptr().cast(), n + 1, flags);
        // The server kills this process next.
        loop {
            libc::pause();
        }
    }
}
