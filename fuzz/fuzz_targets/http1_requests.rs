//! See `howdah_protocol::fuzz::http1_requests`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| howdah_protocol::fuzz::http1_requests(data));
