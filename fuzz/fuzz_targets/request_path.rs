//! See `howdah_http::fuzz::request_path`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| howdah_http::fuzz::request_path(data));
