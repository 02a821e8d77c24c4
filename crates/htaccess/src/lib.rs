//! Apache's .htaccess files.
#![forbid(unsafe_code)]
