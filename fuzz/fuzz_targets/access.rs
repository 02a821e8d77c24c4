//! See `howdah_site::fuzz_access::access`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| howdah_site::fuzz_access::access(data));
