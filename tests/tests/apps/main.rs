//! Real applications from Debian's packages, unmodified, under Howdah and under nginx with PHP-FPM: every step of a visit is
//! taken on both, and the answers are compared byte for byte once nonces, times and random ids are replaced by words.
//!
//! `make test-apps` fetches the packages and runs this; it is slow and not a part of `make test`.

// Everything here is a test or a helper of one.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod browser;
mod database;
mod dokuwiki;
mod files;
mod growth;
mod laravel;
mod normal;
mod packaged;
mod pair;
mod symfony;
mod wordpress;
mod wordpress_recipe;
mod wordpress_snapshot;
