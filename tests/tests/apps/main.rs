//! Real applications from Debian's packages, unmodified, under Howdah and under nginx with PHP-FPM. Every step of a
//! visit is taken on both, and the responses are compared byte for byte after nonces, times and random ids are
//! replaced.
//!
//! `make test-apps` fetches the packages and runs this; it is slow and not part of `make test`.
//!
//! Each application runs in every mode for which it has a script. Exceptions:
//! - **worker and async mode for WordPress, DokuWiki and all of `packaged`**: their scripts run only once. They define
//!   functions and constants, keep the visitor in globals and end with `exit()`, so they cannot run in a loop.
//! - **snapshot mode for `packaged` but DokuWiki**, which has its own test: MediaWiki and phpMyAdmin read the request
//!   within their first milliseconds (docs/internals/tested-applications.md has the figures); the others have not been
//!   examined.
//! - **worker mode for Laravel**: that is Octane's loop, which Debian does not package. `server/recipes.rs` has a stand-in.
//! - **async mode for Symfony and Laravel**: both keep the current request in services, which all requests would share.

// Everything here is a test or a test helper.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod browser;
mod database;
mod dokuwiki;
mod files;
mod fronts;
mod growth;
mod laravel;
mod normal;
mod packaged;
mod pair;
mod symfony;
mod wordpress;
mod wordpress_recipe;
mod wordpress_snapshot;
