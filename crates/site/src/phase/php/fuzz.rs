//! The head of a worker's response, for `crate::fuzz`.

use super::respond::{MAX_LINES, respond};
use bytes::Bytes;
use howdah_pool::RequestId;
use howdah_protocol::informational::is_hop_by_hop;
use howdah_protocol::{Head, Target};
use http::{HeaderMap, Method, Version};

/// Creates a response from a head.
pub(crate) fn response_head(status: u16, headers: Vec<(Bytes, Bytes)>) {
    for (method, complete) in [(Method::GET, true), (Method::GET, false), (Method::HEAD, false)] {
        let Ok(target) = Target::parse(Bytes::from_static(b"/")) else { continue };
        let request = Head { method, target, version: Version::HTTP_11, headers: HeaderMap::new() };
        let (writer, php) = howdah_pool::Response::prepared(status, headers.clone());
        if complete {
            writer.end();
        }
        let Ok((response, _)) = respond(php, &request, RequestId(1)) else { continue };
        assert!(response.status().as_u16() >= 200);
        assert!(response.headers().len() <= MAX_LINES + 1 && !response.headers().keys().any(is_hop_by_hop));
        let mut lengths = response.headers().get_all("content-length").iter();
        assert!(lengths.next().is_none_or(|length| length.to_str().is_ok_and(|text| text.parse::<u64>().is_ok())));
        assert!(lengths.next().is_none());
    }
}
