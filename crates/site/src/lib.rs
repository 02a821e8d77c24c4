//! The inner half of the front: what a request means, and what responds to it.
//!
//! Reading order, which is the path of a request: `service` (the list of responders), `phase/*` (one file per phase). What
//! leaves for PHP goes through `upstream`. `sites` finds the `site` that it is for, `server` is what these share; `exchange` holds
//! what is known of one request, `ruled` what rules have settled for it. A site consists of what knows neither: `static_files`, `withheld`, `handed_over`,
//! `compress`; what is dear is done `aside`; `live` is what scripts reach of its connections; `ahead` is the pool that has booted its application. `explain` asks the same
//! code what would become of a request, `server_request` makes requests of the server itself, `warm_up` those for new
//! workers. Connections and sockets are `howdah-protocol`'s;
//! nothing here sees them.
#![forbid(unsafe_code)]

#[cfg(test)]
mod access_tests;
mod ahead;
mod aside;
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
pub mod handed_over;
mod host;
pub mod https;
mod listings;
mod live;
pub mod mercure;
pub mod notes;
pub mod passwords;
mod path_parts;
pub mod phase;
mod pusher;
pub mod refusal;
mod rejected;
mod releases;
pub mod request_id;
pub(crate) mod request_path;
mod responder;
pub mod route;
pub mod ruled;
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
