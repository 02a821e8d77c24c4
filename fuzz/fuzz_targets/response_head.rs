//! See `howdah_site::fuzz::response_head`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| howdah_site::fuzz::response_head(data));
