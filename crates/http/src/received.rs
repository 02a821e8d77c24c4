//! The body of a request, as either protocol's driver hands it over.

use bytes::Bytes;
use h2::RecvStream;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

/// What goes wrong while a body is read: the connection's error.
pub type ReceiveError = Box<dyn std::error::Error + Send + Sync>;

/// A body on its way in.
#[derive(Debug)]
pub enum Received {
    /// Over HTTP/1.
    Http1(Incoming),
    /// Over HTTP/2, with the length that the request's head announced.
    Http2(RecvStream, Option<u64>),
}

impl From<Incoming> for Received {
    fn from(body: Incoming) -> Self {
        Self::Http1(body)
    }
}

impl Body for Received {
    type Data = Bytes;
    type Error = ReceiveError;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, ReceiveError>>> {
        match self.get_mut() {
            Self::Http1(body) => Pin::new(body).poll_frame(cx).map_err(Into::into),
            Self::Http2(stream, _) => Poll::Ready(match ready!(stream.poll_data(cx)) {
                Some(Ok(data)) => {
                    // The client may send as much again. This fails only once the stream is gone.
                    let _ = stream.flow_control().release_capacity(data.len());
                    Some(Ok(Frame::data(data)))
                }
                Some(Err(error)) => Some(Err(error.into())),
                // Trailers are not of interest.
                None => None,
            }),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Http1(body) => body.is_end_stream(),
            Self::Http2(stream, _) => stream.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Http1(body) => body.size_hint(),
            Self::Http2(_, announced) => announced.map_or_else(SizeHint::default, SizeHint::with_exact),
        }
    }
}
