//! Effects of workers that break the protocol, and of bugs of the server, on requests.

use crate::fault::FaultKind;
use crate::io_threads::IoThreads;
use crate::pool::{PoolParts, start_pool};
use crate::process::event::Event;
use crate::request::{InterimSink, Request, RequestBody};
use crate::tests::test_pool::{TestPool, TestWorker, config, finish, finish_all, request};
use bytes::Bytes;
use howdah_observe::Metrics;
use howdah_transport::LaneSizes;
use howdah_transport::wire::WireDone;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

/// A worker that breaks the protocol is killed, and its requests move to another worker.
async fn violation(deed: impl FnOnce(&mut TestWorker)) {
    let mut stage = TestPool::new(10);
    let mut evil = stage.worker().await;
    let responses = vec![stage.get().await, stage.get().await];
    assert_eq!(evil.take(), [1, 2]);
    deed(&mut evil);
    evil.end.publish();
    assert_eq!(stage.reported_end().await, Some("broken"));
    let mut heir = stage.worker().await;
    heir.take().into_iter().for_each(|number| heir.respond(number));
    for result in finish_all(responses).await {
        assert!(result.is_ok(), "{result:?}");
    }
}

#[tokio::test]
async fn a_worker_that_responds_to_a_request_it_does_not_have_is_killed() {
    for number in [0, 3, u64::MAX] {
        violation(|evil| evil.begin_response(number, b"x")).await;
    }
}

#[tokio::test]
async fn a_worker_that_ends_a_request_twice_is_killed() {
    violation(|evil| {
        evil.respond(1);
        evil.end_response(1);
    })
    .await;
    violation(|evil| {
        evil.begin_response(2, b"x");
        evil.end.end_response(false);
        evil.end.end_response(false);
    })
    .await;
}

#[tokio::test]
async fn a_worker_that_leaves_heads_unfinished_is_killed() {
    // A head longer than a frame, so that more frames should follow the first, interrupted by another request's head.
    violation(|evil| {
        let (ring, mut head) = (LaneSizes::DEFAULT.response as usize, 200u16.to_ne_bytes().to_vec());
        head.resize(ring, 0);
        evil.end.select(1);
        evil.end.head(false, &head[..ring / 2 + 100]);
        evil.begin_response(2, b"x");
    })
    .await;
}

/// Like `violation`, when the client may already have a part of the response.
async fn late_crime(deed: impl FnOnce(&mut TestWorker)) {
    let mut stage = TestPool::new(10);
    let mut evil = stage.worker().await;
    let _response = stage.get().await;
    assert_eq!(evil.take(), [1]);
    deed(&mut evil);
    evil.end.publish();
    assert_eq!(stage.reported_end().await, Some("broken"));
}

#[tokio::test]
async fn a_worker_that_sends_anything_but_a_body_after_its_head_is_killed() {
    let status = 103u16.to_ne_bytes();
    late_crime(|evil| {
        evil.begin_response(1, b"AAAAA");
        evil.end.flush();
        evil.end.head(true, &status);
    })
    .await;
    late_crime(|evil| {
        evil.begin_response(1, b"x");
        evil.end.end_response(true);
        evil.end.head(true, &status);
    })
    .await;
    late_crime(|evil| {
        evil.begin_response(1, b"x");
        evil.end.head(false, &200u16.to_ne_bytes());
    })
    .await;
    late_crime(|evil| {
        evil.end.select(1);
        evil.end.write(b"a body without a head").unwrap();
    })
    .await;
    late_crime(|evil| {
        evil.begin_response(1, b"x");
        evil.end.end_response(false);
        evil.end.write(b"more").unwrap();
    })
    .await;
    late_crime(|evil| {
        evil.begin_response(1, b"x");
        evil.end.done(WireDone::default());
    })
    .await;
    violation(|evil| evil.end.ready()).await;
    violation(|evil| {
        evil.end.select(1);
        evil.end.return_request(1);
    })
    .await;
}

#[tokio::test]
async fn a_worker_that_requests_bodies_of_others_is_killed() {
    // The body of a request without one, or of no request; then the same body repeatedly.
    for number in [1, 99] {
        violation(|evil| evil.request_body(number)).await;
    }
    let mut stage = TestPool::new(10);
    let mut evil = stage.worker().await;
    let response = stage.submit(request(false, RequestBody::Memory(Bytes::from(vec![b'x'; 100_000])))).await;
    while evil.take().is_empty() {
        tokio::task::yield_now().await;
    }
    evil.request_body(1);
    assert_eq!(stage.reported_end().await, Some("broken"));
    assert_eq!(finish(response).await, Err(FaultKind::WorkerBroken));
}

/// A front that counts informational responses, or panics on one.
#[derive(Debug, Default)]
struct Front {
    seen: AtomicUsize,
    panics: bool,
}

impl InterimSink for Front {
    fn interim(&self, _status: u16, _headers: &[(Bytes, Bytes)]) {
        assert!(!self.panics, "the panic that a test is about");
        self.seen.fetch_add(1, Ordering::Relaxed);
    }
}

#[tokio::test]
async fn a_flood_of_informational_responses_is_dropped_and_the_response_arrives() {
    let mut stage = TestPool::new(10);
    let mut worker = stage.worker().await;
    let front = Arc::new(Front::default());
    let response =
        stage.submit(Box::new(Request { interim: Some(front.clone()), ..*request(true, RequestBody::Empty) })).await;
    assert_eq!(worker.take(), [1]);
    let writer = tokio::task::spawn_blocking(move || {
        worker.end.select(1);
        let mut head = 103u16.to_ne_bytes().to_vec();
        head.extend_from_slice(&8000u32.to_ne_bytes());
        head.extend_from_slice(&[b"X:".as_slice(), &[b'x'; 7998]].concat());
        (0..2000).for_each(|_| worker.end.head(true, &head));
        worker.respond(1);
        worker
    });
    assert_eq!(finish(response).await.unwrap(), "1");
    let seen = front.seen.load(Ordering::Relaxed);
    assert!((1..=64).contains(&seen) && seen * 8000 <= 256 * 1024, "{seen}");
    drop(writer.await.unwrap());
}

/// Regression: the lane's reader was gone after a panic, so that its requests were never answered and the pool never
/// stopped.
#[tokio::test]
async fn a_panic_of_a_lane_reader_ends_only_its_workers_requests() {
    let mut stage = TestPool::new(10);
    let mut worker = stage.worker().await;
    let front = Arc::new(Front { panics: true, ..Front::default() });
    let deadly = stage.submit(Box::new(Request { interim: Some(front), ..*request(true, RequestBody::Empty) })).await;
    let beside = stage.submit(request(false, RequestBody::Empty)).await;
    assert_eq!(worker.take(), [1, 2]);
    let untaken = stage.submit(request(false, RequestBody::Empty)).await;
    worker.end.select(1);
    worker.end.head(true, &103u16.to_ne_bytes());
    assert_eq!(stage.reported_end().await, Some("panicked"));
    assert_eq!(finish(deadly).await, Err(FaultKind::WorkerBroken), "it is not run on another worker");
    assert_eq!(finish(beside).await, Err(FaultKind::WorkerBroken));
    let mut heir = stage.worker().await;
    assert_eq!(heir.take(), [1]);
    heir.respond(1);
    assert_eq!(finish(untaken).await.unwrap(), "1");
}

#[tokio::test]
async fn a_pool_whose_supervisor_panics_starts_again_and_can_stop() {
    let pool = start_pool(PoolParts {
        config: config(1),
        io_threads: IoThreads::new(vec![tokio::runtime::Handle::current()]),
        metrics: Metrics::new().pool("test"),
        launcher: crate::process::launcher::Launcher::default(),
        encode_warm_up: Box::new(|_| Err(String::new())),
        slow_log: None,
    });
    for _ in 0..3 {
        pool.shared().notify_supervisor(Event::Panic);
        tokio::task::yield_now().await;
    }
    // The supervisor still handles events.
    assert!(tokio::time::timeout(Duration::from_secs(60), pool.reload()).await.unwrap().is_err());
    tokio::time::timeout(Duration::from_secs(60), pool.stop(Duration::ZERO)).await.unwrap();
}

/// The worker wakes the server without a reason, as fast as it can, until it is killed.
#[tokio::test]
async fn a_worker_that_wakes_the_server_needlessly_is_killed_and_others_are_served() {
    let mut stage = TestPool::new(10);
    let evil = stage.worker().await;
    let stop = Arc::new(AtomicBool::new(false));
    let (wake_pipe, stopped) = (evil.eventfd.try_clone().unwrap(), stop.clone());
    let ringer = std::thread::spawn(move || {
        while !stopped.load(Ordering::Relaxed) {
            let _ = rustix::io::write(&wake_pipe, &1u64.to_ne_bytes());
            std::thread::yield_now();
        }
    });
    let mut turns = 0;
    let reason = loop {
        tokio::select! {
            biased;
            reason = stage.reported_end() => break reason,
            () = tokio::task::yield_now() => turns += 1,
        }
    };
    stop.store(true, Ordering::Relaxed);
    ringer.join().unwrap();
    assert_eq!(reason, Some("broken"));
    assert!(turns > 1000, "others had {turns} turns");
}

/// Lines above the rate are dropped; outside of requests too many of these break the lane.
#[tokio::test]
async fn a_worker_that_floods_the_log_without_a_request_is_killed() {
    let mut stage = TestPool::new(10);
    let mut evil = stage.worker().await;
    let (stop, life) = (Arc::new(AtomicBool::new(false)), evil.life.id());
    let stopped = stop.clone();
    let flood = std::thread::spawn(move || {
        while !stopped.load(Ordering::Relaxed) {
            evil.end.log(6, b"x");
            evil.end.publish();
        }
        evil
    });
    assert_eq!(stage.reported_end().await, Some("broken"), "{life}");
    stop.store(true, Ordering::Relaxed);
    drop(stage);
    drop(flood);
}
