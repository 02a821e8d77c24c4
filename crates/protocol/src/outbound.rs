//! A request that is forwarded to another server: the front's interface to the proxy.

use crate::exchange::{Offer, RequestBody};
use crate::informational::Informational;
use bytes::Bytes;
use howdah_budget::Charge;
use http::{HeaderMap, Method};

/// The outbound request.
#[derive(Debug)]
pub struct Outbound {
    pub method: Method,
    /// Path and query, as they go out.
    pub target: Bytes,
    /// The client's headers without hop-by-hop ones, plus those that describe the client.
    pub headers: HeaderMap,
    pub body: RequestBody,
    /// The protocols that the client offers to change to.
    pub upgrade: Option<Offer>,
    /// The body can still be read once the response has begun.
    pub full_duplex: bool,
    /// Sender of informational responses to the client.
    pub informational: Option<Informational>,
    /// Charge for data in transit to the client.
    pub charge: Charge,
}
