//! See `howdah_http::fuzz::answer_head`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| howdah_http::fuzz::answer_head(data));
