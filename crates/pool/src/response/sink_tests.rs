//! Tests of `sink`: order, budgets, ends.

use super::*;

fn response(receiver: &mut Option<ResponseBody>) -> Poll<Result<Response, Fault>> {
    ResponseBody::poll_response(receiver, &mut Context::from_waker(Waker::noop()))
}

fn pair(memory: usize) -> (Sink, Option<ResponseBody>) {
    pair_of(memory, howdah_budget::Budgets::new(1 << 30, 1 << 30))
}

fn pair_of(memory: usize, budgets: howdah_budget::Budgets) -> (Sink, Option<ResponseBody>) {
    let limits = Arc::new(Limits { memory, temp_dir: std::env::temp_dir(), budgets });
    let (sink, receiver) = new(limits, RequestStats::default(), None);
    (sink, Some(receiver))
}

fn bytes_of(whole: WholeBody) -> Bytes {
    match whole {
        WholeBody::Memory(bytes) => bytes,
        WholeBody::InRing(held) => held.copy_from(0).into(),
    }
}

fn chunks(body: &mut ResponseBody) -> (Vec<u8>, usize) {
    let (mut bytes, mut flushes) = (Vec::new(), 0);
    loop {
        match std::pin::Pin::new(&mut *body).poll_chunk(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(Some(chunk)) => {
                let chunk = chunk.unwrap();
                bytes.extend_from_slice(&chunk.data);
                flushes += usize::from(chunk.flush);
            }
            Poll::Ready(None) | Poll::Pending => return (bytes, flushes),
        }
    }
}

#[test]
fn a_head_is_not_seen_before_the_rest_of_its_batch() {
    let (sink, mut receiver) = pair(100);
    sink.set_head(200, Vec::new());
    assert!(response(&mut receiver).is_pending());
    sink.push(Bytes::from_static(b"hello"), false);
    sink.end();
    let Poll::Ready(Ok(mut response)) = response(&mut receiver) else { panic!("no response") };
    assert_eq!(response.body.complete_len(), Some(5));
    assert_eq!(bytes_of(response.body.take_complete().unwrap()), "hello");
}

#[test]
fn spilled_data_is_read_back_in_order() {
    let (sink, mut receiver) = pair(1000);
    sink.set_head(200, Vec::new());
    let parts: Vec<Vec<u8>> = (0..40u8).map(|n| vec![n; 100]).collect();
    for (n, part) in parts.iter().enumerate() {
        sink.push(Bytes::from(part.clone()), n == 20);
    }
    sink.wake();
    let Poll::Ready(Ok(mut response)) = response(&mut receiver) else { panic!("no response") };
    let (first, flushes) = chunks(&mut response.body);
    assert_eq!((first, flushes), (parts.concat(), 1));
    // Once the file is read back, later parts stay in memory again.
    sink.push(Bytes::from_static(b"tail"), true);
    sink.end();
    assert_eq!(response.body.complete_len(), Some(4));
    assert_eq!(chunks(&mut response.body), (b"tail".to_vec(), 1));
}

#[test]
fn a_response_that_comes_after_the_fault_is_not_delivered() {
    let (sink, mut receiver) = pair(100);
    sink.fail(Fault::new(FaultKind::Deadline));
    sink.set_head(200, Vec::new());
    sink.push(Bytes::from_static(b"late"), false);
    sink.end();
    sink.wake();
    let Poll::Ready(Err(fault)) = response(&mut receiver) else { panic!("no fault") };
    assert_eq!(fault.kind.status(), 504);
}

#[test]
fn a_closed_reader_gets_nothing_and_the_writer_is_notified() {
    let (sink, receiver) = pair(100);
    drop(receiver);
    assert!(sink.is_gone());
    sink.push(Bytes::from_static(b"x"), true);
    sink.fail(Fault::new(FaultKind::WorkerDied));
}

#[test]
fn output_of_a_dead_worker_is_dropped_before_the_request_runs_again() {
    let (sink, mut receiver) = pair(100);
    sink.set_head(500, Vec::new());
    sink.push(Bytes::from_static(b"half"), false);
    assert!(!sink.is_delivered());
    sink.reset();
    sink.set_head(200, Vec::new());
    sink.push(Bytes::from_static(b"whole"), false);
    sink.end();
    let Poll::Ready(Ok(mut response)) = response(&mut receiver) else { panic!("no response") };
    assert_eq!(
        (response.status, bytes_of(response.body.take_complete().unwrap())),
        (200, Bytes::from_static(b"whole"))
    );
    assert_eq!(response.body.stats().replays, 1);
}

/// A body in a worker's ring, with its lane.
fn in_ring(body: &[u8]) -> (HeldPayload, impl Sized) {
    let (sender, mut frames, fd) = howdah_transport::create_lane(howdah_transport::LaneSizes::DEFAULT).unwrap();
    let (ours, theirs) = howdah_transport::control_socket::pair().unwrap();
    let eventfd = howdah_transport::new_eventfd().unwrap();
    let mut worker = howdah_transport::WorkerEnd::attach(&fd, eventfd, theirs.into()).unwrap();
    worker.write(body).unwrap();
    worker.publish();
    let held = frames.next_frame_in_place().unwrap().and_then(|frame| frame.held).unwrap();
    (held, (sender, frames, worker, ours))
}

#[test]
fn a_complete_body_in_one_piece_is_handed_over_in_the_ring_and_any_other_as_a_copy() {
    let body = vec![b'x'; 20_000];
    // An action before the front takes the body, and whether the body is still in the ring then.
    let nothing: fn(&Sink) = |_| ();
    for (then, stays) in
        [(nothing, true), (Sink::settle, false), (|sink| _ = sink.push(Bytes::from_static(b"y"), false), false)]
    {
        let (sink, mut receiver) = pair(30_000);
        let (held, _lane) = in_ring(&body);
        sink.set_head(200, Vec::new());
        assert!(sink.push_held(held).is_none());
        then(&sink);
        sink.end();
        let Poll::Ready(Ok(mut response)) = response(&mut receiver) else { panic!("no response") };
        let len = response.body.complete_len().unwrap();
        let whole = response.body.take_complete().unwrap();
        assert_eq!(matches!(whole, WholeBody::InRing(_)), stays);
        let bytes = bytes_of(whole);
        assert!(bytes.len() as u64 == len && bytes.starts_with(&body));
    }
    // A body beyond the memory limit goes to the file, like any other.
    let (sink, _receiver) = pair(10_000);
    let (held, _lane) = in_ring(&body);
    assert!(sink.push_held(held).is_some());
}

#[test]
fn bytes_that_are_flushed_one_by_one_take_no_more_than_they_are_charged() {
    let budgets = howdah_budget::Budgets::new(1 << 26, 1 << 26);
    let (sink, mut receiver) = pair_of(1 << 20, budgets);
    sink.set_head(200, Vec::new());
    for _ in 0..1 << 20 {
        sink.push(Bytes::from_static(b"y"), true);
        sink.push(Bytes::new(), true);
    }
    // Charged are the capacities of the buffers in which parts were joined.
    assert!((1 << 20..3 << 19).contains(&budgets.memory.used()), "{}", budgets.memory.used());
    assert_eq!(lock(&sink.inner).parts.len(), 64);
    sink.wake();
    let Poll::Ready(Ok(mut response)) = response(&mut receiver) else { panic!("no response") };
    let (bytes, flushes) = chunks(&mut response.body);
    assert_eq!((bytes.len(), flushes), (1 << 20, 64));
    assert_eq!(budgets.memory.used(), 0);
}

#[test]
fn flushes_without_data_count_as_one() {
    let (sink, mut receiver) = pair(100);
    sink.set_head(200, Vec::new());
    (0..1000).for_each(|_| _ = sink.push(Bytes::new(), true));
    assert_eq!(lock(&sink.inner).parts.len(), 1);
    sink.wake();
    let Poll::Ready(Ok(mut response)) = response(&mut receiver) else { panic!("no response") };
    assert_eq!(chunks(&mut response.body), (Vec::new(), 1));
}

#[test]
fn a_response_beyond_all_budgets_waits_in_its_worker_and_arrives_in_order() {
    // Room for two parts in memory, and for two in the file.
    let budgets = howdah_budget::Budgets::new(1 << 20, 1 << 20);
    let (sink, mut receiver) = pair_of(1 << 30, budgets);
    let part = |n: u8| Bytes::from(vec![n; 400_000]);
    let after: Vec<bool> = (0..5).map(|n| sink.push(part(n), n == 4).overfull).collect();
    assert_eq!(after, [false, false, false, false, true]);
    assert!(sink.lacks_budget() && budgets.memory.refused() > 0 && budgets.spool.refused() > 0);
    let mut cx = Context::from_waker(Waker::noop());
    assert!(sink.poll_room(&mut cx).is_pending());
    sink.set_head(200, Vec::new());
    sink.wake();
    let Poll::Ready(Ok(mut response)) = response(&mut receiver) else { panic!("no response") };
    let (mut all, mut turns) = (Vec::new(), 0);
    let mut next = 5;
    while next < 9 {
        turns += 1;
        assert!(turns < 10_000, "no progress");
        if let Poll::Ready(Some(chunk)) = std::pin::Pin::new(&mut response.body).poll_chunk(&mut cx) {
            all.extend_from_slice(&chunk.unwrap().data);
        }
        if sink.poll_room(&mut cx).is_ready() {
            sink.push(part(next), false);
            next += 1;
        }
    }
    sink.end();
    all.extend(chunks(&mut response.body).0);
    assert_eq!(all.len(), 9 * 400_000);
    assert!(all.chunks(400_000).enumerate().all(|(n, chunk)| chunk.iter().all(|byte| *byte == n as u8)));
    drop(response);
    assert_eq!((budgets.memory.used(), budgets.spool.used()), (0, 0));
}

#[test]
fn a_response_that_cannot_be_spilled_is_paced_by_its_client() {
    let budgets = howdah_budget::Budgets::new(1 << 26, 1 << 26);
    let limits = Arc::new(Limits { memory: 300_000, temp_dir: "/dev/null/none".into(), budgets });
    let (sink, receiver) = new(limits, RequestStats::default(), None);
    let mut receiver = Some(receiver);
    let part = |n: u8| Bytes::from(vec![n; 100_000]);
    let after: Vec<bool> = (0..4).map(|n| sink.push(part(n), false).overfull).collect();
    assert_eq!(after, [false, false, false, true]);
    sink.set_head(200, Vec::new());
    sink.wake();
    let Poll::Ready(Ok(mut response)) = response(&mut receiver) else { panic!("no response") };
    let mut all = chunks(&mut response.body).0;
    assert!(sink.poll_room(&mut Context::from_waker(Waker::noop())).is_ready());
    sink.push(part(4), false);
    sink.end();
    all.extend(chunks(&mut response.body).0);
    assert!(all.len() == 500_000 && all.is_sorted());
    drop(response);
    assert_eq!((budgets.memory.used(), budgets.spool.used()), (0, 0));
}

#[test]
fn a_body_without_budget_when_it_leaves_the_ring_fails_the_response() {
    let budgets = howdah_budget::Budgets::new(0, 0);
    let (sink, mut receiver) = pair_of(30_000, budgets);
    let body = [b'x'; 20_000];
    let (held, _lane) = in_ring(&body);
    sink.set_head(200, Vec::new());
    assert!(sink.push_held(held).is_none());
    sink.end();
    sink.settle();
    sink.wake();
    let Poll::Ready(Err(fault)) = response(&mut receiver) else { panic!("no fault") };
    assert_eq!((fault.kind.status(), fault.kind.retry_after()), (503, Some(1)));
}

#[test]
fn an_abandoned_response_leaves_no_charge() {
    let budgets = howdah_budget::Budgets::new(1 << 26, 1 << 26);
    let (sink, mut receiver) = pair_of(100_000, budgets);
    sink.set_head(200, Vec::new());
    (0..20).for_each(|_| _ = sink.push(Bytes::from(vec![b'x'; 50_000]), false));
    sink.wake();
    assert!(budgets.memory.used() > 0 && budgets.spool.used() >= 900_000);
    let Poll::Ready(Ok(mut response)) = response(&mut receiver) else { panic!("no response") };
    let mut cx = Context::from_waker(Waker::noop());
    let Poll::Ready(Some(Ok(first))) = std::pin::Pin::new(&mut response.body).poll_chunk(&mut cx) else { panic!() };
    drop(response);
    assert_eq!(budgets.spool.used(), 0);
    assert!((50_000..51_000).contains(&budgets.memory.used()), "bytes on their way to the client stay charged");
    drop(first);
    assert_eq!(budgets.memory.used(), 0);
}

fn copied(copy: &mut oneshot::Receiver<BodyCopy>) -> Option<Vec<u8>> {
    copy.try_recv().ok().map(|copy| copy.bytes().to_vec())
}

#[test]
fn a_copy_has_the_whole_body_whether_taken_at_once_or_in_parts() {
    let (sink, mut receiver) = pair(100);
    sink.set_head(200, Vec::new());
    sink.push(Bytes::from_static(b"hello"), false);
    sink.end();
    let Poll::Ready(Ok(mut response)) = response(&mut receiver) else { panic!("no response") };
    let mut copy = response.body.copy(5);
    response.body.take_complete().unwrap();
    assert_eq!(copied(&mut copy).as_deref(), Some(&b"hello"[..]));

    // Taken in parts, by a front that polls the end or drops the body at its known length.
    for asks_for_the_end in [true, false] {
        let (sink, mut receiver) = pair(100);
        sink.set_head(200, Vec::new());
        sink.push(Bytes::from(vec![1; 2000]), true);
        sink.wake();
        let Poll::Ready(Ok(mut response)) = self::response(&mut receiver) else { panic!("no response") };
        let mut copy = response.body.copy(4000);
        assert_eq!(chunks(&mut response.body).0.len(), 2000);
        sink.push(Bytes::from(vec![2; 2000]), true);
        sink.end();
        let mut cx = Context::from_waker(Waker::noop());
        assert!(matches!(response.body.poll_chunk(&mut cx), Poll::Ready(Some(Ok(_)))));
        assert_eq!(copied(&mut copy), None, "there may be more");
        if asks_for_the_end {
            chunks(&mut response.body);
        } else {
            drop(response);
        }
        assert_eq!(copied(&mut copy).map(|bytes| bytes.len()), Some(4000));
    }
}

#[test]
fn oversized_truncated_or_unaffordable_bodies_are_not_copied() {
    let (long, broken, dropped, dear) = (0, 1, 2, 3);
    for case in [long, broken, dropped, dear] {
        let budgets = howdah_budget::Budgets::new(if case == dear { 1000 } else { 1 << 20 }, 1 << 20);
        let (sink, mut receiver) = pair_of(100_000, budgets);
        sink.set_head(200, Vec::new());
        sink.push(Bytes::from(vec![1; 2000]), true);
        sink.wake();
        let Poll::Ready(Ok(mut response)) = response(&mut receiver) else { panic!("no response") };
        let mut copy = response.body.copy(if case == long { 1999 } else { 100_000 });
        if case != dropped {
            assert_eq!(chunks(&mut response.body).0.len(), 2000, "the client gets all of it");
        }
        if case == broken {
            sink.fail(Fault::new(FaultKind::WorkerDied));
        } else {
            sink.end();
        }
        if case != dropped {
            let _ = response.body.poll_chunk(&mut Context::from_waker(Waker::noop()));
        }
        drop(response);
        assert!(copied(&mut copy).is_none(), "{case}");
    }
}
