//! Certificates, and the server's side of TLS.
#![forbid(unsafe_code)]
