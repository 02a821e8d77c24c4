//! See `howdah_site::fuzz::request_path`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| howdah_site::fuzz::request_path(data));
