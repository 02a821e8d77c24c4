//! Orders of scripts for connections and channels.

use super::{bytes, host};
use howdah_transport::live_order::{LiveField, LiveKind};
use std::ffi::c_char;

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
