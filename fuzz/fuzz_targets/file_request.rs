//! See `howdah_site::fuzz::file_request`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| howdah_site::fuzz::file_request(data));
