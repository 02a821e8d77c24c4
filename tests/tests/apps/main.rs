//! Real applications from Debian's packages, unmodified, under Howdah and under nginx with PHP-FPM: every step of a visit is
//! taken on both, and the answers are compared byte for byte once nonces, times and random ids are replaced by words.
//!
//! `make test-apps` fetches the packages and runs this; it is slow and not a part of `make test`.
//!
//! Each application runs in every mode that it has a script for. Left out:
//! - **worker and async mode for WordPress, DokuWiki and all of `packaged`**: their scripts run once. They define functions
//!   and constants, keep the visitor in globals and end by `exit()`, so nothing of them can be a loop.
//! - **snapshot mode for `packaged` but DokuWiki**, which has a test of its own: MediaWiki and phpMyAdmin read the request
//!   within their first milliseconds (docs/internals/tested-applications.md has the figures), and nobody has looked into the others.
//! - **worker mode for Laravel**: that is Octane's loop, which Debian does not package. `server/recipes.rs` has a stand-in.
//! - **async mode for Symfony and Laravel**: both keep the request that runs in services that all requests would share.

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
