//! Events and requests of a worker that runs many requests at once.

use super::{Host, host, running};
use crate::open_request::OpenRequest;
use howdah_transport::Event;
use howdah_transport::wire::WireRequest;
use std::ffi::{c_int, c_uint};
use std::os::fd::{AsRawFd, IntoRawFd};

/// An event from the server.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EventKind {
    None,
    Request,
    Cancel,
    Stop,
    Text,
}

/// The descriptor to wait on, edge-triggered: the server writes to it if it sends something after the worker announced
/// that it waits; it is never read. -1 in other modes. It belongs to the bridge: do not read or close it.
#[unsafe(no_mangle)]
extern "C" fn howdah_rs_wake_fd() -> c_int {
    host().and_then(|host| host.lane.wake_fd()).map_or(-1, |fd| fd.as_raw_fd())
}

/// Publishes everything, then announces that the worker will wait on the descriptor. Returns false if there is an event
/// already; take it first.
#[unsafe(no_mangle)]
extern "C" fn howdah_rs_prepare_wait() -> bool {
    host().is_some_and(|host| host.lane.prepare_wait())
}

/// Withdraws the announcement after the wait, whatever ended it.
#[unsafe(no_mangle)]
extern "C" fn howdah_rs_woken() {
    if let Some(host) = host() {
        host.lane.woken();
    }
}

/// Makes everything written so far visible to the server and wakes it if it sleeps.
#[unsafe(no_mangle)]
extern "C" fn howdah_rs_publish() {
    if let Some(host) = host() {
        host.lane.publish();
    }
}

/// Selects the open request to which body, head, output, log lines and end belong from now on; 0, or a request that is
/// not open: none. Cheap. Must not be called between howdah_rs_head_begin() and howdah_rs_head_end(). howdah_rs_done()
/// leaves none selected.
#[unsafe(no_mangle)]
extern "C" fn howdah_rs_select_request(number: u64) {
    let Some(host) = host() else { return };
    if host.lane.number() == number || !host.is_multiplexed() {
        return;
    }
    if let Some(mut current) = host.current.take() {
        current.pause();
        host.others.insert(host.lane.number(), current);
    }
    host.current = host.others.remove(&number);
    if let Some(current) = host.current.as_mut() {
        current.run();
    }
    let number = if host.current.is_some() { number } else { 0 };
    running::select(number);
    host.lane.select(number);
}

/// Returns the script's end of a stream to the server, with which the selected request's script may hold its client's
/// WebSocket connection; the caller closes it. -1: there is none, or it was taken before. Layout: howdah_part_head, then
/// the bytes that it announces.
#[unsafe(no_mangle)]
extern "C" fn howdah_rs_take_stream() -> c_int {
    let stream = host().and_then(|host| host.current.as_mut()).and_then(|current| current.take_stream());
    stream.map_or(-1, IntoRawFd::into_raw_fd)
}

impl Host {
    /// Returns the next event; skips cancellations of requests that have ended.
    fn take_event(&mut self, request: &mut *const WireRequest, number: &mut u64, reason: &mut c_uint) -> EventKind {
        loop {
            match self.lane.take_event() {
                Ok(None) => return EventKind::None,
                Ok(Some(Event::Stop)) => return EventKind::Stop,
                Ok(Some(Event::Request(taken))) => {
                    *number = taken.number;
                    let mut open = self.spare.pop().unwrap_or_else(|| Box::new(OpenRequest::none()));
                    open.take(taken);
                    *request = open.request().unwrap_or(std::ptr::null());
                    self.others.insert(*number, open);
                    return EventKind::Request;
                }
                Ok(Some(Event::Cancel { number: of, reason: why })) => {
                    let selected = self.current.as_mut().filter(|_| self.lane.number() == of);
                    // Ignore requests that have ended in the meantime.
                    if let Some(open) = selected.or_else(|| self.others.get_mut(&of)) {
                        open.cancelled = true;
                        *number = of;
                        *reason = why;
                        return EventKind::Cancel;
                    }
                }
                Ok(Some(Event::Text(text))) => {
                    *number = text.into_raw_fd().cast_unsigned().into();
                    return EventKind::Text;
                }
                Err(error) => {
                    eprintln!("howdah-php: {error}");
                    return EventKind::Stop;
                }
            }
        }
    }
}

/// Returns the next event from the server; never waits. REQUEST: `*request` and `*number` are set; the memory (laid out
/// as for howdah_rs_next_request()) belongs to the request until its howdah_rs_done(); it is not selected yet. CANCEL:
/// `*number` is a request that is not done, and `*reason` is CANCEL_CLIENT_GONE or CANCEL_DEADLINE; howdah_rs_write()
/// and howdah_rs_flush() return false for that request from now on. If a request does not end within a few seconds
/// after its deadline, the worker is killed. STOP, once: no request follows, end with the last one; CANCEL may still
/// come. TEXT: `*number` is the answer to the oldest unanswered question of howdah_rs_live_ask_later(), a descriptor
/// of its text that the caller closes.
#[unsafe(no_mangle)]
extern "C" fn howdah_rs_take_event(
    request: *mut *const WireRequest,
    number: *mut u64,
    reason: *mut c_uint,
) -> EventKind {
    let Some(host) = host().filter(|host| host.is_multiplexed()) else { return EventKind::None };
    let (mut its_request, mut its_number, mut its_reason) = (std::ptr::null(), 0, 0);
    let kind = host.take_event(&mut its_request, &mut its_number, &mut its_reason);
    // SAFETY: C's promise in bridge.h: three valid pointers, with no other user during the call.
    unsafe {
        request.write(its_request);
        number.write(its_number);
        reason.write(its_reason);
    }
    kind
}

#[cfg(test)]
#[path = "multiplexed_tests.rs"]
mod tests;
