//! The byte stream to a server: TCP, a Unix socket, or TLS.

use tokio::io::{AsyncRead, AsyncWrite};

/// Bytes in both directions.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

pub(crate) type Transport = Box<dyn Stream>;
