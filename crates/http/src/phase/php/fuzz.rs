//! The head of a worker's answer, for `crate::fuzz`.

use super::answer::{MOST_LINES, is_hop_by_hop, respond};
use crate::upstream::{Answer, AnswerBody};
use bytes::Bytes;
use howdah_pool::{CallStats, Chunk, Fault, RequestId, WholeBody};
use http::{Method, Request};
use std::pin::Pin;
use std::task::{Context, Poll};

/// No body, complete or still to come.
struct Nothing(bool);

impl AnswerBody for Nothing {
    fn complete_len(&self) -> Option<u64> {
        self.0.then_some(0)
    }

    fn take_complete(&mut self) -> Option<WholeBody> {
        self.0.then(|| Bytes::new().into())
    }

    fn poll_chunk(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Chunk, Fault>>> {
        Poll::Ready(None)
    }

    fn stats(&self) -> CallStats {
        CallStats::default()
    }
}

/// Makes a response of a head.
pub(crate) fn answer(status: u16, headers: Vec<(Bytes, Bytes)>) {
    for (method, complete) in [(Method::GET, true), (Method::GET, false), (Method::HEAD, false)] {
        let (mut request, ()) = Request::new(()).into_parts();
        request.method = method;
        let answer = Answer { status, headers: headers.clone(), body: Nothing(complete) };
        let Ok((response, _)) = respond(answer, &request, RequestId(1)) else { continue };
        assert!(response.status().as_u16() >= 200);
        assert!(response.headers().len() <= MOST_LINES + 1 && !response.headers().keys().any(is_hop_by_hop));
        let mut lengths = response.headers().get_all("content-length").iter();
        assert!(lengths.next().is_none_or(|length| length.to_str().is_ok_and(|text| text.parse::<u64>().is_ok())));
        assert!(lengths.next().is_none());
    }
}
