//! Files and memory over socket pairs.

use super::*;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;

fn file(content: &[u8]) -> (File, Arc<OwnedFd>) {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(content).unwrap();
    let descriptor = Arc::new(OwnedFd::from(file.try_clone().unwrap()));
    (file, descriptor)
}

fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 31 + at / 251) as u8 | 1).collect()
}

fn part(file: &Arc<OwnedFd>, start: u64, end: u64) -> FilePart {
    FilePart { file: file.clone(), start, end }
}

#[test]
fn a_full_socket_is_distinguished_from_a_short_file() {
    let (ours, mut theirs) = UnixStream::pair().unwrap();
    ours.set_nonblocking(true).unwrap();
    let content = pattern(1 << 20);
    let (file, descriptor) = file(&content);
    let first = send_file(ours.as_fd(), &part(&descriptor, 0, 1 << 20)).unwrap();
    assert!(first.full && first.bytes > 0 && first.bytes < content.len(), "{first:?}");
    let from = first.bytes as u64;
    let blocked = send_file(ours.as_fd(), &part(&descriptor, from, 1 << 20));
    assert_eq!(blocked.unwrap_err().kind(), io::ErrorKind::WouldBlock);
    let mut received = vec![0; first.bytes];
    theirs.read_exact(&mut received).unwrap();
    assert!(received == content[..first.bytes]);

    // 100 of the announced bytes are left; they are sent, and the socket does not report that it is full.
    file.set_len(from + 100).unwrap();
    let rest = send_file(ours.as_fd(), &part(&descriptor, from, 1 << 20)).unwrap();
    assert_eq!(rest, Written { bytes: 100, full: false });
    let end = send_file(ours.as_fd(), &part(&descriptor, from + 100, 1 << 20));
    assert_eq!(end.unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
}

#[test]
fn one_call_takes_no_more_than_its_share_of_a_huge_file() {
    let (ours, mut theirs) = UnixStream::pair().unwrap();
    let (file, descriptor) = file(b"x");
    file.set_len(MAX_SENDFILE * 4).unwrap();
    let reader = std::thread::spawn(move || theirs.read_to_end(&mut Vec::new()).unwrap());
    let written = send_file(ours.as_fd(), &part(&descriptor, 0, MAX_SENDFILE * 4)).unwrap();
    assert!(written.bytes as u64 <= MAX_SENDFILE, "{written:?}");
    drop(ours);
    assert_eq!(reader.join().unwrap(), written.bytes);
}

#[test]
fn slices_are_sent_in_order_and_a_full_socket_is_reported() {
    let (ours, mut theirs) = UnixStream::pair().unwrap();
    ours.set_nonblocking(true).unwrap();
    let written = send_memory(ours.as_fd(), &[IoSlice::new(b"one "), IoSlice::new(b""), IoSlice::new(b"two")], false);
    assert_eq!(written.unwrap(), Written { bytes: 7, full: false });
    let long = pattern(4 << 20);
    let written = send_memory(ours.as_fd(), &[IoSlice::new(&long)], true).unwrap();
    assert!(written.full && written.bytes < long.len());
    let mut received = vec![0; 7];
    theirs.read_exact(&mut received).unwrap();
    assert_eq!(received, b"one two");
}
