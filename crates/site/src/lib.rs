//! The inner half of the front: interprets requests and responds to them.
//!
//! - The path of a request, and the reading order: `service` (the list of responders), then `phase/*` (one file per
//!   phase). Requests for PHP and for proxies leave through `upstream`.
//! - State: `sites` finds the `site` of a request, and `server` is the state that all sites share. `exchange` holds the
//!   state of one request; `applied_rules` holds the settings that rules made for it.
//! - Parts of a site that use none of these: `static_files`, `withheld`, `sendfile`, `compress`, `blocking_threads`
//!   (expensive work on separate threads) and `preferred_pool` (the pool that has booted the site's application).
//!   `live` follows scripts' orders for connections and channels.
//! - Requests of the server itself: `server_request`, `warm_up` for new workers, and `explain`, which runs the same
//!   code to find out how a request would be handled.
//!
//! Clients' connections and their sockets are in `howdah-protocol`; this crate does not use them directly.
#![forbid(unsafe_code)]

#[cfg(test)]
mod access_tests;
pub mod applied_rules;
mod blocking_threads;
pub mod challenges;
mod client_fields;
pub mod compress;
mod entity_tags;
pub mod event_request;
pub mod exchange;
pub mod explain;
mod explanation;
pub mod forwarded;
#[cfg(any(test, feature = "fuzz"))]
pub mod fuzz;
#[cfg(any(test, feature = "fuzz"))]
pub mod fuzz_access;
#[cfg(any(test, feature = "fuzz"))]
pub mod fuzz_htaccess;
mod host;
pub mod https;
mod listings;
mod live;
pub mod mercure;
pub mod notes;
pub mod passwords;
mod path_parts;
pub mod phase;
mod preferred_pool;
mod presence;
mod pusher;
pub mod refusal;
mod rejected;
mod releases;
pub mod request_id;
pub(crate) mod request_path;
mod responder;
pub mod route;
pub mod sendfile;
pub mod server;
pub mod server_request;
pub mod service;
pub mod site;
pub mod sites;
pub mod static_files;
pub mod upstream;
pub mod warm_up;
pub mod withheld;

pub use service::Service;
pub use site::Site;
pub use sites::Sites;
