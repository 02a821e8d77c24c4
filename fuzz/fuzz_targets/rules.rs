//! See `howdah_rules::fuzz::rules`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| howdah_rules::fuzz::rules(data));
