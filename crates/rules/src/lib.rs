//! The rules of a site.
#![forbid(unsafe_code)]
