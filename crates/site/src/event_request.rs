//! Requests about events of connections and channels, and the maker of them, which outlives the sites on which a connection began.

use crate::exchange::Purpose;
use bytes::Bytes;
use howdah_protocol::{Connection, Head};
use http::{HeaderMap, StatusCode};
use std::pin::Pin;
use std::sync::Arc;

/// A request about something that happened to a client's connection.
#[derive(Debug)]
pub struct EventRequest {
    /// Method, target, host and fields.
    pub head: Head,
    /// Its body, complete.
    pub body: Bytes,
    /// The client's connection.
    pub connection: Arc<Connection>,
    /// Variables for the script.
    pub variables: Vec<(Arc<str>, Arc<[u8]>)>,
    /// The reason why it is made.
    pub purpose: Purpose,
}

/// The status of a response, and its fields.
pub type Outcome = (StatusCode, HeaderMap);

/// Makes requests by whichever sites serve at that time: connections outlive the sites on which they began.
pub trait MakesRequests: std::fmt::Debug + Send + Sync {
    /// Makes a request, and returns its outcome when the response is complete.
    fn make(&self, request: EventRequest) -> Pin<Box<dyn Future<Output = Outcome> + Send>>;
}
