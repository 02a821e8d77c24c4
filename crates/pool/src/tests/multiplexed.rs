//! Multiplexed workers: scheduling for honest ones, and the effects of dying, slow or hostile ones.

use crate::fault::FaultKind;
use crate::process::worker_state::WorkerState;
use crate::request::estimate::{MeasuredDuration, RouteKey};
use crate::request::{Request, RequestBody, RequestId};
use crate::supervisor::deadline;
use crate::tests::test_pool::{TestPool, finish, finish_all, request};
use bytes::Bytes;
use howdah_transport::wire::{CANCEL_CLIENT_GONE, CANCEL_DEADLINE, RequestBuilder, WireDone};
use howdah_transport::{Event as Sent, LaneSizes};
use std::time::{Duration, Instant};

#[tokio::test]
async fn responses_that_alternate_reach_their_own_clients() {
    let mut stage = TestPool::new(10);
    let mut worker = stage.worker().await;
    let responses = [stage.get().await, stage.get().await, stage.get().await];
    assert_eq!(worker.take(), [1, 2, 3]);
    for number in [2, 1, 3] {
        worker.begin_response(number, format!("a{number}").as_bytes());
    }
    for number in [3, 1, 2] {
        worker.end.select(number);
        worker.end.write(format!("b{number}").as_bytes()).unwrap();
    }
    for number in [2, 3, 1] {
        worker.end_response(number);
    }
    for (response, number) in responses.into_iter().zip(1..) {
        assert_eq!(finish(response).await.unwrap(), format!("a{number}b{number}"));
    }
    assert_eq!(stage.running(&worker), 0);
}

/// Regression: a batch of frames ended in the middle of a response that was complete in the ring, and its front treated
/// it as a stream.
#[tokio::test]
async fn responses_that_come_together_are_whole_when_their_fronts_see_them() {
    const REQUESTS: u64 = 90;
    let mut stage = TestPool::new(REQUESTS as usize);
    let mut worker = stage.worker().await;
    let mut whole = Vec::new();
    for _ in 0..REQUESTS {
        let pool = stage.pool.clone();
        whole.push(tokio::spawn(async move {
            let response = pool.run(request(true, RequestBody::Empty)).await;
            response.is_ok_and(|mut response| response.body.take_complete().is_some())
        }));
        tokio::task::yield_now().await;
        worker.take();
    }
    // Each response has four frames: with these two, the batch ends between a body and its end.
    worker.end.select(1);
    worker.end.log(6, b"one");
    worker.end.log(6, b"two");
    for number in 1..=REQUESTS {
        worker.begin_response(number, b"short");
        worker.end.end_response(false);
        worker.end.done(WireDone::default());
    }
    worker.end.publish();
    for (response, number) in whole.into_iter().zip(1..) {
        assert!(response.await.unwrap(), "response {number} came in pieces");
    }
}

#[tokio::test]
async fn the_worker_with_fewest_requests_gets_the_next_and_no_worker_gets_too_many() {
    let mut stage = TestPool::new(3);
    let (mut first, mut second) = (stage.worker().await, stage.worker().await);
    let mut responses = Vec::new();
    for _ in 0..8 {
        responses.push(stage.get().await);
        // Taken at once; otherwise the other worker would appear less busy.
        first.take();
        second.take();
        let (a, b) = (stage.running(&first), stage.running(&second));
        assert!(a.abs_diff(b) <= 1 && a <= 3 && b <= 3, "{a} and {b}");
    }
    assert_eq!(stage.pool.status().queued, 2);
    let status = stage.pool.status();
    assert_eq!(status.workers.iter().map(|w| w.in_flight).collect::<Vec<_>>(), [3, 3]);
    second.respond(2);
    assert_eq!(finish(responses.remove(3)).await.unwrap(), "2");
    assert_eq!((stage.running(&second), second.take()), (3, vec![4]));
    assert_eq!(stage.pool.status().queued, 1);
}

#[tokio::test]
async fn a_burst_longer_than_the_ring_continues_when_the_worker_reads() {
    let mut stage = TestPool::new(200);
    stage.sizes = LaneSizes::TINY;
    let mut worker = stage.worker().await;
    for _ in 0..200 {
        drop(stage.get().await); // a detached task: the request continues
    }
    assert!(stage.pool.status().queued > 100);
    let mut taken = Vec::new();
    // The worker writes nothing meanwhile; only the room that it makes wakes the server.
    let deadline = Instant::now() + Duration::from_secs(60);
    while taken.len() < 200 {
        assert!(Instant::now() < deadline, "only {} requests came", taken.len());
        taken.extend(worker.take());
        tokio::task::yield_now().await;
    }
    assert!(taken.is_sorted_by(|a, b| a < b) && taken.len() == 200, "{taken:?}");
}

#[tokio::test]
async fn requests_with_bodies_too_long_for_the_ring_get_their_own() {
    const REQUESTS: u16 = 400;
    let mut stage = TestPool::new(1000);
    let mut worker = stage.worker().await;
    let long = |n: u16| Bytes::from(n.to_ne_bytes().repeat(20_000));
    for n in 0..REQUESTS {
        drop(stage.submit(request(false, RequestBody::Memory(long(n)))).await);
    }
    let deadline = Instant::now() + Duration::from_secs(60);
    let mut n = 0;
    while n < REQUESTS {
        assert!(Instant::now() < deadline, "only {n} requests came");
        let Some(event) = worker.end.take_event().unwrap() else {
            tokio::task::yield_now().await;
            continue;
        };
        let Sent::Request(request) = event else { panic!("{event:?}") };
        let mut got = vec![0; 40_001];
        let len = rustix::io::pread(request.body.as_ref().unwrap(), &mut got, 0).unwrap();
        assert_eq!(got[..len], long(n));
        n += 1;
    }
}

fn long_body() -> RequestBody {
    RequestBody::Memory(Bytes::from(vec![b'x'; 100_000]))
}

/// Regression: descriptors were sent with their requests. Those of requests taken back filled a busy worker's socket,
/// and kept their files open.
#[tokio::test]
async fn a_body_stays_with_the_server_until_a_worker_begins_the_request() {
    let mut stage = TestPool::new(400);
    let mut worker = stage.worker().await;
    let control = stage.shared.lock().lanes[worker.index].as_ref().unwrap().control.clone();
    for _ in 0..3 {
        let mut responses = Vec::new();
        for _ in 0..400 {
            responses.push(stage.submit(request(false, long_body())).await);
        }
        assert!(stage.running(&worker) > 0 && control.all_received(), "nothing was sent");
        for response in responses {
            response.abort();
            assert!(response.await.unwrap_err().is_cancelled());
        }
        stage.shared.lock().sweep(Duration::ZERO);
        assert_eq!(stage.running(&worker), 0);
        assert!(control.all_received() && worker.take().is_empty());
        stage.shared.lock().sweep(Duration::ZERO);
    }
}

#[tokio::test]
async fn a_request_with_a_body_whose_worker_dies_before_it_begins_goes_to_another() {
    let mut stage = TestPool::new(10);
    let mut dying = stage.worker().await;
    // A running request. Without one, the first of the others would count as begun (`rescue::parts`).
    let running = stage.get().await;
    assert_eq!(dying.take(), [1]);
    let responses =
        [running, stage.submit(request(false, long_body())).await, stage.submit(request(false, long_body())).await];
    dying.life.kill().unwrap();
    assert_eq!(stage.reported_end().await, None);
    let mut heir = stage.worker().await;
    let mut taken = Vec::new();
    let deadline = Instant::now() + Duration::from_secs(60);
    while taken.len() < 3 {
        assert!(Instant::now() < deadline, "only {taken:?} came");
        taken.extend(heir.take());
        tokio::task::yield_now().await;
    }
    taken.into_iter().for_each(|number| heir.respond(number));
    for response in responses {
        assert!(finish(response).await.is_ok());
    }
}

#[tokio::test]
async fn a_dying_worker_costs_only_the_requests_that_cannot_be_repeated() {
    let mut stage = TestPool::new(10);
    let mut dying = stage.worker().await;
    let repeatable = stage.get().await;
    let other = stage.submit(request(false, RequestBody::Empty)).await;
    let answered = stage.get().await;
    assert_eq!(dying.take(), [1, 2, 3]);
    let untaken = stage.submit(request(false, RequestBody::Empty)).await;
    // The client has its response; only the end of the request is missing.
    dying.begin_response(3, b"whole");
    dying.end.end_response(true);
    dying.begin_response(1, b"half");
    dying.end.publish();
    assert_eq!(finish(answered).await.unwrap(), "whole");
    let mut heir = stage.worker().await;
    dying.life.kill().unwrap();
    assert_eq!(stage.reported_end().await, None);
    assert_eq!(finish(other).await, Err(FaultKind::WorkerDied));
    // In order of arrival. The first response is being read: its head was seen.
    let mut taken = heir.take();
    while taken.is_empty() {
        tokio::task::yield_now().await;
        taken = heir.take();
    }
    for number in taken {
        heir.respond(number);
    }
    assert_eq!(finish(untaken).await.unwrap().len(), 1);
    let seen = finish(repeatable).await;
    assert_eq!(seen, Err(FaultKind::WorkerDied), "a part of the response had been handed out");
}

#[tokio::test]
async fn a_repeatable_request_runs_again_when_its_worker_dies_unanswered() {
    let mut stage = TestPool::new(10);
    let mut dying = stage.worker().await;
    let responses = vec![stage.get().await, stage.get().await, stage.get().await];
    assert_eq!(dying.take().len(), 3);
    dying.life.kill().unwrap();
    assert_eq!(stage.reported_end().await, None);
    let mut heir = stage.worker().await;
    assert_eq!(heir.take(), [1, 2, 3]);
    (1..=3).for_each(|number| heir.respond(number));
    // In the order of acceptance.
    let texts: Vec<_> = finish_all(responses).await.into_iter().map(Result::unwrap).collect();
    assert_eq!(texts, ["1", "2", "3"]);
}

/// As after the death of their zygote, the workers' deaths are noticed one by one.
#[tokio::test]
async fn a_request_outlives_workers_that_all_die_at_once() {
    let mut stage = TestPool::new(10);
    let mut workers = Vec::new();
    for _ in 0..6 {
        workers.push(stage.worker().await);
    }
    let response = stage.get().await;
    workers.iter_mut().for_each(|worker| worker.life.kill().unwrap());
    for _ in 0..6 {
        assert_eq!(stage.reported_end().await, None);
    }
    let mut heir = stage.worker().await;
    assert_eq!(heir.take_at_least(1).await, [1]);
    heir.respond(1);
    assert_eq!(finish(response).await.unwrap(), "1");
}

#[tokio::test]
async fn a_request_that_kills_its_workers_fails_and_bystanders_succeed() {
    let mut stage = TestPool::new(10);
    let mut head = RequestBuilder::new(5, 1001, 1);
    let method = head.text(b"GET");
    let uri = head.text(b"/deadly");
    head.method(method).uri(uri);
    let deadly = stage.submit(Box::new(Request { head: head.finish(), ..*request(true, RequestBody::Empty) })).await;
    let harmless = stage.get().await;
    for life in 0..3 {
        let mut worker = stage.worker().await;
        assert_eq!(worker.take_at_least(2).await, [1, 2]);
        // After its pause, the request comes after the other one.
        let is_deadly = |&number: &u64| stage.request_name(&worker, number).unwrap().1 == "GET /deadly";
        let number = [1, 2].into_iter().find(is_deadly).unwrap();
        worker.end.select(3 - number);
        worker.end.select(number);
        worker.life.kill().unwrap();
        assert_eq!(stage.reported_end().await, None);
        assert_eq!(deadly.is_finished(), life == 2, "it has killed {} workers", life + 1);
    }
    assert_eq!(finish(deadly).await, Err(FaultKind::WorkerDied));
    let mut heir = stage.worker().await;
    assert_eq!(heir.take(), [1]);
    heir.respond(1);
    assert_eq!(finish(harmless).await.unwrap(), "1");
}

#[tokio::test]
async fn a_client_that_leaves_cancels_its_request_only() {
    let mut stage = TestPool::new(10);
    let mut worker = stage.worker().await;
    let (leaving, staying) = (stage.get().await, stage.get().await);
    assert_eq!(worker.take(), [1, 2]);
    let untaken = stage.get().await;
    for response in [leaving, untaken] {
        response.abort();
        assert!(response.await.unwrap_err().is_cancelled());
    }
    stage.shared.lock().sweep(Duration::from_secs(60));
    assert_eq!(worker.take_all(), [(1, CANCEL_CLIENT_GONE)], "the third is not even run");
    stage.shared.lock().sweep(Duration::from_secs(60));
    assert_eq!(worker.take_all(), [], "once");
    worker.respond(1);
    worker.respond(2);
    assert_eq!(finish(staying).await.unwrap(), "2");
    assert_eq!(stage.running(&worker), 0);
}

#[tokio::test]
async fn a_late_request_gets_its_504_and_a_cancel_and_the_worker_lives() {
    let mut stage = TestPool::new(10);
    let mut worker = stage.worker().await;
    let late = stage.get().await;
    assert_eq!(worker.take(), [1]);
    let untaken = stage.get().await;
    deadline::enforce(&stage.shared, Some(Duration::from_nanos(1)), Duration::from_secs(60));
    assert_eq!(finish(late).await, Err(FaultKind::Deadline));
    assert_eq!(worker.take_all(), [(2, 0), (1, CANCEL_DEADLINE)], "a request that was not begun is not late");
    deadline::enforce(&stage.shared, Some(Duration::from_secs(60)), Duration::from_secs(60));
    assert_eq!(worker.take_all(), [], "once");
    // Later output for it is dropped.
    worker.respond(1);
    worker.respond(2);
    assert_eq!(finish(untaken).await.unwrap(), "2");
    assert_eq!((stage.running(&worker), stage.pool.status().workers[0].phase), (0, "serving"));
}

#[tokio::test]
async fn a_worker_that_does_not_end_a_late_request_is_killed_and_the_others_are_run_again() {
    let mut stage = TestPool::new(10);
    let mut worker = stage.worker().await;
    let late = stage.get().await;
    assert_eq!(worker.take(), [1]);
    deadline::enforce(&stage.shared, Some(Duration::from_nanos(1)), Duration::from_secs(60));
    assert_eq!(finish(late).await, Err(FaultKind::Deadline));
    let (repeatable, other) = (stage.get().await, stage.submit(request(false, RequestBody::Empty)).await);
    assert_eq!(worker.take_all(), [(1, CANCEL_DEADLINE), (2, 0), (3, 0)]);
    deadline::enforce(&stage.shared, Some(Duration::from_secs(60)), Duration::ZERO);
    assert_eq!(stage.pool.status().workers[0].phase, "draining");
    assert_eq!(stage.reported_end().await, Some("stuck"));
    assert_eq!(finish(other).await, Err(FaultKind::WorkerDied));
    let mut heir = stage.worker().await;
    assert_eq!(heir.take(), [1]);
    heir.respond(1);
    assert_eq!(finish(repeatable).await.unwrap(), "1");
}

#[tokio::test]
async fn requests_that_a_busy_worker_does_not_take_go_to_another() {
    let mut stage = TestPool::new(10);
    let mut busy = stage.worker().await;
    let mut responses = vec![stage.get().await];
    assert_eq!(busy.take(), [1]);
    for _ in 0..3 {
        responses.push(stage.get().await);
    }
    stage.shared.lock().sweep(Duration::from_secs(60));
    assert_eq!(stage.running(&busy), 4, "they have not waited for long");
    stage.shared.lock().sweep(Duration::ZERO);
    assert_eq!((stage.running(&busy), stage.pool.status().queued), (1, 3));
    // Nor does the worker get new requests before it takes or ends one.
    stage.shared.lock().sweep(Duration::ZERO);
    assert_eq!(stage.running(&busy), 1);
    let mut idle = stage.worker().await;
    assert_eq!(idle.take(), [1, 2, 3]);
    (1..=3).for_each(|number| idle.respond(number));
    busy.respond(1);
    let texts: Vec<_> = finish_all(responses).await.into_iter().map(Result::unwrap).collect();
    assert_eq!(texts, ["1", "1", "2", "3"]);
}

#[tokio::test]
async fn a_busy_worker_that_comes_back_gets_requests_again() {
    let mut stage = TestPool::new(10);
    let mut worker = stage.worker().await;
    let _running = stage.get().await;
    assert_eq!(worker.take(), [1]);
    let _waiting = stage.get().await;
    stage.shared.lock().sweep(Duration::ZERO);
    assert_eq!(stage.pool.status().queued, 1);
    // The worker finds no request left in its lane, and keeps waiting for I/O.
    assert!(worker.take().is_empty());
    stage.shared.lock().sweep(Duration::ZERO);
    assert_eq!((worker.take(), stage.pool.status().queued), (vec![3], 0));
}

#[tokio::test]
async fn a_draining_worker_finishes_begun_requests_and_returns_the_rest() {
    let mut stage = TestPool::new(10);
    let (mut old, mut new) = (stage.worker().await, stage.worker().await);
    let mut responses = Vec::new();
    for _ in 0..2 {
        responses.push(stage.get().await);
        old.take();
        new.take();
    }
    for _ in 0..4 {
        responses.push(stage.get().await);
    }
    assert_eq!((stage.running(&old), stage.running(&new)), (3, 3));
    stage.shared.lock().drain_lane(old.index, Instant::now());
    assert_eq!((stage.running(&old), stage.running(&new)), (1, 5));
    assert!(matches!(old.end.take_event().unwrap(), Some(Sent::Stop)));
    new.take();
    old.respond(1);
    (1..=5).for_each(|number| new.respond(number));
    assert!(finish_all(responses).await.iter().all(Result::is_ok));
    let state = stage.shared.lock().lanes[old.index].as_ref().map(|lane| lane.state.clone());
    assert_eq!(state, Some(WorkerState::Draining));
}

#[tokio::test]
async fn a_client_far_behind_loses_its_response_and_delays_no_other() {
    let mut stage = TestPool::new(10);
    let mut worker = stage.worker().await;
    let slow = stage.get().await;
    assert_eq!(worker.take(), [1]);
    worker.begin_response(1, b"first");
    worker.end.flush();
    // The client has the head and stops reading.
    let mut slow = slow.await.unwrap().unwrap();
    let other = stage.get().await;
    assert_eq!(worker.take(), [2]);
    // Far more than may be buffered. The worker's thread may wait for room in the ring, but the server always makes
    // some.
    let writer = tokio::task::spawn_blocking(move || {
        worker.end.select(1);
        for _ in 0..64 {
            worker.end.write(&[b'x'; 64 * 1024]).unwrap();
            worker.end.flush();
        }
        worker.respond(2);
        worker
    });
    assert_eq!(finish(other).await.unwrap(), "2");
    let mut worker = writer.await.unwrap();
    assert_eq!(worker.take_all(), [(1, CANCEL_CLIENT_GONE)]);
    let mut read = 0;
    let end = loop {
        match std::future::poll_fn(|cx| std::pin::Pin::new(&mut slow.body).poll_chunk(cx)).await {
            Some(Ok(chunk)) => read += chunk.data.len(),
            Some(Err(fault)) => break fault.kind,
            None => panic!("a cut response looked whole"),
        }
    };
    assert_eq!(end, FaultKind::Storage);
    assert!((1 << 20..2 << 20).contains(&read), "{read}");
}

#[tokio::test]
async fn lines_of_the_log_belong_to_their_requests() {
    let mut stage = TestPool::new(10);
    let mut worker = stage.worker().await;
    let mut responses = Vec::new();
    for id in [70, 80] {
        responses
            .push(stage.submit(Box::new(Request { id: RequestId(id), ..*request(true, RequestBody::Empty) })).await);
    }
    assert_eq!(worker.take(), [1, 2]);
    let id = |number| stage.request_name(&worker, number).map(|(id, _)| id);
    assert_eq!((id(1), id(2), id(3)), (Some(RequestId(70).to_string()), Some(RequestId(80).to_string()), None));
}

/// A request for a script whose estimate computes, or does not.
fn for_script(stage: &TestPool, script: &str, computes: bool) -> Box<Request> {
    let mut head = RequestBuilder::new(5, 1001, 0);
    let at = head.text(script.as_bytes());
    head.script(at);
    let request = Box::new(Request { head: head.finish(), ..*request(true, RequestBody::Empty) });
    let (php, cpu) = if computes { (5_000, Some(5_000)) } else { (5_000, Some(10)) };
    let key = RouteKey::of(&request);
    (0..20).for_each(|_| stage.shared.lock().estimates.note(key, MeasuredDuration { php, cpu, memory: 0 }));
    request
}

/// Regression: both of two workers had a computing request, and all others waited for these.
#[tokio::test]
async fn requests_that_compute_share_half_of_the_workers_while_others_come() {
    let mut stage = TestPool::new(10);
    stage.shared.lock().processors = 2;
    let mut workers = [stage.worker().await, stage.worker().await, stage.worker().await, stage.worker().await];
    let mut responses = Vec::new();
    for _ in 0..6 {
        let waits = for_script(&stage, "/waits.php", false);
        responses.push(stage.submit(waits).await);
        let computes = for_script(&stage, "/computes.php", true);
        responses.push(stage.submit(computes).await);
        workers.iter_mut().for_each(|worker| drop(worker.take()));
    }
    let computing: Vec<_> = stage
        .shared
        .lock()
        .lanes
        .iter()
        .flatten()
        .map(|lane| (lane.in_flight.computing(), lane.in_flight.len()))
        .collect();
    let with_some: Vec<_> = computing.iter().filter(|lane| lane.0 > 0).collect();
    assert_eq!(with_some.iter().map(|lane| lane.0).collect::<Vec<_>>(), [3, 3], "{computing:?}");
    // The first requests found all workers equal.
    assert!(with_some.iter().map(|lane| lane.1 - lane.0).sum::<usize>() <= 1, "{computing:?}");
}

#[tokio::test]
async fn requests_that_compute_have_all_workers_while_no_other_client_comes() {
    let mut stage = TestPool::new(10);
    stage.shared.lock().processors = 2;
    let mut workers = [stage.worker().await, stage.worker().await, stage.worker().await, stage.worker().await];
    let mut responses = Vec::new();
    for _ in 0..4 {
        let computes = for_script(&stage, "/computes.php", true);
        responses.push(stage.submit(computes).await);
        workers.iter_mut().for_each(|worker| drop(worker.take()));
    }
    assert!(workers.iter().all(|worker| stage.running(worker) == 1));
}
