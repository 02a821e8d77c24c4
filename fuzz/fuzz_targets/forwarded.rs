//! See `howdah_http::fuzz::forwarded_fields`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| howdah_http::fuzz::forwarded_fields(data));
