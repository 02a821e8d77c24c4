//! Tests of logs that go to services: the daemons are sockets of the test.

use crate::log;
use howdah_config::{LogService, LogSettings, LogTarget};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use std::io::{BufRead, BufReader, IoSliceMut, Read, Seek};
use std::net::{TcpListener, UdpSocket};
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::time::Duration;

/// Maximum time that a test's daemon waits.
const DEADLINE: Duration = Duration::from_secs(30);

fn settings(service: LogService) -> LogSettings {
    LogSettings { error: LogTarget::Service(service), ..LogSettings::default() }
}

fn listen(path: &Path) -> UnixDatagram {
    let socket = UnixDatagram::bind(path).unwrap();
    socket.set_read_timeout(Some(DEADLINE)).unwrap();
    socket
}

/// The next entry, from the datagram or from the file sent with it.
fn entry(socket: &UnixDatagram) -> Vec<u8> {
    let mut bytes = vec![0; 1 << 20];
    let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let received = recvmsg(socket, &mut [IoSliceMut::new(&mut bytes)], &mut ancillary, RecvFlags::empty()).unwrap();
    for message in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(descriptors) = message {
            let mut file = std::fs::File::from(descriptors.into_iter().next().unwrap());
            let mut content = Vec::new();
            file.rewind().unwrap();
            file.read_to_end(&mut content).unwrap();
            return content;
        }
    }
    bytes.truncate(received.bytes);
    bytes
}

#[test]
fn journald_gets_fields() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("socket");
    let socket = listen(&path);
    let (subscriber, handle) = log::subscriber(&settings(LogService::Journald(path))).unwrap();
    tracing::subscriber::with_default(subscriber, || {
        tracing::warn!(target: "php", pool = "shop", request = 7, "first\nsecond");
    });
    assert!(handle.flush());
    let text = String::from_utf8(entry(&socket)).unwrap();
    for line in ["PRIORITY=4", "SYSLOG_IDENTIFIER=howdah", "HOWDAH_TARGET=php", "HOWDAH_POOL=shop", "HOWDAH_REQUEST=7"]
    {
        assert!(text.lines().any(|found| found == line), "{line}: {text}");
    }
    assert!(text.contains("MESSAGE=php: first\\nsecond pool=shop request=7\n"), "{text}");
}

#[test]
fn a_value_with_line_breaks_is_preceded_by_its_length() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("socket");
    let socket = listen(&path);
    let (subscriber, handle) = log::subscriber(&settings(LogService::Journald(path))).unwrap();
    tracing::subscriber::with_default(subscriber, || tracing::info!(target: "howdah", stack = "a\nb", "x"));
    assert!(handle.flush());
    let found = entry(&socket);
    let expected = [&b"HOWDAH_STACK\n"[..], &3u64.to_le_bytes(), b"a\nb\n"].concat();
    assert!(found.windows(expected.len()).any(|part| part == expected), "{}", String::from_utf8_lossy(&found));
}

#[test]
fn a_long_entry_comes_as_a_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("socket");
    let socket = listen(&path);
    let (subscriber, handle) = log::subscriber(&settings(LogService::Journald(path))).unwrap();
    let long = "x".repeat(1_000_000);
    tracing::subscriber::with_default(subscriber, || tracing::info!(target: "howdah", "{long}"));
    assert!(handle.flush());
    assert!(String::from_utf8(entry(&socket)).unwrap().contains(&format!("MESSAGE=howdah: {long}\n")));
    assert_eq!(handle.dropped(), 0);
}

#[test]
fn journald_may_restart_and_lost_lines_are_counted() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("socket");
    let socket = listen(&path);
    let (subscriber, handle) = log::subscriber(&settings(LogService::Journald(path.clone()))).unwrap();
    tracing::subscriber::with_default(subscriber, || {
        tracing::info!(target: "howdah", "one");
        assert!(handle.flush());
        assert!(String::from_utf8(entry(&socket)).unwrap().contains("MESSAGE=howdah: one\n"));
        drop(socket);
        std::fs::remove_file(&path).unwrap();
        for _ in 0..3 {
            tracing::info!(target: "howdah", "lost");
        }
        assert!(handle.flush());
        assert_eq!(handle.dropped(), 3);
        let socket = listen(&path);
        tracing::info!(target: "howdah", "two");
        assert!(handle.flush());
        assert!(String::from_utf8(entry(&socket)).unwrap().contains("MESSAGE=howdah: two\n"));
        let notice = String::from_utf8(entry(&socket)).unwrap();
        assert!(notice.contains("MESSAGE=log: 3 lines of this log were lost: it could not be written\n"), "{notice}");
    });
}

#[test]
fn a_missing_log_service_is_reported_at_the_start() {
    for service in [LogService::Journald("/nonexistent/j".into()), LogService::SyslogUnix("/nonexistent/s".into())] {
        let error = log::subscriber(&settings(service)).err().unwrap().to_string();
        assert!(error.contains(":/nonexistent/") && error.contains("is it running?"), "{error}");
    }
}

/// Checks the head of an RFC 5424 entry, without its time and host.
fn is_entry(text: &str, priority: &str, rest: &str) -> bool {
    let words: Vec<&str> = text.splitn(6, ' ').collect();
    words[0] == priority && words[1].ends_with('Z') && words[3] == "howdah" && words[5] == rest
}

#[test]
fn syslog_by_datagrams() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("log");
    let (local, remote) = (listen(&path), UdpSocket::bind("127.0.0.1:0").unwrap());
    remote.set_read_timeout(Some(DEADLINE)).unwrap();
    let address = remote.local_addr().unwrap().to_string();
    for service in [LogService::SyslogUnix(path), LogService::SyslogUdp(address)] {
        let (subscriber, handle) = log::subscriber(&settings(service)).unwrap();
        tracing::subscriber::with_default(subscriber, || tracing::error!(target: "howdah_pool", worker = 3, "a b"));
        assert!(handle.flush());
    }
    let mut bytes = [0; 2000];
    let length = local.recv(&mut bytes).unwrap();
    let expected = format!("<27>howdah[{}]: pool: a b worker=3", std::process::id());
    assert_eq!(std::str::from_utf8(&bytes[..length]).unwrap(), expected);
    let length = remote.recv(&mut bytes).unwrap();
    let text = std::str::from_utf8(&bytes[..length]).unwrap();
    assert!(is_entry(text, "<27>1", "pool - pool: a b worker=3"), "{text}");
}

#[test]
fn syslog_by_tcp_has_lengths_and_a_new_connection_when_the_old_one_has_gone() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let service = LogService::SyslogTcp(listener.local_addr().unwrap().to_string());
    let (subscriber, handle) = log::subscriber(&settings(service)).unwrap();
    tracing::subscriber::with_default(subscriber, || {
        for _ in 0..2 {
            tracing::info!(target: "howdah", "é");
            assert!(handle.flush());
            let (stream, _) = listener.accept().unwrap();
            stream.set_read_timeout(Some(DEADLINE)).unwrap();
            let mut reader = BufReader::new(stream);
            let mut length = Vec::new();
            reader.read_until(b' ', &mut length).unwrap();
            let length: usize = std::str::from_utf8(&length).unwrap().trim_end().parse().unwrap();
            let mut text = vec![0; length];
            reader.read_exact(&mut text).unwrap();
            let text = String::from_utf8(text).unwrap();
            assert!(is_entry(&text, "<30>1", "howdah - howdah: é"), "{text}");
            // The peer closes; the next entry goes over a new connection.
            reader.get_ref().shutdown(std::net::Shutdown::Both).unwrap();
        }
    });
    assert_eq!(handle.dropped(), 0);
}

#[test]
fn an_unreachable_syslog_server_costs_only_lines() {
    let gone = TcpListener::bind("127.0.0.1:0").unwrap();
    let service = LogService::SyslogTcp(gone.local_addr().unwrap().to_string());
    drop(gone);
    let (subscriber, handle) = log::subscriber(&settings(service)).unwrap();
    tracing::subscriber::with_default(subscriber, || (0..50).for_each(|_| tracing::info!(target: "howdah", "x")));
    assert!(handle.flush());
    assert_eq!(handle.dropped(), 50);
}
