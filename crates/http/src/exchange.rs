//! One request from its head to the last byte of its answer: what the phases know about it, and what the access log
//! and the metrics are told at its end, however it ends.

use crate::conn::Conn;
use crate::{forwarded, request_id};
use howdah_config::TrustedHeader;
use howdah_observe::Front;
use howdah_pool::{CallStats, RequestId};
use http::request::Parts;
use std::net::IpAddr;
use std::sync::{Arc, OnceLock};
use std::time::{Instant, SystemTime};

/// A request and its answer.
#[derive(Debug)]
pub struct Exchange {
    /// The connection it came over.
    pub conn: Arc<Conn>,
    /// The request's head.
    pub parts: Parts,
    /// Its id.
    pub id: RequestId,
    /// When its head was complete.
    pub started: Instant,
    /// The same, as a time of day.
    pub time: SystemTime,
    /// The client's address, as logged; behind trusted proxies the one they named.
    pub remote: Option<IpAddr>,
    /// What answered.
    pub front: Front,
    /// The answer's status; 499 until there is one.
    pub status: u16,
    /// The coding that the server compressed the answer with.
    pub coding: Option<&'static str>,
    /// Where the call ran and what it took.
    pub ran: Ran,
    /// Bytes of body handed to the connection.
    pub bytes: u64,
}

/// Where a call ran and what it took.
#[derive(Debug)]
pub enum Ran {
    /// There was no call.
    Nowhere,
    /// Known.
    Known(CallStats),
    /// Known when the answer's stream has ended.
    Later(Arc<OnceLock<CallStats>>),
}

impl Ran {
    /// What is known.
    #[must_use]
    pub fn stats(&self) -> Option<&CallStats> {
        match self {
            Self::Nowhere => None,
            Self::Known(stats) => Some(stats),
            Self::Later(stats) => stats.get(),
        }
    }
}

/// The status in the log of a request whose client left before the answer.
const CLIENT_GONE: u16 = 499;

impl Exchange {
    /// A request begins.
    #[must_use]
    pub fn begin(conn: Arc<Conn>, parts: Parts) -> Box<Self> {
        conn.state.begin();
        let (mut remote, mut id) = (conn.peer.addr, None);
        if conn.peer.trusted {
            let settings = &conn.site.settings.http;
            remote = forwarded::client(&conn.peer, &parts.headers, settings).ip;
            if settings.trusted_headers.contains(&TrustedHeader::RequestId) {
                let last = parts.headers.get_all("x-request-id").iter().next_back();
                id = last.and_then(|id| request_id::parse(id.as_bytes()));
            }
        }
        Box::new(Self {
            conn,
            parts,
            id: id.unwrap_or_else(request_id::next),
            started: Instant::now(),
            time: SystemTime::now(),
            remote,
            front: Front::Error,
            status: CLIENT_GONE,
            coding: None,
            ran: Ran::Nowhere,
            bytes: 0,
        })
    }

    /// The answer has been handed over (`complete`) or given up after `bytes` of its body.
    pub(crate) fn finish(mut self: Box<Self>, bytes: u64, complete: bool) {
        self.bytes = bytes;
        if !complete {
            tracing::debug!(target: "howdah::request", id = %self.id, bytes, "the answer was cut off");
        }
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        crate::phase::access_log::record(self);
        self.conn.state.end();
    }
}
