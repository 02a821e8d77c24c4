//! Connects to a server: name, socket, TLS, and hyper on top.

use crate::fault::in_words;
use crate::group::{Group, Server};
use crate::link::Link;
use crate::transport::Transport;
use howdah_config::UpstreamPlace;
use std::io;
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::TlsConnector;

/// Connects within `connect_timeout`. The error describes the failure for the log.
pub(crate) async fn connect(group: &Group, server: &Server) -> Result<Link, String> {
    let timeout = group.settings.connect_timeout;
    server.metrics.connections.inc();
    match tokio::time::timeout(timeout, dial(group, server)).await {
        Ok(Ok(transport)) => Link::new(transport).await.map_err(|error| in_words(&error)),
        Ok(Err(error)) => Err(format!("cannot connect: {}", in_words(&error))),
        Err(_) => Err(format!("cannot connect within {timeout:?}")),
    }
}

async fn dial(group: &Group, server: &Server) -> io::Result<Transport> {
    if let UpstreamPlace::Unix(path) = &server.address.place {
        return Ok(Box::new(UnixStream::connect(path).await?));
    }
    let addresses = server.addresses.get().await?;
    let stream = TcpStream::connect(&*addresses).await.inspect_err(|_| server.addresses.invalidate())?;
    // Writes are already batched, so Nagle's algorithm would only delay them.
    stream.set_nodelay(true)?;
    match (&group.tls, &server.name) {
        (Some(config), Some(name)) => {
            Ok(Box::new(TlsConnector::from(config.clone()).connect(name.clone(), stream).await?))
        }
        _ => Ok(Box::new(stream)),
    }
}
