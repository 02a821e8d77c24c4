//! The clock for the time at which a worker began a request.

/// Microseconds of `CLOCK_MONOTONIC`, which all processes share, truncated to 32 bits: it wraps around after 71
/// minutes. Never 0, which stands for "not begun".
pub fn monotonic_us() -> u32 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    let micros = (now.tv_sec as u64).wrapping_mul(1_000_000).wrapping_add(now.tv_nsec as u64 / 1000) as u32;
    micros.max(1)
}
