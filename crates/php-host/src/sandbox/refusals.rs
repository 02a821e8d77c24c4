//! Logs system calls that the filters refuse, and makes them fail like the kernel's own refusals.
//!
//! The kernel sends SIGSYS instead of executing a refused call. The handler writes one line to standard error, which
//! the server reads (a process writes at most 20 lines per second), and returns with EPERM as the call's result. The
//! script may have left the process in any state, so the handler does only what signal-safety(7) allows. A thread that
//! blocks SIGSYS, or a script that replaces the handler, gains nothing: the call is not made; the process is then
//! killed, or the script's handler runs.

use super::system_calls;
use crate::php;
use libc::c_long;
use std::ffi::{c_int, c_void};
use std::io::Write;

const LINE: usize = 1024;

/// Installs the handler, on the alternate stack that `stack_signal` has set up.
pub(crate) fn install() {
    // SAFETY: a plain system call with a valid structure.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = refused as extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_RESTART;
        libc::sigaction(libc::SIGSYS, &raw const action, std::ptr::null_mut());
    }
}

extern "C" fn refused(_: c_int, _: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the kernel passes the context of the interrupted thread, which has no other user meanwhile.
    let context = unsafe { &mut *context.cast::<libc::ucontext_t>() };
    let call = answer(context);
    // SAFETY: the address of this thread's errno, which the interrupted code may be about to read.
    let errno = unsafe { *libc::__errno_location() };
    if php::may_log_refusal() {
        let mut line = [0u8; LINE];
        let length = compose(&mut line, call);
        // SAFETY: write(2) is async-signal-safe, the buffer is valid. If the line cannot be written, it is lost.
        unsafe { libc::write(libc::STDERR_FILENO, line.as_ptr().cast(), length) };
    }
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = errno };
}

/// Sets the result of the refused call; returns its number.
#[cfg(target_arch = "x86_64")]
fn answer(context: &mut libc::ucontext_t) -> c_long {
    let register = &mut context.uc_mcontext.gregs[libc::REG_RAX as usize];
    std::mem::replace(register, -i64::from(libc::EPERM))
}

/// Sets the result of the refused call; returns its number.
#[cfg(target_arch = "aarch64")]
fn answer(context: &mut libc::ucontext_t) -> c_long {
    context.uc_mcontext.regs[0] = (-i64::from(libc::EPERM)) as u64;
    context.uc_mcontext.regs[8] as c_long
}

/// Formats the line; returns its length.
fn compose(line: &mut [u8; LINE], call: c_long) -> usize {
    let mut place = [0u8; LINE / 2];
    let place_length = php::place(&mut place);
    let mut rest = &mut line[..LINE - 1];
    let name = system_calls::name_of(call);
    // Neither allocates: the destination is a slice, and text that does not fit is dropped.
    let _ = write!(rest, "sandbox: refused system call {name} ({call}) ");
    let _ = rest.write(&place[..place_length]);
    let used = LINE - 1 - rest.len();
    for byte in line[..used].iter_mut().filter(|byte| byte.is_ascii_control()) {
        *byte = b'?';
    }
    line[used] = b'\n';
    used + 1
}
