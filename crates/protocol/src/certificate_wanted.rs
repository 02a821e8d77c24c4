//! Reads the server name from a ClientHello before the handshake. Certificates that are not loaded yet, or are obtained
//! on demand, must be in the store when the handshake begins. The bytes read are passed on to the handshake.

use bytes::Bytes;
use howdah_config::client_number;
use howdah_tls::ACME_TLS;
use howdah_tls::acme::Demand;
use rustls::server::Acceptor;
use std::io;
use std::net::IpAddr;
use tokio::net::TcpStream;

/// Maximum number of bytes of a ClientHello that are inspected. Today's have up to two kilobytes.
const MAX_CLIENT_HELLO: usize = 8 * 1024;
/// TLS' type of records that hold the handshake (RFC 8446 5.1).
const HANDSHAKE: u8 = 22;
/// Bytes before a record's content, and before a handshake message's.
const RECORD_HEAD: usize = 5;
const MESSAGE_HEAD: usize = 4;

/// Waits until the certificate that the client needs exists, or is not obtained now. Returns the data that the client
/// has sent.
pub(crate) async fn wait(stream: &TcpStream, client: Option<IpAddr>, demand: &Demand) -> Bytes {
    let sent = hello(stream).await;
    if let Some(name) = name_in(&sent)
        && demand.lacks(&name)
    {
        demand.wanted(&name, client.map_or(0, client_number)).await;
    }
    sent.into()
}

/// Reads the client's first data. It is parsed once, when it is complete: data that arrives byte by byte only costs a
/// length check per byte.
async fn hello(stream: &TcpStream) -> Vec<u8> {
    let mut sent = Vec::new();
    while !is_complete(&sent) && sent.len() < MAX_CLIENT_HELLO {
        if stream.readable().await.is_err() {
            break;
        }
        match read(stream, &mut sent) {
            Ok(0) => break,
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => break,
            _ => {}
        }
    }
    sent
}

/// A separate function, so that the buffer does not become part of the future.
fn read(stream: &TcpStream, sent: &mut Vec<u8>) -> io::Result<usize> {
    let mut space = [0; MAX_CLIENT_HELLO];
    let length = stream.try_read(&mut space[..MAX_CLIENT_HELLO - sent.len()])?;
    sent.extend_from_slice(&space[..length]);
    Ok(length)
}

/// `true` if the first handshake message is complete, possibly in several records, or if TLS will refuse the data.
fn is_complete(bytes: &[u8]) -> bool {
    let (mut rest, mut head, mut length) = (bytes, [0; MESSAGE_HEAD], 0);
    loop {
        if rest.first().is_some_and(|&kind| kind != HANDSHAKE) {
            return true;
        }
        let Some((record, after)) = rest.split_at_checked(RECORD_HEAD) else { return false };
        let Some((part, next)) = after.split_at_checked(usize::from(u16::from_be_bytes([record[3], record[4]]))) else {
            return false;
        };
        if part.is_empty() {
            return true;
        }
        head.iter_mut().skip(length).zip(part).for_each(|(to, from)| *to = *from);
        length += part.len();
        let wanted = u32::from_be_bytes([0, head[1], head[2], head[3]]) as usize;
        if length >= MESSAGE_HEAD && length - MESSAGE_HEAD >= wanted {
            return true;
        }
        rest = next;
    }
}

/// The requested server name; `None` if there is none, for invalid data, and for ACME challenges.
fn name_in(mut sent: &[u8]) -> Option<String> {
    let mut acceptor = Acceptor::default();
    while !sent.is_empty() {
        acceptor.read_tls(&mut sent).ok()?;
    }
    let accepted = acceptor.accept().ok()??;
    let hello = accepted.client_hello();
    let is_challenge = hello.alpn().is_some_and(|mut offered| offered.any(|name| name == ACME_TLS));
    if is_challenge { None } else { hello.server_name().map(str::to_owned) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::pin::pin;

    /// A ClientHello for `shop.example` in one record.
    fn client_hello() -> Vec<u8> {
        let extension = |kind: u8, content: &[u8]| {
            let mut bytes = vec![0, kind, 0, content.len() as u8];
            bytes.extend_from_slice(content);
            bytes
        };
        let name = b"shop.example";
        let mut sni = vec![0, name.len() as u8 + 3, 0, 0, name.len() as u8];
        sni.extend_from_slice(name);
        let extensions = [
            extension(0, &sni),
            extension(10, &[0, 2, 0, 29]),
            extension(13, &[0, 2, 4, 3]),
            extension(43, &[2, 3, 4]),
        ]
        .concat();
        let mut body = vec![3, 3];
        body.extend_from_slice(&[7; 32]);
        body.extend_from_slice(&[0, 0, 2, 0x13, 1, 1, 0, 0, extensions.len() as u8]);
        body.extend_from_slice(&extensions);
        let mut message = vec![1, 0, 0, body.len() as u8];
        message.extend_from_slice(&body);
        message
    }

    fn records(message: &[u8], size: usize) -> Vec<u8> {
        message.chunks(size).flat_map(|part| [&[22, 3, 1, 0, part.len() as u8][..], part].concat()).collect()
    }

    #[test]
    fn a_hello_is_complete_with_its_last_byte_however_many_records() {
        let message = client_hello();
        for size in [message.len(), 100, 3, 1] {
            let bytes = records(&message, size);
            assert!((0..bytes.len()).all(|length| !is_complete(&bytes[..length])), "{size}");
            assert!(is_complete(&bytes), "{size}");
        }
        assert_eq!(name_in(&records(&message, message.len())).as_deref(), Some("shop.example"));
        for other in [&b"GET / HTTP/1.1"[..], &[22, 3, 1, 0, 0], &[0; 9]] {
            assert!(is_complete(other) && name_in(other).is_none(), "{other:?}");
        }
    }

    #[test]
    fn an_unfinished_hello_is_parsed_only_when_more_arrives() {
        // Without timers: a retry after a pause is impossible.
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().unwrap();
        runtime.block_on(async {
            let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
            let mut client = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let (stream, _) = listener.accept().unwrap();
            stream.set_nonblocking(true).unwrap();
            let stream = TcpStream::from_std(stream).unwrap();
            let message = client_hello();
            let bytes = records(&message, message.len());
            let mut polls = 0;
            let mut parts = bytes.chunks(40);
            let expected = parts.len();
            let mut hello = pin!(hello(&stream));
            let sent = std::future::poll_fn(|cx| {
                polls += 1;
                let polled = hello.as_mut().poll(cx);
                if polled.is_pending()
                    && let Some(part) = parts.next()
                {
                    client.write_all(part).unwrap();
                }
                polled
            });
            assert_eq!(sent.await, bytes);
            assert!(polls <= 3 * expected, "{polls} polls for {expected} parts");
            drop(client);
        });
    }
}
