//! See `howdah_site::fuzz::answer_head`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| howdah_site::fuzz::answer_head(data));
