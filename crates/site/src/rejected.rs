//! The access log line of a request that was refused before it was parsed, so it belongs to no site.

use crate::request_id;
use howdah_observe::{AccessEntry, AccessLog};
use howdah_protocol::Rejected;
use std::time::SystemTime;

pub(crate) fn record(log: &AccessLog, rejected: &Rejected<'_>) {
    log.log(&AccessEntry {
        time: SystemTime::now(),
        remote: rejected.connection.peer.addr,
        user: None,
        method: "-",
        target: if rejected.line.is_empty() { b"-" } else { rejected.line },
        proto: "-",
        status: rejected.status.as_u16(),
        bytes: 0,
        referer: None,
        user_agent: None,
        request_id: &request_id::next().to_string(),
        pool: None,
        worker: None,
        queue_us: None,
        php_us: None,
        memory: None,
        total_us: 0,
        compression: None,
        site: None,
        host: None,
        cut_off: false,
        trace: None,
        refused: Some(rejected.rejection.label()),
    });
}
