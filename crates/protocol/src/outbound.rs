//! A request on its way to another server: what the front hands to whoever has the connections there.

use crate::exchange::{Offer, RequestBody};
use crate::informational::Informational;
use bytes::Bytes;
use howdah_budget::Charge;
use http::{HeaderMap, Method};

/// See above.
#[derive(Debug)]
pub struct Outbound {
    pub method: Method,
    /// Path and query, as they go out.
    pub target: Bytes,
    /// The client's fields without those about its connection, and those that say who it is.
    pub headers: HeaderMap,
    pub body: RequestBody,
    /// The protocols that the client offers to change to.
    pub upgrade: Option<Offer>,
    /// Whether the body can still be read once the response has begun.
    pub full_duplex: bool,
    /// The way back for informational responses.
    pub informational: Option<Informational>,
    /// What is under way to the client is charged beside it.
    pub charge: Charge,
}
