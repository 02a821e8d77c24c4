//! The inner half of the front: what a request means, and what answers it.
//!
//! Reading order, which is the path of a request: `service` (the phases in order), `phase/*` (one file per phase). What leaves
//! for PHP goes through `upstream`. `site` holds what all requests share, `exchange` what is known of one. Connections and
//! sockets are `howdah-protocol`'s; nothing here sees them.
#![forbid(unsafe_code)]

pub mod challenges;
pub mod compress;
mod entity_tags;
pub mod exchange;
pub mod forwarded;
#[cfg(any(test, feature = "fuzz"))]
pub mod fuzz;
mod host;
pub mod phase;
pub mod refusal;
pub mod request_id;
pub mod service;
pub mod site;
pub mod upstream;

pub use service::Service;
pub use site::Site;
