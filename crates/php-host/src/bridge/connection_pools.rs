//! Numbers of scripts' connection pools, for the server.

use super::{bytes, host};
use howdah_transport::wire::{POOL_NUMBERS, PoolNumber};
use std::ffi::{c_char, c_uint};

/// Names a connection pool of this worker, one of POOL_SLOTS. The name and the numbers (`pool_number`) are only written
/// to shared memory, which the server reads on demand. A script's child must not call these functions.
#[unsafe(no_mangle)]
extern "C" fn howdah_rs_pool_name(slot: c_uint, name: *const c_char, length: usize) {
    if let Some(host) = host() {
        // SAFETY: C's promise in bridge.h.
        host.lane.set_pool_name(slot as usize, unsafe { bytes(name, length) });
    }
}

/// Name of a connection pool's number in PHP and in the metrics; NULL after the last.
#[unsafe(no_mangle)]
extern "C" fn howdah_rs_pool_number_name(number: c_uint) -> *const c_char {
    PoolNumber::NAMES.get(number as usize).map_or(std::ptr::null(), |name| name.as_ptr())
}

/// Sets the numbers of a connection pool, in the order of `pool_number`. See `howdah_rs_pool_name()`.
/// cbindgen:ptrs-as-arrays=[[numbers; POOL_NUMBERS]]
#[unsafe(no_mangle)]
extern "C" fn howdah_rs_pool_numbers(slot: c_uint, numbers: *const u64) {
    // SAFETY: C passes an array of `POOL_NUMBERS` or NULL; it is borrowed for the length of this call.
    let numbers = unsafe { numbers.cast::<[u64; POOL_NUMBERS]>().as_ref() };
    if let (Some(host), Some(numbers)) = (host(), numbers) {
        host.lane.set_pool_numbers(slot as usize, numbers);
    }
}
