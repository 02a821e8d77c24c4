//! Tests of `informational`: acceptance, timing, limits, and results.

use super::*;

fn lines(pairs: &[(&'static str, &'static str)]) -> Vec<(Bytes, Bytes)> {
    pairs
        .iter()
        .map(|(name, value)| (Bytes::from_static(name.as_bytes()), Bytes::from_static(value.as_bytes())))
        .collect()
}

/// Everything in the queue.
fn all(queue: &Queue) -> String {
    let mut out = Vec::new();
    if queue.is_any() {
        queue.take(&mut out);
    }
    String::from_utf8(out).unwrap()
}

#[test]
fn an_informational_response_is_taken_whole_and_once() {
    let queue = Queue::default();
    let number = queue.open();
    let link = [("Link", "</a.css>; rel=preload"), ("Content-Type", "text/html"), ("Connection", "close")];
    queue.send(number, 103, &lines(&link));
    queue.send(number, 103, &lines(&[("X", "a\r\nB: c"), ("Bad name", "v"), ("Y", "z")]));
    let expected =
        "HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n\r\nHTTP/1.1 103 Early Hints\r\nY: z\r\n\r\n";
    assert_eq!(all(&queue), expected);
    assert_eq!(all(&queue), "");
}

#[test]
fn an_invalid_informational_status_is_dropped() {
    let queue = Queue::default();
    let number = queue.open();
    for status in [0, 99, 101, 200, 500, 1000, u16::MAX] {
        queue.send(number, status, &[]);
    }
    assert_eq!(all(&queue), "");
}

#[test]
fn informational_responses_are_queued_only_for_an_unanswered_current_request() {
    let queue = Queue::default();
    let first = queue.open();
    queue.send(first + 1, 103, &[]);
    assert_eq!(all(&queue), "", "of a request that has not begun");
    queue.close();
    queue.send(first, 103, &[]);
    assert!(!queue.ask(102));
    assert_eq!(all(&queue), "", "between two requests");
    let second = queue.open();
    queue.send(first, 103, &[]);
    queue.send(0, 103, &[]);
    assert_eq!(all(&queue), "", "into the next one");
    assert!(queue.ask(102));
    queue.send(second, 103, &[]);
    queue.close();
    assert_eq!(all(&queue).matches("HTTP/1.1 ").count(), 2, "accepted ones precede the response");
}

#[test]
fn a_failed_request_drops_only_its_own_pending_data() {
    let queue = Queue::default();
    let first = queue.open();
    queue.send(first, 103, &lines(&[("A", "1")]));
    queue.discard(first);
    assert_eq!(all(&queue), "");
    let second = queue.open();
    queue.send(second, 103, &lines(&[("B", "1")]));
    queue.discard(first);
    assert_eq!(all(&queue), "HTTP/1.1 103 Early Hints\r\nB: 1\r\n\r\n");
}

#[test]
fn waiting_data_is_bounded_in_number_and_in_bytes() {
    let waiting = |of: usize, length: usize| {
        let queue = Queue::default();
        let number = queue.open();
        let value = Bytes::from(vec![b'v'; length]);
        for _ in 0..of {
            queue.send(number, 103, &[(Bytes::from_static(b"X"), value.clone())]);
        }
        let out = all(&queue);
        (out.matches("HTTP/1.1 103 ").count(), out.len())
    };
    assert_eq!(waiting(1000, 1).0, MAX_RESPONSES as usize);
    assert_eq!(waiting(8, 7000).0, 8);
    assert!(waiting(32, 8000).1 <= MAX_BYTES);
    assert_eq!(waiting(3, MAX_BYTES).0, 0);
    let queue = Queue::default();
    let number = queue.open();
    let many = vec![(Bytes::from_static(b"A"), Bytes::from_static(b"b")); MAX_LINES + 1];
    queue.send(number, 103, &many);
    assert_eq!(all(&queue), "");
}

#[test]
fn the_first_response_over_the_limit_is_marked() {
    let queue = Queue::default();
    let number = queue.open();
    let sent: Vec<_> = (0..MAX_RESPONSES + 2).map(|_| queue.send(number, 103, &[])).collect();
    assert!(sent[..MAX_RESPONSES as usize].iter().all(|taken| *taken == SendResult::Done));
    assert_eq!(
        sent[MAX_RESPONSES as usize..],
        [SendResult::TooMuch { first: true }, SendResult::TooMuch { first: false }]
    );
}

#[test]
fn the_informational_limit_is_per_request() {
    let queue = Queue::default();
    for _ in 0..100 {
        let number = queue.open();
        queue.send(number, 103, &[(Bytes::from_static(b"X"), vec![b'v'; MAX_BYTES / 2].into())]);
        assert!(all(&queue).len() > MAX_BYTES / 2);
        queue.close();
    }
    assert_eq!(queue.used().load(Relaxed), 0);
}

#[test]
fn concurrent_requests_share_the_limit_of_their_connection() {
    let of_connection = AtomicUsize::new(0);
    let mut all: Vec<Allowance> = std::iter::repeat_with(Allowance::default).take(100).collect();
    let fits = |one: &mut Allowance| one.take(&of_connection, MAX_BYTES) == SendResult::Done;
    assert_eq!(all.iter_mut().filter_map(|one| fits(one).then_some(())).count(), MAX_CONNECTION_BYTES / MAX_BYTES);
    all.iter_mut().for_each(|one| one.give_back(&of_connection));
    assert_eq!(of_connection.load(Relaxed), 0);
}

#[test]
fn too_many_lines_are_refused_without_a_panic() {
    let names = |n: usize| -> Vec<(Bytes, Bytes)> { (0..n).map(|i| (format!("X-{i}").into(), Bytes::new())).collect() };
    assert_eq!(fields(&names(MAX_LINES)).unwrap().0.len(), MAX_LINES);
    for many in [MAX_LINES + 1, 24_577, 30_000, 170_000] {
        assert!(fields(&names(many)).is_none(), "{many}");
    }
}
