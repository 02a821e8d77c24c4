//! The template of a snapshot pool: a process in which the application has booted, and from which workers are forked.
//!
//! While there is no template, one worker boots. When its snapshot is taken and warm, it forks the template, a sibling,
//! and continues as a worker. The template closes the lane, receives orders that the zygote forwards, and forks a
//! worker for each. These are siblings too, so that the zygote reaps them and they do not depend on the template's
//! fate.

use crate::worker_lane::{self, Descriptors};
use crate::{bridge, child, php, sandbox};
use howdah_transport::control_socket;
use howdah_transport::zygote_protocol::{FromZygote, ToZygote};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::DupFlags;
use rustix::process::Pid;
use std::cell::Cell;
use std::ffi::{CStr, c_char, c_int};
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

/// Maximum number of areas in one message.
const MAX_STORED_AREAS: usize = 512;

/// Socket on which a booting worker reports its boot.
struct Offer {
    socket: OwnedFd,
    zygote: Pid,
    /// The worker that boots.
    worker: Pid,
}

/// The offer of a booting worker; taken once.
struct OfferCell(Cell<Option<Offer>>);

// SAFETY: the process has one thread.
unsafe impl Sync for OfferCell {}

static OFFER: OfferCell = OfferCell(Cell::new(None));

/// Makes this worker report through the socket, after its boot, whether others can be forked from it.
pub(crate) fn expect(socket: OwnedFd, zygote: Pid) {
    OFFER.0.set(Some(Offer { socket, zygote, worker: rustix::process::getpid() }));
}

/// Snapshot mode: the application has booted and workers may be forked from this process, unless `why_not` is a reason
/// against it. Returns false in this worker, and true in each forked worker, which has its own lane then.
#[unsafe(no_mangle)]
extern "C" fn howdah_rs_share_boot(why_not: *const c_char, boot_began_us: u64) -> bool {
    // SAFETY: C passes NULL or a text that is valid for the duration of the call.
    let why_not = (!why_not.is_null()).then(|| unsafe { CStr::from_ptr(why_not) }.to_string_lossy());
    share_boot(why_not.as_deref(), boot_began_us)
}

/// Implements `howdah_rs_share_boot`.
fn share_boot(why_not: Option<&str>, boot_began_us: u64) -> bool {
    let Some(offer) = OFFER.0.take() else { return false };
    let forked = match why_not {
        Some(why) => Err(why.to_owned()),
        None => php::fork_sibling().map_err(|error| format!("cannot fork the template: {error}")),
    };
    let message = match forked {
        Ok(0) => return serve(offer, boot_began_us),
        Ok(pid) => {
            sandbox::separate_from_forks();
            FromZygote::Template { pid: pid as u32, boot_began_us }
        }
        Err(why) => FromZygote::Unshared { why },
    };
    let _ = send(&offer.socket, &message);
    plug(offer.socket);
    false
}

/// Memory that is stored in the snapshot's file.
#[repr(C)]
struct StoredArea {
    /// Its addresses, in the zygote and all its workers.
    start: u64,
    end: u64,
    /// Its place in the file.
    offset: u64,
}

/// Snapshot mode: sends the zygote the sealed file with the snapshot's memory, before `howdah_rs_share_boot()`.
#[unsafe(no_mangle)]
extern "C" fn howdah_rs_offer_file(file: c_int, areas: *const StoredArea, n: usize) {
    // SAFETY: C passes an array of `n`, and a descriptor that stays open for as long as the process.
    let (areas, file) = unsafe { (std::slice::from_raw_parts(areas, n), BorrowedFd::borrow_raw(file)) };
    let Some(offer) = OFFER.0.take() else { return };
    let numbers: Vec<_> = areas.iter().take(MAX_STORED_AREAS).map(|area| [area.start, area.end, area.offset]).collect();
    // If it does not arrive, the zygote keeps its own copies.
    if let Ok(message) = serde_json::to_vec(&numbers) {
        let _ = control_socket::send(&offer.socket, &message, &[file], false);
    }
    OFFER.0.set(Some(offer));
}

/// `true` if this worker boots for others and has not reported the result yet.
pub(crate) fn is_expected() -> bool {
    let offer = OFFER.0.take();
    let expected = offer.is_some();
    OFFER.0.set(offer);
    expected
}

/// Sends the zygote a message about this worker's boot before it offers the boot. `message` gets the worker's process
/// id, as this process may be a fork of it.
pub(crate) fn report(message: impl FnOnce(u32) -> FromZygote) {
    if let Some(offer) = OFFER.0.take() {
        let _ = send(&offer.socket, &message(offer.worker.as_raw_nonzero().get() as u32));
        OFFER.0.set(Some(offer));
    }
}

fn send(socket: &OwnedFd, message: &FromZygote) -> io::Result<()> {
    control_socket::send(socket, &serde_json::to_vec(message)?, &[], false)
}

/// Closes a descriptor but keeps its number occupied: descriptors opened by a request must have higher numbers than all
/// that were open at the snapshot.
fn plug(mut socket: OwnedFd) {
    if let Ok(null) = rustix::fs::open("/dev/null", rustix::fs::OFlags::RDWR, rustix::fs::Mode::empty())
        && rustix::io::dup3(&null, &mut socket, DupFlags::CLOEXEC).is_ok()
    {
        std::mem::forget(socket);
    }
}

/// The template's loop: forks a worker for each order. Returns true in the workers; exits when its socket closes.
fn serve(offer: Offer, boot_began_us: u64) -> bool {
    child::die_with(offer.zygote);
    let _ = bridge::leave();
    loop {
        let Ok(Some((bytes, fds))) = control_socket::receive(&offer.socket, false) else { child::exit(0) };
        let Ok(ToZygote::Fork { worker }) = serde_json::from_slice(&bytes) else { child::exit(0) };
        drop(bytes);
        // The zygote gives the order to another worker, which boots.
        if is_dismissed(&offer.socket) || php::boot_is_outdated(boot_began_us) {
            child::exit(0);
        }
        match fork_worker(&offer, worker, fds) {
            Ok(None) => return true,
            Ok(Some(())) => {}
            Err(error) => {
                if send(&offer.socket, &FromZygote::ForkFailed { worker, error: error.to_string() }).is_err() {
                    child::exit(0);
                }
            }
        }
    }
}

/// `true` if the zygote will send no more orders; another template executes those that are unread.
fn is_dismissed(socket: &OwnedFd) -> bool {
    let mut socket = [PollFd::new(socket, PollFlags::RDHUP)];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    matches!(poll(&mut socket, Some(&now)), Ok(1..))
}

/// `None` in the worker.
fn fork_worker(offer: &Offer, worker: u32, fds: Vec<OwnedFd>) -> io::Result<Option<()>> {
    let fds = Descriptors::new(fds).ok_or_else(|| io::Error::other("a fork order lacks its descriptors"))?;
    // The worker waits at this gate until the zygote knows of it: an unknown worker must not take a lane.
    let (gate, opener) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    let pid = php::fork_sibling()?;
    if pid != 0 {
        drop(gate);
        send(&offer.socket, &FromZygote::Forked { worker, pid: pid as u32 })?;
        // If the worker is dead already, the zygote notices.
        let _ = rustix::io::write(&opener, &[1]);
        return Ok(Some(()));
    }
    drop(opener);
    child::die_with(offer.zygote);
    if !matches!(rustix::io::read(&gate, &mut [0u8; 1]), Ok(1)) {
        // The template was killed before its report. If the zygote knows this worker, an exit would look like a failed
        // boot; so it ends as its template did: killed.
        let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
        child::exit(0);
    }
    worker_lane::take_lane(worker, fds);
    // Everything else was inherited from the worker that booted.
    sandbox::enter_sibling();
    Ok(None)
}
