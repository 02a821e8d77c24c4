//! See `howdah_websocket::fuzz::frames`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| howdah_websocket::fuzz::frames(data));
