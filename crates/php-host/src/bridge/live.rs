//! Orders of scripts for connections and channels, and questions about them.

use super::{bytes, host};
use howdah_transport::live_order::{LiveField, LiveKind};
use std::ffi::{c_char, c_int};
use std::os::fd::IntoRawFd;

/// Begins an order for connections and channels.
#[unsafe(no_mangle)]
extern "C" fn howdah_rs_live_begin(kind: LiveKind) {
    if let Some(host) = host() {
        host.live.begin(kind as u16);
    }
}

/// Adds a field to the order. Returns false if the order would be too large; it must not be sent then.
#[unsafe(no_mangle)]
extern "C" fn howdah_rs_live_field(name: LiveField, value: *const c_char, length: usize) -> bool {
    let Some(host) = host() else { return true };
    // SAFETY: C's promise in bridge.h.
    host.live.field(name as u16, unsafe { bytes(value, length) })
}

/// Sends the order to the server if a request runs here. May wait for room.
#[unsafe(no_mangle)]
extern "C" fn howdah_rs_live_send() {
    let Some(host) = host() else { return };
    let payload = host.live.finish();
    if host.current.is_some() && host.lane.number() != 0 {
        host.lane.live(&payload);
    }
}

/// Sends the order, which is a question, without waiting; the answer is an event of howdah_rs_take_event(). At most
/// 16 (`MAX_QUESTIONS`) may be unanswered. Returns false if the server cannot be asked. Only in async mode.
#[unsafe(no_mangle)]
extern "C" fn howdah_rs_live_ask_later() -> bool {
    let Some(host) = host() else { return false };
    let question = host.live.finish();
    if host.current.is_none() || host.lane.number() == 0 {
        return false;
    }
    host.lane.ask_live_later(&question);
    true
}

/// Sends the order, which is a question, and waits for the answer: a descriptor of its text that the caller closes; -1:
/// unavailable.
#[unsafe(no_mangle)]
extern "C" fn howdah_rs_live_ask() -> c_int {
    let Some(host) = host() else { return -1 };
    let question = host.live.finish();
    if host.current.is_none() || host.lane.number() == 0 {
        return -1;
    }
    host.lane.ask_live(&question).map_or(-1, IntoRawFd::into_raw_fd)
}
