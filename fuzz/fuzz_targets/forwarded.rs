//! See `howdah_site::fuzz::forwarded_fields`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| howdah_site::fuzz::forwarded_fields(data));
