//! Data of the request that ended last in a worker, for the status pages. Its head is moved here, not copied; it is
//! freed when the next request replaces it.

use crate::request::Request;
use crate::request::estimate::MeasuredDuration;
use howdah_transport::wire::EncodedRequest;

#[derive(Debug)]
pub(crate) struct LastRequest {
    head: EncodedRequest,
    body_len: u64,
    took: MeasuredDuration,
}

/// A request as status pages show it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RequestReport {
    pub method: String,
    /// The target as the client sent it.
    pub uri: String,
    pub content_length: u64,
    /// `REMOTE_USER`: the user whose password was verified, by this server or by the web server in front.
    pub user: Option<String>,
    /// The script's path in the file system.
    pub script: String,
    /// Microseconds in PHP.
    pub php_us: u64,
    /// Processor time in microseconds, if measured.
    pub cpu_us: Option<u64>,
    /// Peak memory of the script in bytes.
    pub memory: u64,
}

impl LastRequest {
    pub(crate) fn of(request: Box<Request>, took: MeasuredDuration) -> Self {
        Self { body_len: request.body.len(), head: request.head, took }
    }

    pub(crate) fn target(&self) -> &[u8] {
        self.head.uri()
    }

    pub(crate) fn report(&self) -> RequestReport {
        RequestReport {
            php_us: self.took.php,
            cpu_us: self.took.cpu,
            memory: self.took.memory,
            ..report(&self.head, self.body_len)
        }
    }
}

/// Report of a running request.
pub(crate) fn report(head: &EncodedRequest, body_len: u64) -> RequestReport {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let name = b"REMOTE_USER";
    let user = head.variables().find(|(found, _)| found == name).map(|(_, value)| text(value));
    RequestReport {
        method: text(head.method()),
        uri: text(head.uri()),
        content_length: body_len,
        user: user.filter(|user| !user.is_empty()),
        script: text(head.script()),
        ..RequestReport::default()
    }
}
