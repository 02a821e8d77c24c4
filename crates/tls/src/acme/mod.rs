//! Certificates from an authority that speaks ACME (RFC 8555): ordered, kept in a directory, renewed in time.
//!
//! Reading order: `manager` (the one task that knows every name, an `entry`, and when it is due), `order` (one order from its
//! beginning to a certificate), `challenges` (proofs that a name is ours), `account`, `kept` (stored data of a name),
//! `work` (work on one name), `plan` (its time), `allow` (checks of
//! unlisted names), `http_client`, `report` (status for people).
//!
//! Everything runs on the main thread's runtime. I/O threads only look up: certificates in the store, tokens in a table.

mod account;
mod allow;
mod blocking;
mod challenges;
mod demand;
mod entry;
mod failure;
mod http_client;
mod kept;
mod manager;
mod order;
mod plan;
mod report;
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
    /// The address of the authority's directory.
    pub directory: String,
    /// Further authorities that may vouch for the authority's own server, in PEM.
    pub ca_file: Option<PathBuf>,
    /// Where to tell that something is wrong with a certificate, where the authority does.
    pub email: Option<String>,
    /// External account binding: the key's identifier, and the key as the authority gave it (base64url).
    pub external_account: Option<(String, String)>,
    /// The authority's name for the kind of certificate to request.
    pub profile: Option<String>,
    /// Challenges, in order of preference.
    pub kinds: Vec<Kind>,
    /// Certificates for other names that clients ask for.
    pub on_demand: Option<OnDemand>,
    /// The broker in which servers share all that, instead of a directory.
    pub broker: Option<Broker>,
    /// The pause after a first failure, and the longest one.
    pub retry: Duration,
    /// Pauses do not grow beyond this.
    pub retry_most: Duration,
}

/// Conditions for certificates of unlisted names.
#[derive(Debug, Clone)]
pub struct OnDemand {
    /// Asked with `?domain=NAME`; a status of 2xx allows it.
    pub allow_url: String,
    /// New names in a minute.
    pub limit: u32,
}
