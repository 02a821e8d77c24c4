//! See `howdah_protocol::fuzz::http3_stream`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| howdah_protocol::fuzz::http3_stream(data));
