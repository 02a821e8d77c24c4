//! The idle floor: the load generator's result against a server that does nothing.
//!
//! The stand-in sends the same prepared bytes for every request. Its rate is the maximum that any system could show on
//! this machine with this generator; a system close to it is measured against the generator's limit.

use std::fs::File;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;

/// The hidden subcommand that runs the stand-in.
pub const SUBCOMMAND: &str = "stand-in";

/// Above this size the kernel sends the bytes from a file, as the fastest file servers do.
const SENDFILE_FROM: usize = 128 * 1024;

struct Reply {
    bytes: Vec<u8>,
    file: Option<File>,
}

impl Reply {
    fn new(body_bytes: usize) -> std::io::Result<Self> {
        let mut bytes =
            format!("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {body_bytes}\r\n\r\n").into_bytes();
        bytes.extend(std::iter::repeat_n(b'x', body_bytes));
        let file = if body_bytes >= SENDFILE_FROM {
            let mut file = tempfile::tempfile()?;
            file.write_all(&bytes)?;
            Some(file)
        } else {
            None
        };
        Ok(Self { bytes, file })
    }

    fn send(&self, stream: &mut TcpStream) -> std::io::Result<()> {
        let Some(file) = &self.file else { return stream.write_all(&self.bytes) };
        let mut offset = 0;
        while (offset as usize) < self.bytes.len() {
            let left = self.bytes.len() - offset as usize;
            if rustix::fs::sendfile(&*stream, file, Some(&mut offset), left)? == 0 {
                return Err(std::io::ErrorKind::WriteZero.into());
            }
        }
        Ok(())
    }
}

/// Runs the stand-in process: a thread per connection, no parsing beyond the end of the head.
pub fn serve(address: SocketAddr, body_bytes: usize) -> std::io::Result<()> {
    let listener = TcpListener::bind(address)?;
    let reply = Arc::new(Reply::new(body_bytes)?);
    for stream in listener.incoming() {
        let stream = stream?;
        stream.set_nodelay(true)?;
        let reply = Arc::clone(&reply);
        thread::spawn(move || connection(stream, &reply));
    }
    Ok(())
}

fn connection(mut stream: TcpStream, reply: &Reply) {
    let mut buffer = [0; 4096];
    let mut held = 0;
    loop {
        match stream.read(&mut buffer[held..]) {
            Ok(count) if count > 0 => held += count,
            _ => return,
        }
        if buffer[..held].ends_with(b"\r\n\r\n") {
            held = 0;
            if reply.send(&mut stream).is_err() {
                return;
            }
        } else if held == buffer.len() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::{Target, client};
    use std::time::Duration;

    #[test]
    fn small_and_large_replies_are_complete() {
        for size in [13, SENDFILE_FROM + 1] {
            let address = crate::systems::free_address().unwrap();
            thread::spawn(move || serve(address, size));
            let target = Target { address, path: "/".into(), accept_encoding: "identity".into(), tls: None };
            let body = loop {
                if let Ok((_, body)) = client::ask(&target, Duration::from_secs(5)) {
                    break body;
                }
            };
            assert_eq!(body.len(), size);
        }
    }
}
