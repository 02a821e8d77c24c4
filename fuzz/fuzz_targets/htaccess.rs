//! See `howdah_site::fuzz_htaccess::htaccess`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| howdah_site::fuzz_htaccess::htaccess(data));
