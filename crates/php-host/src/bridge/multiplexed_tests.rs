//! Tests the functions of a multiplexed worker, called as the shim calls them.

use super::*;
use crate::bridge::howdah_rs_log;
use crate::bridge::install;
use crate::bridge::request::{
    howdah_rs_done, howdah_rs_end_response, howdah_rs_flush, howdah_rs_read_body, howdah_rs_write,
};
use howdah_transport::WorkerEnd;
use howdah_transport::control_socket::{self, ControlSocket};
use howdah_transport::wire::{CANCEL_CLIENT_GONE, CANCEL_DEADLINE, EncodedRequest, FrameKind, RequestBuilder, VarName};
use howdah_transport::{BodyInLane, FrameReceiver, LaneSizes, RequestSender, create_lane, new_eventfd, new_wake_pipe};
use std::os::fd::AsFd;

struct Server {
    sender: RequestSender,
    frames: FrameReceiver,
    control: ControlSocket,
}

/// Makes this process a worker in async mode.
fn become_worker() -> Server {
    let (sender, frames, fd) = create_lane(LaneSizes::DEFAULT).unwrap();
    let (ours, theirs) = control_socket::pair().unwrap();
    let (our_wake_pipe, their_wake_pipe) = new_wake_pipe().unwrap();
    let end = WorkerEnd::attach(&fd, new_eventfd().unwrap(), theirs.into()).unwrap();
    install(end.with_wake_pipe(their_wake_pipe));
    Server { sender: sender.with_wake_pipe(our_wake_pipe), frames, control: ours.into() }
}

fn request(uri: &[u8]) -> EncodedRequest {
    let mut builder = RequestBuilder::new(1, 1001, 1);
    let uri = builder.var(VarName::REQUEST_URI, uri);
    builder.uri(uri);
    builder.finish()
}

fn event() -> (EventKind, *const WireRequest, u64, c_uint) {
    let (mut request, mut number, mut reason) = (std::ptr::null(), 0, 0);
    let kind = howdah_rs_take_event(&raw mut request, &raw mut number, &raw mut reason);
    (kind, request, number, reason)
}

fn body() -> Vec<u8> {
    let mut buffer = [0; 16];
    let n = howdah_rs_read_body(buffer.as_mut_ptr(), buffer.len());
    buffer[..n].iter().map(|&byte| byte as u8).collect()
}

fn write(text: &str) -> bool {
    howdah_rs_write(text.as_ptr().cast(), text.len())
}

fn is_readable(fd: c_int) -> bool {
    let mut waited = libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
    // SAFETY: one valid structure.
    unsafe { libc::poll(&raw mut waited, 1, 0) == 1 }
}

impl Server {
    /// Published frames: kind, number, text.
    fn published(&mut self) -> Vec<(FrameKind, u64, String)> {
        let frames: Vec<_> = std::iter::from_fn(|| self.frames.next_frame().unwrap())
            .map(|frame| (frame.kind, frame.number, String::from_utf8_lossy(&frame.payload).into_owned()))
            .collect();
        self.frames.frames_taken();
        frames
    }
}

/// A single test: the bridge has one host per process.
#[test]
fn several_requests_are_kept_apart() {
    let mut server = become_worker();
    assert_eq!(event().0, EventKind::None);

    // Two requests with different body transports; the worker sleeps and is woken for them.
    assert!(howdah_rs_prepare_wait());
    let file = rustix::fs::memfd_create("body", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
    rustix::io::write(&file, b"in a file").unwrap();
    server.sender.send_request(&request(b"/one"), 1, BodyInLane::Descriptor(9)).unwrap();
    assert!(is_readable(howdah_rs_wake_fd()));
    howdah_rs_woken();
    assert_eq!(event().0, EventKind::None, "its body is still to come");
    assert_eq!(server.published(), [(FrameKind::NeedBody, 1, String::new())]);
    assert!(howdah_rs_prepare_wait());
    server.control.send_body(1, file.as_fd()).unwrap();
    server.sender.message_sent();
    assert!(is_readable(howdah_rs_wake_fd()));
    howdah_rs_woken();
    server.sender.send_request(&request(b"/two"), 2, BodyInLane::Inline(b"in the request")).unwrap();
    assert!(!howdah_rs_prepare_wait(), "there is something to take");
    let (kind, one, number, _) = event();
    assert_eq!((kind, number), (EventKind::Request, 1));
    let (kind, two, number, _) = event();
    assert_eq!((kind, number), (EventKind::Request, 2));
    assert_eq!(event().0, EventKind::None);
    // Other requests reuse the ring in the meantime.
    for number in 3..200 {
        server.sender.send_request(&request(&[b'x'; 4000]), number, BodyInLane::None).unwrap();
        assert_eq!(event().2, number);
    }
    for (request, number) in [(one, 1), (two, 2)] {
        // SAFETY: valid until the request is done.
        let head = unsafe { *request };
        assert_eq!((head.number, head.uri.len), (number, 4));
    }

    // With no request selected, nothing is read or written.
    assert!(body().is_empty() && write("lost"));
    howdah_rs_end_response(true);
    howdah_rs_done(0, false);
    howdah_rs_publish();
    assert!(server.published().is_empty());

    howdah_rs_select_request(1);
    assert_eq!(body(), b"in a file");
    howdah_rs_select_request(2);
    assert_eq!(body(), b"in the request");
    assert!(write("two "));
    howdah_rs_select_request(1);
    assert!(write("one"));
    howdah_rs_log(4, c"said".as_ptr(), 4);
    howdah_rs_select_request(2);
    assert!(write("and two") && body().is_empty());
    howdah_rs_done(0, false);
    assert!(server.published().is_empty(), "nothing was published yet");
    howdah_rs_publish();
    let seen = server.published();
    let texts: Vec<_> = seen.iter().map(|(kind, number, text)| (*kind, *number, text.as_str())).collect();
    let (body_frame, log) = (FrameKind::Body, FrameKind::Log);
    assert_eq!(
        texts[..4],
        [(body_frame, 2, "two "), (body_frame, 1, "one"), (log, 1, "\u{4}said"), (body_frame, 2, "and two")]
    );
    let ends: Vec<_> = texts[4..].iter().map(|(kind, number, _)| (*kind, *number)).collect();
    assert_eq!(ends, [(FrameKind::Head, 2), (FrameKind::End, 2), (FrameKind::Done, 2)]);

    // A cancellation reaches only its request, selected or not; one for an ended request is ignored.
    server.sender.send_cancel(2, CANCEL_CLIENT_GONE).unwrap();
    server.sender.send_cancel(1, CANCEL_CLIENT_GONE).unwrap();
    howdah_rs_select_request(3);
    server.sender.send_cancel(3, CANCEL_DEADLINE).unwrap();
    server.sender.send_stop().unwrap();
    let (kind, _, number, reason) = event();
    assert_eq!((kind, number, reason), (EventKind::Cancel, 1, CANCEL_CLIENT_GONE));
    let (kind, _, number, reason) = event();
    assert_eq!((kind, number, reason), (EventKind::Cancel, 3, CANCEL_DEADLINE));
    assert_eq!((event().0, event().0), (EventKind::Stop, EventKind::None));
    assert!(!write("x") && !howdah_rs_flush());
    howdah_rs_select_request(1);
    assert!(!write("x"));
    howdah_rs_select_request(4);
    assert!(write("x") && howdah_rs_flush());
}
