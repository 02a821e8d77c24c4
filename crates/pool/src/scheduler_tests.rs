//! Places of calls, on lanes that nobody works on.

use super::*;
use crate::call::{Call, CallStats, RequestBody, RequestId};
use crate::lane::NewWorker;
use crate::reply_sink::{self, Budget, Receiver};
use howdah_transport::control_socket::{ControlSocket, pair};
use howdah_transport::wire::CallBuilder;
use howdah_transport::{LaneSizes, create_lane, new_eventfd};
use std::sync::Arc;

fn lane(worker: u32) -> Lane {
    let (sender, _frames, _fd) = create_lane(LaneSizes::TINY).unwrap();
    let (ours, _theirs) = pair().unwrap();
    let pidfd = Arc::new(new_eventfd().unwrap());
    let new = NewWorker { worker, generation: 1, pid: 0, pidfd, home: 0, depth: 2, several: false };
    let mut lane = Lane::new(new, sender, Arc::new(ControlSocket::from(ours)));
    lane.phase = Phase::Serving;
    lane
}

fn scheduler(workers: u32) -> Scheduler {
    let mut scheduler = Scheduler::new(10, false);
    for worker in 0..workers {
        scheduler.add_lane(lane(worker));
        scheduler.refill(worker as usize, Instant::now());
    }
    scheduler
}

/// Submits a call with this id. Its receiver stands for the client.
fn submit(scheduler: &mut Scheduler, id: u64) -> Receiver {
    let budget = Arc::new(Budget { memory: 100, temp_dir: std::env::temp_dir() });
    let (sink, receiver) = reply_sink::new(budget, CallStats::default());
    let call = Call {
        head: CallBuilder::new(id, 1001, 0).finish(),
        body: RequestBody::Empty,
        repeatable: true,
        id: RequestId(id),
        received: Instant::now(),
        complete: Instant::now(),
        interim: None,
    };
    let job = Box::new(Job { call, sink, entered: Instant::now(), killed: 0, given_back: 0 });
    scheduler.submit(job, 0).unwrap();
    receiver
}

/// The calls that each lane holds, and the queue.
fn places(scheduler: &Scheduler) -> Vec<Vec<u64>> {
    let lanes = scheduler.lanes.iter().flatten().map(|l| l.in_flight.iter().map(|c| c.job.call.id.0).collect());
    lanes.chain([scheduler.queue.iter().map(|job| job.call.id.0).collect()]).collect()
}

fn calls_are_short(scheduler: &mut Scheduler) {
    (0..200).for_each(|_| scheduler.pace.note(10));
}

#[test]
fn long_calls_get_a_worker_each_and_wait_only_when_none_is_idle() {
    let mut scheduler = scheduler(2);
    let clients: Vec<_> = (1..=5).map(|id| submit(&mut scheduler, id)).collect();
    assert!(!scheduler.crowded);
    drop(clients);
    assert_eq!(places(&scheduler), [vec![2, 4], vec![1, 3], vec![5]]);
}

/// Plays a scene again until nothing has held it up for so long that its short calls would have become long ones.
fn in_time(scene: impl Fn() -> (Scheduler, Vec<Receiver>, Instant)) -> (Scheduler, Vec<Receiver>) {
    loop {
        let (scheduler, clients, began) = scene();
        if began.elapsed() < crate::pace::LONG {
            return (scheduler, clients);
        }
    }
}

#[test]
fn short_calls_stay_together_and_a_long_one_loses_those_behind_it() {
    let (scheduler, _clients) = in_time(|| {
        let (mut scheduler, clients) = short_calls_behind_a_long_one();
        let began = Instant::now();
        assert!(scheduler.spread());
        (scheduler, clients, began)
    });
    assert_eq!(places(&scheduler), [vec![3], vec![2, 4], vec![1], vec![]]);
}

fn short_calls_behind_a_long_one() -> (Scheduler, Vec<Receiver>) {
    let mut scheduler = scheduler(3);
    calls_are_short(&mut scheduler);
    let clients: Vec<_> = (1..=4).map(|id| submit(&mut scheduler, id)).collect();
    assert_eq!(places(&scheduler), [vec![], vec![], vec![1, 2, 3, 4], vec![]]);
    assert!(scheduler.crowded);
    // The first call turns out to be a long one.
    while !scheduler.lanes[2].as_ref().unwrap().runs_long(Instant::now()) {
        std::hint::spin_loop();
    }
    (scheduler, clients)
}

#[test]
fn a_call_that_stays_behind_a_short_one_is_watched_when_a_worker_becomes_idle() {
    let mut scheduler = scheduler(2);
    let clients: Vec<_> = (1..=3).map(|id| submit(&mut scheduler, id)).collect();
    assert_eq!(places(&scheduler), [vec![2], vec![1, 3], vec![]]);
    calls_are_short(&mut scheduler);
    let done = scheduler.lanes[0].as_mut().unwrap().in_flight.remove(1);
    scheduler.refill(0, Instant::now());
    assert!(done.is_some() && (scheduler.crowded || places(&scheduler) == [vec![3], vec![1], vec![]]));
    while !scheduler.lanes[1].as_ref().is_some_and(|lane| lane.runs_long(Instant::now())) {
        std::hint::spin_loop();
    }
    scheduler.spread();
    assert_eq!(places(&scheduler), [vec![3], vec![1], vec![]]);
    drop(clients);
}

#[test]
fn when_all_workers_are_busy_with_long_calls_the_rest_waits_in_the_queue_in_order() {
    let (mut scheduler, clients) = in_time(|| {
        let mut scheduler = scheduler(1);
        calls_are_short(&mut scheduler);
        let began = Instant::now();
        let clients = (1..=5).map(|id| submit(&mut scheduler, id)).collect();
        (scheduler, clients, began)
    });
    assert_eq!(places(&scheduler), [vec![1, 2, 3, 4, 5], vec![]]);
    while !scheduler.lanes[0].as_ref().unwrap().runs_long(Instant::now()) {
        std::hint::spin_loop();
    }
    scheduler.spread();
    assert_eq!(places(&scheduler), [vec![1, 2], vec![3, 4, 5]]);
    drop(clients);
}

#[test]
fn a_lane_that_ends_gives_all_waiting_calls_back() {
    let mut scheduler = scheduler(2);
    calls_are_short(&mut scheduler);
    let clients: Vec<_> = (1..=3).map(|id| submit(&mut scheduler, id)).collect();
    scheduler.drain_lane(1);
    assert_eq!(places(&scheduler).concat().len(), clients.len());
    assert!(scheduler.lanes[1].as_ref().unwrap().in_flight.is_empty());
}

/// A call that waited behind a running one, and not in the queue, was run although its client had left: where a call
/// waits depends on the thread that took its connection.
#[test]
fn a_client_that_leaves_is_noticed_wherever_its_call_waits() {
    let mut scheduler = scheduler(1);
    let mut clients: Vec<_> = (1..=4).map(|id| submit(&mut scheduler, id)).collect();
    assert_eq!(places(&scheduler), [vec![1, 2], vec![3, 4]]);
    scheduler.expire(Duration::from_secs(60));
    assert_eq!(scheduler.waiting(), 3);
    clients.drain(1..3);
    scheduler.expire(Duration::from_secs(60));
    assert_eq!((places(&scheduler), scheduler.waiting()), (vec![vec![1], vec![4]], 1));
}
