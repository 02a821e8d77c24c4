//! Tests of `interim`: what is taken in, when, how much of it, and what becomes of it.

use super::*;
use std::future::Future;
use std::pin::pin;

const ID: RequestId = RequestId(7);

fn lines(pairs: &[(&'static str, &'static str)]) -> Vec<(Bytes, Bytes)> {
    pairs
        .iter()
        .map(|(name, value)| (Bytes::from_static(name.as_bytes()), Bytes::from_static(value.as_bytes())))
        .collect()
}

/// Everything that waits, taken by the socket in steps.
fn all(interim: &Interim, step: usize) -> String {
    let mut out = Vec::new();
    let polled = interim.poll_write(|bytes| {
        let n = bytes.len().min(step);
        out.extend_from_slice(&bytes[..n]);
        Poll::Ready(Ok(n))
    });
    assert!(matches!(polled, Poll::Ready(Ok(()))));
    String::from_utf8(out).unwrap()
}

/// Whether the request may go on with its answer.
fn goes_on(future: std::pin::Pin<&mut impl Future<Output = ()>>) -> bool {
    future.poll(&mut Context::from_waker(Waker::noop())).is_ready()
}

#[test]
fn an_interim_answer_is_written_whole_and_once() {
    let interim = Interim::default();
    let open = interim.open();
    let link = [("Link", "</a.css>; rel=preload"), ("Content-Type", "text/html"), ("Connection", "close")];
    interim.add(open.number(), ID, 103, &lines(&link));
    interim.add(open.number(), ID, 103, &lines(&[("X", "a\r\nB: c"), ("Bad name", "v"), ("Y", "z")]));
    let expected =
        "HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n\r\nHTTP/1.1 103 Early Hints\r\nY: z\r\n\r\n";
    assert_eq!(all(&interim, 7), expected);
    assert_eq!(all(&interim, 7), "");
}

#[test]
fn what_is_no_interim_status_is_left_out() {
    let interim = Interim::default();
    let open = interim.open();
    for status in [0, 99, 101, 200, 500, 1000, u16::MAX] {
        interim.add(open.number(), ID, status, &[]);
    }
    assert_eq!(all(&interim, 100), "");
}

#[test]
fn the_answer_waits_for_a_slow_client() {
    let interim = Interim::default();
    let open = interim.open();
    interim.add(open.number(), ID, 103, &[]);
    assert!(interim.poll_write(|_| Poll::Pending).is_pending());
    let mut closing = pin!(open.close(false));
    assert!(!goes_on(closing.as_mut()));
    assert!(!all(&interim, 3).is_empty());
    assert!(goes_on(closing));
}

#[test]
fn nothing_is_taken_in_once_the_answer_goes_on_or_for_another_request() {
    let interim = Interim::default();
    let first = interim.open();
    let number = first.number();
    interim.add(number + 1, ID, 103, &[]);
    assert_eq!(all(&interim, 100), "", "of a request that has not begun");
    assert!(goes_on(pin!(first.close(false))));
    interim.add(number, ID, 103, &[]);
    assert!(!interim.ask(102));
    assert_eq!(all(&interim, 100), "", "between two requests");
    let second = interim.open();
    interim.add(number, ID, 103, &[]);
    interim.add(0, ID, 103, &[]);
    assert_eq!(all(&interim, 100), "", "into the next one");
    assert!(interim.ask(102));
    interim.add(second.number(), ID, 103, &[]);
    drop(second);
    assert_eq!(all(&interim, 100), "", "of a request that was given up");
}

#[test]
fn a_failed_request_drops_what_has_not_begun_and_finishes_what_has() {
    let interim = Interim::default();
    let open = interim.open();
    for name in ["A", "B"] {
        interim.add(open.number(), ID, 103, &lines(&[(name, "1")]));
    }
    let mut begun = Vec::new();
    assert!(
        interim
            .poll_write(|bytes| {
                if !begun.is_empty() {
                    return Poll::Pending;
                }
                begun.extend_from_slice(&bytes[..5]);
                Poll::Ready(Ok(5))
            })
            .is_pending()
    );
    let mut closing = pin!(open.close(true));
    assert!(!goes_on(closing.as_mut()), "the answer must not begin within an interim one");
    assert_eq!(String::from_utf8(begun).unwrap() + &all(&interim, 100), "HTTP/1.1 103 Early Hints\r\nA: 1\r\n\r\n");
    assert!(goes_on(closing));
}

#[test]
fn what_waits_is_bounded_in_number_and_in_bytes() {
    let waiting = |of: usize, length: usize| {
        let interim = Interim::default();
        let open = interim.open();
        let value = Bytes::from(vec![b'v'; length]);
        for _ in 0..of {
            interim.add(open.number(), ID, 103, &[(Bytes::from_static(b"X"), value.clone())]);
        }
        let out = all(&interim, 1 << 20);
        (out.matches("HTTP/1.1 103 ").count(), out.len())
    };
    assert_eq!(waiting(1000, 1).0, MOST_ANSWERS as usize);
    assert_eq!(waiting(8, 7000).0, 8);
    assert!(waiting(32, 8000).1 <= MOST_BYTES);
    assert_eq!(waiting(3, MOST_BYTES).0, 0);
    let interim = Interim::default();
    let open = interim.open();
    let many = vec![(Bytes::from_static(b"A"), Bytes::from_static(b"b")); MOST_LINES + 1];
    interim.add(open.number(), ID, 103, &many);
    assert_eq!(all(&interim, 100), "");
}

#[test]
fn each_request_of_a_connection_may_send_as_much_and_none_after_its_end() {
    let interim = Interim::default();
    for _ in 0..100 {
        let open = interim.open();
        interim.add(open.number(), ID, 103, &[(Bytes::from_static(b"X"), vec![b'v'; MOST_BYTES / 2].into())]);
        assert!(all(&interim, 1 << 20).len() > MOST_BYTES / 2);
        assert!(goes_on(pin!(open.close(false))));
    }
    let open = interim.open();
    interim.add(open.number(), ID, 103, &[]);
    let mut closing = pin!(open.close(false));
    assert!(!goes_on(closing.as_mut()));
    interim.end();
    assert!(goes_on(closing), "nobody waits for a connection that has ended");
    let open = interim.open();
    interim.add(open.number(), ID, 103, &[]);
    assert_eq!(all(&interim, 100), "");
    assert_eq!(interim.bytes.load(Relaxed), 0);
}

#[test]
fn requests_side_by_side_share_what_a_connection_may_hold() {
    let of_connection = AtomicUsize::new(0);
    let mut all: Vec<Allowance> = std::iter::repeat_with(Allowance::default).take(100).collect();
    let fit = all.iter_mut().filter_map(|one| one.take(&of_connection, MOST_BYTES, ID).then_some(())).count();
    assert_eq!(fit, MOST_BYTES_OF_CONNECTION / MOST_BYTES);
    all.iter_mut().for_each(|one| one.give_back(&of_connection));
    assert_eq!(of_connection.load(Relaxed), 0);
}

#[test]
fn too_many_lines_make_no_panic() {
    let names = |n: usize| -> Vec<(Bytes, Bytes)> { (0..n).map(|i| (format!("X-{i}").into(), Bytes::new())).collect() };
    assert_eq!(fields(&names(MOST_LINES)).unwrap().0.len(), MOST_LINES);
    for many in [MOST_LINES + 1, 24_577, 30_000, 170_000] {
        assert!(fields(&names(many)).is_none(), "{many}");
    }
}
