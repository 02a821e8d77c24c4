//! Fields of a client that reach no application, neither a script nor a server that a request is forwarded to.

use http::header::{HeaderMap, HeaderName};

/// `true` if an application can distinguish a header from all others. CGI, WSGI and Rack make `_` of every character
/// but letters and digits, so `X_Real_IP` and `X.Real.IP` would pass for `X-Real-IP`; and `Proxy` would become
/// `HTTP_PROXY`, which libraries take for a setting.
pub(crate) fn is_unambiguous(name: &HeaderName) -> bool {
    let name = name.as_str();
    name != "proxy" && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
}

/// `true` if a header tells applications how to hand files over. Only proxies may set it: an application that trusts a
/// client would let it choose the file.
pub(crate) fn is_for_proxies_to_say(name: &HeaderName) -> bool {
    matches!(name.as_str(), "x-sendfile-type" | "x-accel-mapping")
}

/// Removes both kinds from what goes on to another server.
pub(crate) fn strip(headers: &mut HeaderMap, is_trusted: bool) {
    let is_dropped = |name: &&HeaderName| !is_unambiguous(name) || (!is_trusted && is_for_proxies_to_say(name));
    let dropped: Vec<HeaderName> = headers.keys().filter(is_dropped).cloned().collect();
    for name in dropped {
        headers.remove(name);
    }
}
