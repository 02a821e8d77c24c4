//! The front as a client sees it: a real listener and raw sockets, with a stand-in for PHP.

mod http1;
mod http2;
mod limits;
mod php;
mod shutdown;
mod support;
