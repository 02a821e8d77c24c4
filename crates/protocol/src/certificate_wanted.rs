//! A look at who a client wants, before its handshake: certificates that are still on disk, or are got when somebody asks for
//! them, must be there when it begins. The bytes stay in the socket for the handshake itself.

use howdah_tls::ACME_TLS;
use howdah_tls::acme::Demand;
use rustls::server::Acceptor;
use std::time::Duration;
use tokio::net::TcpStream;

/// What of a ClientHello is looked at. Those of today have up to two kilobytes; one that is longer than this gets what there is.
const LONGEST: usize = 8 * 1024;
/// The pause after which the rest of a ClientHello is looked for that came in parts: what has come already keeps the socket
/// readable, so nothing announces it.
const REST: Duration = Duration::from_millis(5);
/// How often, within the time that a handshake has.
const LOOKS: u32 = 2000;

/// What the bytes so far say.
enum Hello {
    Incomplete,
    /// The client asks for this name.
    Wants(String),
    /// Nothing that a certificate could be got for: the handshake deals with it.
    Other,
}

/// Waits until there is a certificate for whom the client wants, or there is to be none.
pub(crate) async fn wait(stream: &TcpStream, demand: &Demand) {
    for _ in 0..LOOKS {
        // Not kept across the wait, during which thousands may stand here.
        match look(stream).await {
            Hello::Wants(name) => {
                if demand.lacks(&name) {
                    demand.wanted(&name).await;
                }
                return;
            }
            Hello::Other => return,
            Hello::Incomplete => tokio::time::sleep(REST).await,
        }
    }
}

async fn look(stream: &TcpStream) -> Hello {
    if stream.readable().await.is_err() {
        return Hello::Other;
    }
    let mut bytes = [0; LONGEST];
    // Not `peek`, which would keep the buffer while it waits.
    let result = stream.try_io(tokio::io::Interest::READABLE, || {
        rustix::net::recv(stream, &mut bytes[..], rustix::net::RecvFlags::PEEK).map_err(Into::into)
    });
    match result {
        Ok((0, _)) => Hello::Other,
        Ok((length, _)) => read(&bytes[..length], length == LONGEST),
        Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => Hello::Incomplete,
        Err(_) => Hello::Other,
    }
}

fn read(mut bytes: &[u8], is_full: bool) -> Hello {
    let mut acceptor = Acceptor::default();
    while !bytes.is_empty() {
        if acceptor.read_tls(&mut bytes).is_err() {
            return Hello::Other;
        }
    }
    match acceptor.accept() {
        Ok(Some(accepted)) => {
            let hello = accepted.client_hello();
            let is_challenge = hello.alpn().is_some_and(|mut offered| offered.any(|name| name == ACME_TLS));
            match hello.server_name() {
                Some(name) if !is_challenge => Hello::Wants(name.to_owned()),
                _ => Hello::Other,
            }
        }
        Ok(None) if !is_full => Hello::Incomplete,
        _ => Hello::Other,
    }
}
