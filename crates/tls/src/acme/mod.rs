//! Certificates from an ACME authority (RFC 8555): ordered, stored, renewed in time.
//!
//! Reading order: `manager` (the task that manages every name, an `entry`, and its due time), `work` (tasks for one
//! name), `order` (one order from start to certificate), `challenges` (proofs of control over a name), `account`,
//! `stored` (stored data of a name), `plan` (renewal and retry times), `demand` (requests from handshakes), `allow`
//! (checks of unlisted names), `http_client`, `report` (status for operators).
//!
//! Everything runs on the main thread's runtime. I/O threads only look up certificates and tokens, and request missing
//! certificates.

mod account;
mod allow;
mod blocking;
mod challenges;
mod demand;
mod entry;
mod failure;
mod http_client;
mod manager;
mod order;
mod plan;
mod report;
mod stored;
mod work;

pub use challenges::Challenges;
pub use demand::Demand;
pub use manager::Manager;
pub use order::Kind;
pub use report::{NameReport, Report};

use howdah_store::Broker;
use std::path::PathBuf;
use std::time::Duration;

/// Settings of orders.
#[derive(Debug, Clone)]
pub struct Options {
    /// The URL of the authority's directory.
    pub directory: String,
    /// PEM file of additional authorities that are trusted for the connection to the ACME server.
    pub ca_file: Option<PathBuf>,
    /// Contact for the authority's notices about certificates, if it sends any.
    pub email: Option<String>,
    /// External account binding: the key identifier, and the key in base64url as the authority issued it.
    pub external_account: Option<(String, String)>,
    /// The authority's certificate profile to request.
    pub profile: Option<String>,
    /// Challenges, in order of preference.
    pub kinds: Vec<Kind>,
    /// Settings for certificates of unlisted names that clients request.
    pub on_demand: Option<OnDemand>,
    /// The broker through which servers share this data, instead of a directory.
    pub broker: Option<Broker>,
    /// The pause after a first failure, before its random part.
    pub retry: Duration,
    /// The maximum pause, before its random part of up to a quarter.
    pub retry_most: Duration,
}

/// Conditions for certificates of unlisted names.
#[derive(Debug, Clone)]
pub struct OnDemand {
    /// The application's URL. Requested with `?domain=NAME`; a 2xx status allows the name.
    pub allow_url: String,
    /// Maximum number of new names per minute.
    pub limit: u32,
}
