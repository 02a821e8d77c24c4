//! Client header fields that are withheld from applications: from scripts and from upstream servers.

use http::header::{HeaderMap, HeaderName};

/// `true` if an application can distinguish a header from all others. CGI, WSGI and Rack replace every character except
/// letters and digits by `_`, so `X_Real_IP` and `X.Real.IP` would look like `X-Real-IP`. `Proxy` would become
/// `HTTP_PROXY`, which libraries interpret as a setting.
pub(crate) fn is_unambiguous(name: &HeaderName) -> bool {
    let name = name.as_str();
    name != "proxy" && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
}

/// `true` if a header configures how an application hands files over. Only proxies may set it: a client could otherwise
/// choose the file.
pub(crate) fn only_proxies_may_set(name: &HeaderName) -> bool {
    matches!(name.as_str(), "x-sendfile-type" | "x-accel-mapping")
}

/// Removes both kinds of fields from a request for an upstream server.
pub(crate) fn strip(headers: &mut HeaderMap, is_trusted: bool) {
    let is_dropped = |name: &&HeaderName| !is_unambiguous(name) || (!is_trusted && only_proxies_may_set(name));
    let dropped: Vec<HeaderName> = headers.keys().filter(is_dropped).cloned().collect();
    for name in dropped {
        headers.remove(name);
    }
}
