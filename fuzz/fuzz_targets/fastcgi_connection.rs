//! See `howdah_protocol::fuzz::fastcgi_connection`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| howdah_protocol::fuzz::fastcgi_connection(data));
