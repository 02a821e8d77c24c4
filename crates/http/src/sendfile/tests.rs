//! Tokens and the writer, over socket pairs and without hyper.

use std::fs::File;
use std::io::{ErrorKind, IoSlice, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use bytes::Bytes;

use super::{Written, is_token, reserve, write_vectored};

fn file(content: &[u8]) -> (File, Arc<OwnedFd>) {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(content).unwrap();
    let descriptor = Arc::new(OwnedFd::from(file.try_clone().unwrap()));
    (file, descriptor)
}

fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 31 + at / 251) as u8 | 1).collect()
}

/// Writes everything as a connection would, while another thread reads.
fn transfer(bufs: &[Bytes]) -> Vec<u8> {
    let (ours, mut theirs) = UnixStream::pair().unwrap();
    ours.set_nonblocking(true).unwrap();
    let reader = std::thread::spawn(move || {
        let mut received = Vec::new();
        theirs.read_to_end(&mut received).unwrap();
        received
    });
    let mut left: Vec<Bytes> = bufs.to_vec();
    while !left.is_empty() {
        let slices: Vec<_> = left.iter().map(|buf| IoSlice::new(buf)).collect();
        let result = match write_vectored(ours.as_fd(), &slices) {
            Some(result) => result.map(|written| written.bytes),
            None => (&ours).write_vectored(&slices),
        };
        let mut written = match result {
            Ok(written) => written,
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                let mut poll = [rustix::event::PollFd::new(&ours, rustix::event::PollFlags::OUT)];
                rustix::event::poll(&mut poll, None).unwrap();
                continue;
            }
            Err(error) => panic!("{error}"),
        };
        while written > 0 {
            let n = written.min(left[0].len());
            let _ = left[0].split_to(n);
            written -= n;
            if left[0].is_empty() {
                left.remove(0);
            }
        }
    }
    drop(ours);
    reader.join().unwrap()
}

#[test]
fn plain_memory_is_left_to_the_caller() {
    let (ours, _theirs) = UnixStream::pair().unwrap();
    assert!(write_vectored(ours.as_fd(), &[IoSlice::new(b"head"), IoSlice::new(b"")]).is_none());
    assert!(write_vectored(ours.as_fd(), &[]).is_none());
    assert!(!is_token(b"head"));
}

#[test]
fn tokens_and_memory_in_any_order() {
    let content = pattern(700_000);
    let (_file, descriptor) = file(&content);
    let other_content = pattern(90_001);
    let (_other, other_descriptor) = file(&other_content);
    let token = reserve(descriptor, content.len() as u64).unwrap();
    let other = reserve(other_descriptor, other_content.len() as u64).unwrap();
    assert!(is_token(&token) && is_token(&token[699_999..]) && is_token(&other));
    let bufs = [
        Bytes::from_static(b"head one"),
        Bytes::from_static(b"and two"),
        token.slice(5..700_000),
        token.slice(0..1),
        Bytes::from_static(b"between"),
        other.slice(90_000..90_001),
        other.clone(),
        token.slice(4095..4097),
        Bytes::from_static(b"tail"),
        Bytes::from_static(b"end"),
    ];
    let expected = [
        b"head oneand two" as &[u8],
        &content[5..],
        &content[..1],
        b"between",
        &other_content[90_000..],
        &other_content,
        &content[4095..4097],
        b"tailend",
    ]
    .concat();
    assert!(transfer(&bufs) == expected);
}

#[test]
fn a_token_lives_as_long_as_its_last_slice() {
    let (_file, descriptor) = file(&pattern(50_000));
    let token = reserve(Arc::clone(&descriptor), 50_000).unwrap();
    let slice = token.slice(100..200);
    drop(token);
    assert!(is_token(&slice));
    assert_eq!(Arc::strong_count(&descriptor), 2);
    drop(slice);
    assert_eq!(Arc::strong_count(&descriptor), 1, "the registry has let go of the file");
}

#[test]
fn reading_a_token_by_mistake_does_not_crash() {
    let (file, descriptor) = file(&pattern(50_000));
    let token = reserve(descriptor, 50_000).unwrap();
    file.set_len(0).unwrap();
    assert!(token.iter().all(|byte| *byte == 0));
}

#[test]
fn no_token_for_nothing_or_too_much() {
    let (_file, descriptor) = file(b"x");
    assert!(reserve(Arc::clone(&descriptor), 0).is_err());
    assert!(reserve(Arc::clone(&descriptor), u64::MAX).is_err());
    assert!(reserve(Arc::clone(&descriptor), 1 << 60).is_err());
    assert_eq!(Arc::strong_count(&descriptor), 1);
}

#[test]
fn a_full_socket_is_told_from_a_short_file() {
    let (ours, mut theirs) = UnixStream::pair().unwrap();
    ours.set_nonblocking(true).unwrap();
    let content = pattern(1 << 20);
    let (file, descriptor) = file(&content);
    let token = reserve(descriptor, 1 << 20).unwrap();

    let first = write_vectored(ours.as_fd(), &[IoSlice::new(&token)]).unwrap().unwrap();
    assert!(first.full && first.bytes > 0 && first.bytes < content.len(), "{first:?}");
    let blocked = write_vectored(ours.as_fd(), &[IoSlice::new(&token[first.bytes..])]).unwrap();
    assert_eq!(blocked.unwrap_err().kind(), ErrorKind::WouldBlock);
    let mut received = vec![0; first.bytes];
    theirs.read_exact(&mut received).unwrap();
    assert!(received == content[..first.bytes]);

    // 100 bytes are left of what was announced; they come, but nothing says that the socket is full.
    file.set_len(first.bytes as u64 + 100).unwrap();
    let rest = write_vectored(ours.as_fd(), &[IoSlice::new(&token[first.bytes..])]).unwrap().unwrap();
    assert_eq!(rest, Written { bytes: 100, full: false });
    let end = write_vectored(ours.as_fd(), &[IoSlice::new(&token[first.bytes + 100..])]).unwrap();
    assert_eq!(end.unwrap_err().kind(), ErrorKind::UnexpectedEof);
}

#[test]
fn what_was_written_before_an_error_counts() {
    let (ours, mut theirs) = UnixStream::pair().unwrap();
    let (file, descriptor) = file(&pattern(50_000));
    let token = reserve(descriptor, 50_000).unwrap();
    file.set_len(0).unwrap();
    let written = write_vectored(ours.as_fd(), &[IoSlice::new(b"head"), IoSlice::new(&token)]).unwrap().unwrap();
    assert_eq!(written, Written { bytes: 4, full: false });
    let mut head = [0; 4];
    theirs.read_exact(&mut head).unwrap();
    assert_eq!(&head, b"head");
}
